//! The one writer: takes what waits together, makes it durable, and only then answers.
//!
//! It owns the log and the index for as long as the journal is open. After a failed write or sync
//! it answers `Failed` to everybody and touches the disk no more. Not here: opening and repair.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use ganger_log::AppendError as LogError;
use ganger_shared::digest::Digest;
use tokio::sync::{oneshot, watch};

use super::chain::Tip;
use super::index::{Entry, wait_for_release};
use super::open::Opened;
use super::{Anchor, AppendError, CloseError, Committed, State, StreamName, record, verified};

/// What one commit takes at most, unless a single batch is larger.
const GROUP_EVENTS: usize = 64;
const GROUP_BYTES: u64 = 64 * 1024;
/// How many streams' tips are remembered; beyond it they are read from the index anew.
const TIPS_MAX: usize = 16 * 1024;

/// What a handle asks of the writer.
#[derive(Debug)]
pub(super) enum Request {
    Append(Append),
    Close(CloseReply),
}

type CloseReply = oneshot::Sender<Result<Anchor, CloseError>>;

/// One batch waiting to be written.
#[derive(Debug)]
pub(super) struct Append {
    pub stream: StreamName,
    pub expected_seq: u64,
    pub bodies: Vec<String>,
    pub bytes: u64,
    pub essential: bool,
    pub reply: oneshot::Sender<Result<Committed, AppendError>>,
}

impl Append {
    fn refuse(self, error: AppendError) {
        // A caller that no longer waits needs no answer.
        let _ = self.reply.send(Err(error));
    }
}

/// Starts the writer's thread. It ends when it is asked to close or nobody is left to ask; its end
/// is seen by every handle, since the queue goes with it.
pub(super) fn start(
    opened: Opened,
    queue: Receiver<Request>,
    tell: watch::Sender<State>,
    waiting_bytes: Arc<AtomicU64>,
) -> io::Result<()> {
    let writer = Writer { opened, tips: HashMap::new(), tell, waiting_bytes, failed: None };
    let sled = writer.opened.files.sled.clone();
    std::thread::Builder::new().name("ganger-journal".to_owned()).spawn(move || {
        if let Some((reply, closed)) = writer.run(&queue) {
            // Everything is let go of before the answer, so that the caller can open anew.
            wait_for_release(&sled);
            let _ = reply.send(closed);
        }
    })?;
    Ok(())
}

struct Writer {
    opened: Opened,
    tips: HashMap<StreamName, Tip>,
    tell: watch::Sender<State>,
    waiting_bytes: Arc<AtomicU64>,
    failed: Option<String>,
}

/// The lines of one commit and who waits for which of them.
#[derive(Default)]
struct Staged {
    lines: Vec<String>,
    tips: HashMap<StreamName, Tip>,
    waiting: Vec<Waiting>,
}

struct Waiting {
    append: Append,
    first_seq: u64,
    tip: Tip,
    /// The place of its last line in the commit.
    last_line: usize,
}

impl Writer {
    fn run(
        mut self,
        queue: &Receiver<Request>,
    ) -> Option<(CloseReply, Result<Anchor, CloseError>)> {
        let mut next = None;
        loop {
            let request = match next.take() {
                Some(request) => Some(request),
                None => match self.wait(queue) {
                    Ok(request) => request,
                    Err(()) => break,
                },
            };
            match request {
                Some(Request::Append(first)) => {
                    let group = gather(first, queue, &mut next);
                    let bytes = group.iter().map(|append| append.bytes).sum();
                    self.commit(group);
                    self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                Some(Request::Close(reply)) => return Some((reply, self.finish())),
                None => {}
            }
            self.sync_if_due();
        }
        // A failure here was told through the state; nobody is left to answer.
        let _ = self.finish();
        None
    }

    /// Waits for a request, or until the index must be synced; an error when nobody is left.
    fn wait(&self, queue: &Receiver<Request>) -> Result<Option<Request>, ()> {
        let due = if self.failed.is_some() { None } else { self.opened.index.sync_due() };
        let Some(due) = due else {
            return queue.recv().map(Some).map_err(|_| ());
        };
        match queue.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(request) => Ok(Some(request)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    fn commit(&mut self, mut group: Vec<Append>) {
        if let Some(free_bytes) = self.low_space() {
            group = only_essential(group, free_bytes);
        }
        let staged = self.stage(group);
        if staged.waiting.is_empty() {
            return;
        }
        match self.write(&staged) {
            Ok(first) => self.acknowledge(staged, first),
            Err(LogError::DiskFull { .. }) => self.commit_essential(staged),
            Err(error) => self.fail(staged, &error.to_string()),
        }
    }

    /// The disk is full: gives the reserve up and tries what must not wait, once.
    fn commit_essential(&mut self, staged: Staged) {
        if let Err(error) = self.opened.reserve.release() {
            return self.fail(staged, &format!("give up the reserve: {error}"));
        }
        let free_bytes = self.opened.log.free_bytes().unwrap_or(0);
        let group = staged.waiting.into_iter().map(|waiting| waiting.append).collect();
        let staged = self.stage(only_essential(group, free_bytes));
        if staged.waiting.is_empty() {
            return;
        }
        match self.write(&staged) {
            Ok(first) => self.acknowledge(staged, first),
            Err(LogError::DiskFull { .. }) => {
                for waiting in staged.waiting {
                    let stream = waiting.append.stream.clone();
                    waiting.append.refuse(AppendError::DiskFull { stream, free_bytes });
                }
            }
            Err(error) => self.fail(staged, &error.to_string()),
        }
    }

    /// Says how little space is left if it is too little, and gives the reserve up for it.
    fn low_space(&mut self) -> Option<u64> {
        // A disk that cannot say is left to show at the write itself.
        let free_bytes = self.opened.log.free_bytes().ok()?;
        if free_bytes >= self.opened.reserve.floor() {
            // Without the reserve the floor is higher; the next commit tries again.
            let _ = self.opened.reserve.restore(free_bytes);
            return None;
        }
        if self.opened.reserve.present() {
            let _ = self.opened.reserve.release();
        }
        Some(free_bytes)
    }

    /// Turns batches into lines, each on the state the previous one left.
    fn stage(&mut self, group: Vec<Append>) -> Staged {
        let mut staged = Staged::default();
        for append in group {
            if let Some(reason) = self.failed.clone() {
                let stream = append.stream.clone();
                append.refuse(AppendError::Failed { stream, reason });
                continue;
            }
            match self.tip(&staged, &append.stream) {
                Ok(tip) if tip.seq == append.expected_seq => staged.add(append, tip),
                Ok(tip) => {
                    let (stream, expected) = (append.stream.clone(), append.expected_seq);
                    append.refuse(AppendError::WrongSeq { stream, expected, actual: tip.seq });
                }
                Err(error) => {
                    let (stream, reason) = (append.stream.clone(), format!("read sled: {error}"));
                    self.fail_all(reason.clone());
                    append.refuse(AppendError::Failed { stream, reason });
                }
            }
        }
        staged
    }

    fn tip(&mut self, staged: &Staged, stream: &StreamName) -> sled::Result<Tip> {
        if let Some(tip) = staged.tips.get(stream).or_else(|| self.tips.get(stream)) {
            return Ok(*tip);
        }
        let tip = self.opened.index.tip(stream.as_str())?;
        if self.tips.len() >= TIPS_MAX {
            self.tips.clear();
        }
        self.tips.insert(stream.clone(), tip);
        Ok(tip)
    }

    /// Log first, then sled; returns the first line's place in the log.
    fn write(&mut self, staged: &Staged) -> Result<u64, LogError> {
        let active_from = self.opened.log.active_from();
        let first = *self.opened.log.append_batch(&staged.lines)?.start();
        let entries: Vec<Entry<'_>> =
            (first..).zip(&staged.lines).map(|(log_seq, line)| Entry { log_seq, line }).collect();
        let failed = |reason| LogError::Failed { path: self.opened.files.sled.clone(), reason };
        self.opened.index.insert(&entries).map_err(|error| failed(error.to_string()))?;
        self.opened.counters.committed(self.opened.log.syncs(), staged.lines.len() as u64);
        if self.opened.log.active_from() != active_from {
            self.mark_verified();
        }
        Ok(first)
    }

    /// A segment is finished: what was written up to the last answer is in the log and synced.
    fn mark_verified(&self) {
        // An older mark only makes the next open read more.
        if verified::write(&self.opened.files.verified, &self.opened.tip).is_ok() {
            self.opened.counters.file_written();
        }
    }

    fn acknowledge(&mut self, staged: Staged, first: u64) {
        self.tips.extend(staged.tips);
        for waiting in staged.waiting {
            let anchor = self.anchor(first + waiting.last_line as u64, waiting.tip.hash);
            self.opened.tip = anchor.clone();
            let committed =
                Committed { first_seq: waiting.first_seq, last_seq: waiting.tip.seq, anchor };
            self.tell.send_modify(|state| state.tip = committed.anchor.clone());
            let _ = waiting.append.reply.send(Ok(committed));
        }
    }

    fn anchor(&self, log_seq: u64, hash: Digest) -> Anchor {
        let Anchor { store_id, generation, .. } = &self.opened.tip;
        Anchor { store_id: store_id.clone(), generation: *generation, log_seq, hash }
    }

    fn fail(&mut self, staged: Staged, reason: &str) {
        self.fail_all(reason.to_owned());
        for waiting in staged.waiting {
            let stream = waiting.append.stream.clone();
            waiting.append.refuse(AppendError::Failed { stream, reason: reason.to_owned() });
        }
    }

    fn fail_all(&mut self, reason: String) {
        tracing::error!(%reason, "the journal has failed and accepts nothing any more");
        self.failed = Some(reason.clone());
        self.tell.send_modify(|state| state.failed = Some(reason));
    }

    fn sync_if_due(&mut self) {
        let due = self.opened.index.sync_due().is_some_and(|due| due <= Instant::now());
        if due
            && self.failed.is_none()
            && let Err(error) = self.opened.index.sync()
        {
            self.fail_all(format!("sync sled: {error}"));
        }
    }

    /// Leaves an index that verifies alone, and a mark that spares the next open the work.
    fn finish(mut self) -> Result<Anchor, CloseError> {
        if let Some(reason) = self.failed {
            return Err(CloseError::Failed { reason });
        }
        let failed = |reason: String| CloseError::Failed { reason };
        self.opened.index.sync().map_err(|error| failed(format!("sync sled: {error}")))?;
        verified::write(&self.opened.files.verified, &self.opened.tip)
            .map_err(|error| failed(format!("write the mark: {error}")))?;
        Ok(self.opened.tip)
    }
}

impl Staged {
    /// Writes a batch's lines after those already there.
    fn add(&mut self, append: Append, mut tip: Tip) {
        let first_seq = tip.seq + 1;
        for body in &append.bodies {
            let seq = tip.seq + 1;
            let (line, hash) = record::write(append.stream.as_str(), seq, tip.hash, body);
            self.lines.push(line);
            tip = Tip { seq, hash };
        }
        self.tips.insert(append.stream.clone(), tip);
        let last_line = self.lines.len() - 1;
        self.waiting.push(Waiting { append, first_seq, tip, last_line });
    }
}

/// Takes what waits as far as it fits one commit; what does not is left in `next`.
fn gather(first: Append, queue: &Receiver<Request>, next: &mut Option<Request>) -> Vec<Append> {
    let (mut events, mut bytes) = (first.bodies.len(), first.bytes);
    let mut group = vec![first];
    while events < GROUP_EVENTS && bytes < GROUP_BYTES {
        match queue.try_recv() {
            Ok(Request::Append(append))
                if events + append.bodies.len() <= GROUP_EVENTS
                    && bytes + append.bytes <= GROUP_BYTES =>
            {
                events += append.bodies.len();
                bytes += append.bytes;
                group.push(append);
            }
            Ok(request) => {
                *next = Some(request);
                break;
            }
            Err(_) => break,
        }
    }
    group
}

/// Refuses everything that can wait until there is space again.
fn only_essential(group: Vec<Append>, free_bytes: u64) -> Vec<Append> {
    let (essential, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(|one| one.essential);
    for append in rest {
        let stream = append.stream.clone();
        append.refuse(AppendError::DiskFull { stream, free_bytes });
    }
    essential
}

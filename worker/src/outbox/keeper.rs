//! The outbox's thread: takes what waits, decides each on the state the one before left, writes all
//! as one batch, and only then answers and shows what is owed.
//!
//! Not here: the decisions themselves.

use std::path::Path;
use std::sync::Arc;

use ganger_log::{AppendError, Log, Options};
use ganger_shared::link::{Anchor, Answer, Lease};
use ganger_worker_core::outbox::{self as core, Record};
use tokio::sync::{mpsc, watch};

use super::reserve::Reserve;
use super::{AcceptError, OpenOutboxError, Order, Owed, owed};

/// Orders written as one batch.
const BATCH_MAX: usize = 64;
/// Records after which the log is written anew.
const RECORDS_MAX: usize = 2_000;

/// The owner of the log and of the state.
pub(super) struct Keeper {
    log: Log,
    state: core::Outbox,
    shown: watch::Sender<Arc<Owed>>,
    reserve: Reserve,
    /// Records since the log was last written anew.
    since: usize,
}

/// An answer that is given once the batch is on the disk.
type Reply = Box<dyn FnOnce() + Send>;

impl Keeper {
    pub(super) fn open(
        dir: &Path,
        reports_max: usize,
        options: Options,
    ) -> Result<(Self, watch::Receiver<Arc<Owed>>), OpenOutboxError> {
        let (log, report) = Log::open(dir, options)?;
        if let Some(cut) = &report.cut {
            tracing::warn!(?cut, dir = %dir.display(), "an unfinished batch was cut off the outbox");
        }
        let (mut state, mut since) = (core::Outbox::new(reports_max), 0);
        for frame in log.read_from(log.first_log_seq())? {
            let frame = frame?;
            let record = serde_json::from_str(&frame.payload).map_err(|source| {
                let log_seq = frame.log_seq;
                OpenOutboxError::Record { dir: dir.to_owned(), log_seq, source }
            })?;
            state.apply(record);
            since += 1;
        }
        let reserve = Reserve::make(&dir.join("reserve"));
        let (shown, watching) = watch::channel(Arc::new(owed(&state, !reserve.is_there())));
        Ok((Self { log, state, shown, reserve, since }, watching))
    }

    /// Until nobody can order any more, or the disk fails.
    pub(super) fn keep(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(first) = orders.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && let Ok(next) = orders.try_recv()
            {
                batch.push(next);
            }
            if let Err(error) = self.take(batch) {
                tracing::error!(%error, "the outbox cannot be written: the worker must end");
                return;
            }
        }
    }

    fn take(&mut self, batch: Vec<Order>) -> Result<(), AppendError> {
        let (mut records, mut replies) = (Vec::new(), Vec::new());
        for order in batch {
            let (decided, reply) = self.decide(order);
            for record in decided {
                records.push(record.clone());
                self.state.apply(record);
            }
            replies.extend(reply);
        }
        if !records.is_empty() {
            self.since += records.len();
            self.write(&records)?;
            self.tidy()?;
            self.shown.send_replace(Arc::new(owed(&self.state, !self.reserve.is_there())));
        }
        for reply in replies {
            reply();
        }
        Ok(())
    }

    fn decide(&self, order: Order) -> (Vec<Record>, Option<Reply>) {
        match order {
            Order::Accept(assignment, reply) => {
                let decided = if self.reserve.is_there() {
                    self.state.accept(&assignment).map_err(AcceptError::from)
                } else {
                    Err(AcceptError::DiskFull)
                };
                let (records, answer) = split(decided);
                (records, Some(Box::new(move || drop(reply.send(answer)))))
            }
            Order::Report(lease, fact, reply) => {
                let decided = self.state.report(&lease, *fact).map(|record| vec![record]);
                let (records, answer) = split(decided);
                (records, Some(Box::new(move || drop(reply.send(answer)))))
            }
            Order::Decline(lease, fact, reply) => {
                let decided = self.state.decline(&lease, *fact);
                let declined = decided.is_some();
                // Nobody waits for an answer any more: then nobody needs it.
                let answer: Reply = Box::new(move || {
                    let _ = reply.send(declined);
                });
                (decided.unwrap_or_default(), Some(answer))
            }
            Order::Answered(lease, number, answer, anchor) => {
                (self.answered(&lease, number, answer, anchor), None)
            }
            Order::Shown(anchor) => (self.state.shown(&anchor).into_iter().collect(), None),
        }
    }

    fn answered(
        &self,
        lease: &Lease,
        number: u32,
        answer: Answer,
        anchor: Option<Anchor>,
    ) -> Vec<Record> {
        let seen = anchor.and_then(|anchor| self.state.shown(&anchor));
        self.state.answered(lease, number, answer).into_iter().chain(seen).collect()
    }

    /// Writes the batch; a full disk gets the reserve's room once.
    fn write(&mut self, records: &[Record]) -> Result<(), AppendError> {
        let lines: Vec<String> = records
            .iter()
            .map(|record| serde_json::to_string(record).expect("records have text keys only"))
            .collect();
        match self.log.append_batch(&lines) {
            Err(AppendError::DiskFull { path }) if self.reserve.spend() => {
                tracing::error!(path = %path.display(), "the disk is full: no lease is taken");
                self.log.append_batch(&lines).map(drop)
            }
            written => written.map(drop),
        }
    }

    /// Says everything anew once much of it is history, and lets the old segments go.
    fn tidy(&mut self) -> Result<(), AppendError> {
        if !self.reserve.is_there() {
            self.reserve.refill(self.log.free_bytes().ok());
        }
        if self.since < RECORDS_MAX {
            return Ok(());
        }
        let from = self.log.next_log_seq();
        let anew = self.state.anew();
        self.since = anew.len().min(RECORDS_MAX / 2);
        self.write(&anew)?;
        if let Err(error) = self.log.truncate_before(from) {
            tracing::warn!(%error, "old segments of the outbox stay until the next start");
        }
        Ok(())
    }
}

/// The records of a decision, and its answer without them.
fn split<E>(decided: Result<Vec<Record>, E>) -> (Vec<Record>, Result<(), E>) {
    match decided {
        Ok(records) => (records, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    }
}

//! The journal: every fact of the coordinator, durable before anyone is told.
//!
//! Streams of events, each with its own numbers and hash chain, behind one writer thread. What
//! waits is taken together: appended to the log with one sync (`ganger_log`, the truth), inserted
//! into sled (its rebuildable index, from which all reads come), and only then acknowledged. A
//! body is one line of JSON and otherwise opaque.
//!
//! A directory holds `log/` (segments and the lock), `sled/`, `snapshots/`, `verified` and
//! `reserve`. Reading and snapshots block on the disk: call them where blocking is allowed.
//!
//! Not here: what an event means, folding, and artifacts.

mod anchor;
mod chain;
mod counters;
mod error;
mod export;
mod files;
mod index;
mod memory;
mod open;
mod record;
mod reserve;
mod snapshot;
mod store;
mod stream;
mod verified;
mod verify;
mod walk;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use ganger_shared::digest::Digest;
use serde::de::IgnoredAny;
use tokio::sync::{oneshot, watch};

pub use anchor::{Anchor, Standing};
pub use chain::{Bad, BadKind};
pub use counters::Syncs;
pub use error::{AppendError, CloseError, OpenError, ReadError};
pub use export::{ExportError, Exported, export, exported};
pub use index::FlushAt;
pub use memory::MemoryJournal;
pub use open::{IndexOutcome, OpenReport};
pub use snapshot::{IgnoredSnapshot, LoadedSnapshot, Snapshot, SnapshotError, SnapshotFault};
pub use store::EventStore;
pub use stream::{InvalidStreamName, StreamName};
pub use verify::{IndexState, VerifyError, VerifyReport, verify};

use counters::Counters;
use files::Files;
use index::Reader;
use writer::{Append, Request};

/// Bounds and choices of a journal.
pub struct Options {
    /// The log's bounds and disk.
    pub log: ganger_log::Options,
    /// Accept that acknowledged events are gone, and begin a generation that outranks them.
    pub accept_loss: bool,
    /// Throw the index away and build it from the log.
    pub rebuild_index: bool,
    /// The largest body.
    pub event_bytes_max: usize,
    /// The largest batch of bodies.
    pub batch_bytes_max: u64,
    /// How many appends may wait for the writer.
    pub queue_len: usize,
    /// How many bytes of bodies may wait for the writer.
    pub queue_bytes: u64,
    /// Space given up when the disk is full.
    pub reserve_bytes: u64,
    /// Below how much free space only the essential is written.
    pub floor_bytes: u64,
    /// sled's cache.
    pub cache_bytes: u64,
    /// When sled is synced.
    pub flush_at: FlushAt,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log: ganger_log::Options::default(),
            accept_loss: false,
            rebuild_index: false,
            event_bytes_max: Limits::DEFAULT.event,
            batch_bytes_max: Limits::DEFAULT.batch,
            queue_len: 1024,
            queue_bytes: Limits::DEFAULT.queue,
            reserve_bytes: 64 << 20,
            floor_bytes: 64 << 20,
            cache_bytes: 64 << 20,
            flush_at: FlushAt { events: 200, bytes: 64 * 1024, after: Duration::from_millis(500) },
        }
    }
}

/// What an append achieved: the events are on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The number of the batch's first event in its stream.
    pub first_seq: u64,
    /// The number of its last.
    pub last_seq: u64,
    /// The place of its last event in the journal.
    pub anchor: Anchor,
}

/// An event as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in the stream, from 1.
    pub seq: u64,
    /// The body, byte for byte.
    pub body: String,
    /// The hash that the next event of the stream names.
    pub hash: Digest,
}

/// What the writer tells everybody.
#[derive(Debug, Clone)]
struct State {
    tip: Anchor,
    failed: Option<String>,
}

/// A handle to the one writer of a journal; cheap to clone.
///
/// When the last handle is dropped the writer ends as cleanly as by [`Journal::close`], but nobody
/// is told when.
#[derive(Debug, Clone)]
pub struct Journal {
    requests: SyncSender<Request>,
    waiting_bytes: Arc<AtomicU64>,
    state: watch::Receiver<State>,
    reader: Reader,
    counters: Arc<Counters>,
    files: Arc<Files>,
    limits: Limits,
}

/// The bounds an append is held against, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    event: usize,
    batch: u64,
    queue: u64,
}

impl Journal {
    /// Opens the journal in `dir`, creates or repairs what has to be, and starts its writer.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, OpenReport), OpenError> {
        let limits = Limits {
            event: options.event_bytes_max,
            batch: options.batch_bytes_max,
            queue: options.queue_bytes,
        };
        let queue_len = options.queue_len;
        let counters = Arc::new(Counters::default());
        let (opened, report) = open::open(dir, options, &counters)?;
        let (files, reader) = (Arc::new(opened.files.clone()), opened.index.reader());
        let first = State { tip: opened.tip.clone(), failed: None };
        let (tell, state) = watch::channel(first);
        let waiting_bytes = Arc::new(AtomicU64::new(0));
        let (requests, queue) = std::sync::mpsc::sync_channel(queue_len);
        writer::start(opened, queue, tell, Arc::clone(&waiting_bytes))
            .map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        let journal = Self { requests, waiting_bytes, state, reader, counters, files, limits };
        Ok((journal, report))
    }

    /// Appends events to a stream whose last event is number `expected_seq`, all or none, and
    /// returns when they are on the disk. A caller that stops waiting does not take them back.
    pub async fn append(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: Vec<String>,
    ) -> Result<Committed, AppendError> {
        self.submit(stream, expected_seq, bodies, false).await
    }

    /// Appends what must be recorded even when the disk is nearly full: stop, cancel, results.
    pub async fn append_essential(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: Vec<String>,
    ) -> Result<Committed, AppendError> {
        self.submit(stream, expected_seq, bodies, true).await
    }

    async fn submit(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: Vec<String>,
        essential: bool,
    ) -> Result<Committed, AppendError> {
        let bytes = self.limits.check(stream, &bodies)?;
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let stream = stream.clone();
        let append =
            Append { stream: stream.clone(), expected_seq, bodies, bytes, essential, reply };
        let refused = if waiting.saturating_add(bytes) > self.limits.queue {
            Some(AppendError::Full { stream: stream.clone() })
        } else {
            match self.requests.try_send(Request::Append(append)) {
                Ok(()) => None,
                Err(TrySendError::Full(_)) => Some(AppendError::Full { stream: stream.clone() }),
                Err(TrySendError::Disconnected(_)) => {
                    Some(AppendError::Closed { stream: stream.clone() })
                }
            }
        };
        if let Some(refused) = refused {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(refused);
        }
        answer.await.unwrap_or(Err(AppendError::Closed { stream }))
    }

    /// Reads a stream's events from number `from_seq` on, at most `limit` of them.
    pub fn read(
        &self,
        stream: &StreamName,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.reader.read(stream, from_seq, limit)
    }

    /// The streams whose names begin with `prefix`, each with the number of its last event.
    pub fn streams(&self, prefix: &str) -> Vec<(StreamName, u64)> {
        self.reader.streams(prefix)
    }

    /// The place of the last acknowledged line.
    pub fn tip(&self) -> Anchor {
        self.state.borrow().tip.clone()
    }

    /// Why the journal accepts nothing any more, if so: the process should stop and start anew.
    pub fn failure(&self) -> Option<String> {
        let ended = self.state.has_changed().is_err().then(|| "its writer has ended".to_owned());
        self.state.borrow().failed.clone().or(ended)
    }

    /// Where the journal stands against what somebody outside has seen of it.
    pub fn check_anchor(&self, seen: &Anchor) -> Result<Standing, ganger_log::ReadError> {
        anchor::standing(seen, &self.tip(), &self.files.log)
    }

    /// How often the disk was waited for since the journal was opened.
    pub fn syncs(&self) -> Syncs {
        self.counters.read()
    }

    /// Saves a stream's state as of event `seq`, whole and durable.
    pub fn save_snapshot(
        &self,
        stream: &StreamName,
        snapshot: &Snapshot,
    ) -> Result<(), SnapshotError> {
        let hash = self
            .reader
            .hash(stream, snapshot.seq)
            .ok_or_else(|| SnapshotError::NoEvent { stream: stream.clone(), seq: snapshot.seq })?;
        snapshot::save(&self.files.snapshots, stream, snapshot, hash)?;
        self.counters.file_written();
        Ok(())
    }

    /// Loads the newest good snapshot of a stream in a schema; tells of bad ones.
    pub fn load_snapshot(
        &self,
        stream: &StreamName,
        schema: u32,
    ) -> Result<LoadedSnapshot, SnapshotError> {
        let hash = |seq| self.reader.hash(stream, seq);
        snapshot::load(&self.files.snapshots, stream, schema, hash)
    }

    /// Writes what waits, syncs the index so that it alone verifies, and lets go of the directory.
    pub async fn close(self) -> Result<Anchor, CloseError> {
        let (reply, answer) = oneshot::channel();
        // The queue may be full: its turn is waited for where blocking is allowed.
        let requests = self.requests;
        let asked =
            tokio::task::spawn_blocking(move || requests.send(Request::Close(reply)).is_ok());
        if !asked.await.unwrap_or(false) {
            return Err(CloseError::Closed);
        }
        answer.await.unwrap_or(Err(CloseError::Closed))
    }
}

impl Limits {
    /// What a journal in memory keeps to.
    const DEFAULT: Self = Self { event: 32 * 1024, batch: 64 << 20, queue: 128 << 20 };

    /// Refuses what can never be stored; returns how many bytes the bodies have.
    fn check(self, stream: &StreamName, bodies: &[String]) -> Result<u64, AppendError> {
        if bodies.is_empty() {
            return Err(AppendError::Empty { stream: stream.clone() });
        }
        let mut total = 0;
        for (index, body) in bodies.iter().enumerate() {
            let (bytes, max) = (body.len(), self.event);
            if bytes > max {
                return Err(AppendError::TooLarge { stream: stream.clone(), index, bytes, max });
            }
            let json = serde_json::from_str::<IgnoredAny>(body).is_ok();
            if !json || body.contains('\n') {
                return Err(AppendError::NotJson { stream: stream.clone(), index });
            }
            total += bytes as u64;
        }
        if total > self.batch {
            let (bytes, max) = (total, self.batch);
            return Err(AppendError::BatchTooLarge { stream: stream.clone(), bytes, max });
        }
        Ok(total)
    }
}

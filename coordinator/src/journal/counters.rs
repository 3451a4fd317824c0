//! How often the journal made the disk wait, counted where it happens.
//!
//! Not here: metrics; whoever exports them reads these. Plain atomics, because a counter is read
//! by threads that own nothing else of the journal.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The live counters.
#[derive(Debug, Default)]
pub(super) struct Counters {
    log: AtomicU64,
    index: AtomicU64,
    files: AtomicU64,
    batches: AtomicU64,
    events: AtomicU64,
}

/// Real syncs since the journal was opened, and what they carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syncs {
    /// Syncs of the log: one per commit, two more per new segment.
    pub log: u64,
    /// Syncs of the index.
    pub index: u64,
    /// Syncs of snapshots and of the mark of what was verified.
    pub files: u64,
    /// Commits.
    pub commits: u64,
    /// Events in them.
    pub events: u64,
}

impl Counters {
    /// The log is open and has already been synced so often.
    pub fn opened(&self, log_syncs: u64) {
        self.log.store(log_syncs, Relaxed);
    }

    pub fn committed(&self, log_syncs: u64, events: u64) {
        self.log.store(log_syncs, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.events.fetch_add(events, Relaxed);
    }

    pub fn index_synced(&self) {
        self.index.fetch_add(1, Relaxed);
    }

    /// A small file was written: itself and its directory were synced.
    pub fn file_written(&self) {
        self.files.fetch_add(2, Relaxed);
    }

    pub fn read(&self) -> Syncs {
        Syncs {
            log: self.log.load(Relaxed),
            index: self.index.load(Relaxed),
            files: self.files.load(Relaxed),
            commits: self.batches.load(Relaxed),
            events: self.events.load(Relaxed),
        }
    }
}

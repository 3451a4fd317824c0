//! The journal as its users hold it: on a disk, or in memory for their tests.
//!
//! An enum rather than a trait: there are exactly these, every method is known, and an append
//! needs no boxed future. Not here: either of them.

use super::{
    Anchor, AppendError, Committed, Journal, LoadedSnapshot, MemoryJournal, ReadError, Snapshot,
    SnapshotError, Standing, StoredEvent, StreamName,
};

/// Where events are kept.
#[derive(Debug, Clone)]
pub enum EventStore {
    /// In a directory, durable.
    Disk(Journal),
    /// In memory.
    Memory(MemoryJournal),
}

impl EventStore {
    /// See [`Journal::append`].
    pub async fn append(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: Vec<String>,
    ) -> Result<Committed, AppendError> {
        match self {
            Self::Disk(journal) => journal.append(stream, expected_seq, bodies).await,
            Self::Memory(journal) => {
                journal.unheld().await;
                journal.append(stream, expected_seq, &bodies)
            }
        }
    }

    /// See [`Journal::append_essential`].
    pub async fn append_essential(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: Vec<String>,
    ) -> Result<Committed, AppendError> {
        match self {
            Self::Disk(journal) => journal.append_essential(stream, expected_seq, bodies).await,
            Self::Memory(journal) => {
                journal.unheld().await;
                journal.append(stream, expected_seq, &bodies)
            }
        }
    }

    /// See [`Journal::read`].
    pub fn read(
        &self,
        stream: &StreamName,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        match self {
            Self::Disk(journal) => journal.read(stream, from_seq, limit),
            Self::Memory(journal) => Ok(journal.read(stream, from_seq, limit)),
        }
    }

    /// See [`Journal::streams`].
    pub fn streams(&self, prefix: &str) -> Vec<(StreamName, u64)> {
        match self {
            Self::Disk(journal) => journal.streams(prefix),
            Self::Memory(journal) => journal.streams(prefix),
        }
    }

    /// See [`Journal::tip`].
    pub fn tip(&self) -> Anchor {
        match self {
            Self::Disk(journal) => journal.tip(),
            Self::Memory(journal) => journal.tip(),
        }
    }

    /// See [`Journal::check_anchor`].
    pub fn check_anchor(&self, seen: &Anchor) -> Result<Standing, ganger_log::ReadError> {
        match self {
            Self::Disk(journal) => journal.check_anchor(seen),
            Self::Memory(journal) => Ok(journal.check_anchor(seen)),
        }
    }

    /// See [`Journal::save_snapshot`].
    pub fn save_snapshot(
        &self,
        stream: &StreamName,
        snapshot: &Snapshot,
    ) -> Result<(), SnapshotError> {
        match self {
            Self::Disk(journal) => journal.save_snapshot(stream, snapshot),
            Self::Memory(journal) if journal.save_snapshot(stream, snapshot) => Ok(()),
            Self::Memory(_) => {
                Err(SnapshotError::NoEvent { stream: stream.clone(), seq: snapshot.seq })
            }
        }
    }

    /// See [`Journal::load_snapshot`].
    pub fn load_snapshot(
        &self,
        stream: &StreamName,
        schema: u32,
    ) -> Result<LoadedSnapshot, SnapshotError> {
        match self {
            Self::Disk(journal) => journal.load_snapshot(stream, schema),
            Self::Memory(journal) => Ok(LoadedSnapshot {
                snapshot: journal.load_snapshot(stream, schema),
                ignored: Vec::new(),
            }),
        }
    }
}

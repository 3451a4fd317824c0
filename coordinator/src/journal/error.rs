//! What can go wrong with the journal, one enum per operation.
//!
//! Not here: what the caller does about it.

use std::io;
use std::path::PathBuf;

use ganger_log::{OpenError as LogOpenError, ReadError as LogReadError};
use thiserror::Error;

use super::StreamName;
use super::chain::Bad;

/// Why the journal could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The log could not be opened: another process, damage, or the system.
    #[error(transparent)]
    Log(#[from] LogOpenError),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// A line of the log is whole but does not belong where it stands.
    #[error("verify the journal: {0}")]
    Bad(#[from] Bad),
    /// The log does not reach what the index or the last check had: acknowledged events are gone.
    #[error(
        "open the journal at {}: its log ends at {log_seq} but {seen} had been acknowledged; \
         restore the log, or accept the loss by name", dir.display()
    )]
    LogBehindIndex {
        /// The journal.
        dir: PathBuf,
        /// The last line of the log.
        log_seq: u64,
        /// The last line that is known to have been there.
        seen: u64,
    },
    /// The index is held by a reader that has not ended yet.
    #[error("open the index at {}: it is still in use", path.display())]
    IndexInUse {
        /// The index's directory.
        path: PathBuf,
    },
    /// The index cannot be opened on a disk this full, and trying would damage it.
    #[error("open the journal at {}: {free_bytes} bytes free, {needed_bytes} needed", dir.display())]
    NoSpace {
        /// The journal.
        dir: PathBuf,
        /// What is free, the reserve already given up.
        free_bytes: u64,
        /// What opening needs.
        needed_bytes: u64,
    },
    /// The new index could not be filled.
    #[error("rebuild the index at {}", path.display())]
    Index {
        /// The index's directory.
        path: PathBuf,
        /// What sled said.
        #[source]
        source: sled::Error,
    },
    /// The first line of a new store or generation could not be written.
    #[error("begin a generation: {0}")]
    Begin(#[from] ganger_log::AppendError),
    /// A file beside the log could not be read, written or renamed.
    #[error("prepare {}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why events were not appended. Unless it says `Failed` or `Closed`, none of them is stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Somebody appended to the stream first, or the caller has not read all of it.
    #[error("append to {stream}: expected it at {expected}, it is at {actual}")]
    WrongSeq {
        /// The stream.
        stream: StreamName,
        /// Where the caller believed the stream to be.
        expected: u64,
        /// Where it is.
        actual: u64,
    },
    /// There was nothing to append.
    #[error("append to {stream}: no events given")]
    Empty {
        /// The stream.
        stream: StreamName,
    },
    /// An event is larger than the bound; what is unbounded belongs in an artifact.
    #[error("append to {stream}: event {index} has {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// The stream.
        stream: StreamName,
        /// The event's place in the batch.
        index: usize,
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// The batch is larger than the bound.
    #[error("append to {stream}: the batch has {bytes} bytes, at most {max} are allowed")]
    BatchTooLarge {
        /// The stream.
        stream: StreamName,
        /// The batch's size.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// A body is not one line of JSON.
    #[error("append to {stream}: event {index} is not one line of JSON")]
    NotJson {
        /// The stream.
        stream: StreamName,
        /// The event's place in the batch.
        index: usize,
    },
    /// As much is waiting to be written as is allowed to wait.
    #[error("append to {stream}: too much is waiting to be written")]
    Full {
        /// The stream.
        stream: StreamName,
    },
    /// The disk is nearly full: only stop, cancel and their results are still recorded.
    #[error("append to {stream}: the disk is full ({free_bytes} bytes free)")]
    DiskFull {
        /// The stream.
        stream: StreamName,
        /// What is free.
        free_bytes: u64,
    },
    /// A write or sync failed; whether the events are stored is known after the next open.
    #[error("append to {stream}: the journal has failed: {reason}")]
    Failed {
        /// The stream.
        stream: StreamName,
        /// What failed first.
        reason: String,
    },
    /// The journal was closed, or its writer has died.
    #[error("append to {stream}: the journal is closed")]
    Closed {
        /// The stream.
        stream: StreamName,
    },
}

/// Why events could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The journal was closed.
    #[error("read {stream}: the journal is closed")]
    Closed {
        /// The stream.
        stream: StreamName,
    },
    /// The index does not hold what it should; the next open with `rebuild_index` mends it.
    #[error("read {stream}: the index has no whole event {seq}")]
    Damaged {
        /// The stream.
        stream: StreamName,
        /// The event that should be there.
        seq: u64,
    },
    /// The index could not be read.
    #[error("read {stream}")]
    Index {
        /// The stream.
        stream: StreamName,
        /// What sled said.
        #[source]
        source: sled::Error,
    },
}

/// Why the journal was not closed cleanly; what was acknowledged is in the log all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CloseError {
    /// It had failed before, or the last sync failed.
    #[error("close the journal: {reason}")]
    Failed {
        /// What failed first.
        reason: String,
    },
    /// It was closed before, or its writer has died.
    #[error("close the journal: it is closed")]
    Closed,
}

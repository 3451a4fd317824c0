//! What can go wrong with a log, one enum per operation.
//!
//! Not here: deciding what is a torn tail and what is damage; `scan` does.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::lock::LockError;

/// A frame that was once written whole and no longer reads as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}, frame at byte {offset} (log_seq {log_seq} expected): {damage}", file.display())]
pub struct Corrupt {
    /// The segment that holds the bad frame.
    pub file: PathBuf,
    /// Where in the file the bad frame starts.
    pub offset: u64,
    /// The `log_seq` a good frame would have carried here.
    pub log_seq: u64,
    /// What is wrong with it.
    pub damage: Damage,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Damage {
    /// The checksum does not match the bytes.
    #[error("the checksum does not match")]
    Crc,
    /// The checksum matches but the line is not a frame.
    #[error("the line is not a frame")]
    Malformed,
    /// The frame is whole but another one belongs here.
    #[error("found log_seq {found}")]
    OutOfOrder {
        /// The `log_seq` that stands there.
        found: u64,
    },
    /// The frame's place in its batch contradicts the frames before it.
    #[error("the frame does not continue its batch")]
    BrokenBatch,
    /// A segment that was finished long ago ends inside a batch.
    #[error("a finished segment ends inside a batch")]
    UnfinishedBatch,
    /// The frames between the previous segment and this one are gone.
    #[error("a segment is missing: this one starts with log_seq {found}")]
    MissingSegment {
        /// The first `log_seq` of the segment that is there.
        found: u64,
    },
}

/// Why a log could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process holds the log.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something that was written whole is damaged.
    #[error("read the log: {0}")]
    Corrupt(#[from] Corrupt),
    /// The directory or a segment could not be read, created or cut.
    #[error("open the log at {}", path.display())]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Corrupt(corrupt) => Self::Corrupt(corrupt),
            ReadError::Io { path, source } => Self::Io { path, source },
            ReadError::Gone { .. } => unreachable!("opening reads from the first frame there is"),
        }
    }
}

/// Why a batch was not appended; unless it says `Failed`, the log is as it was before.
#[derive(Debug, Error)]
pub enum AppendError {
    /// A batch needs at least one payload.
    #[error("append an empty batch")]
    Empty,
    /// A payload must be one line.
    #[error("append payload {index}: it contains a newline")]
    Newline {
        /// The payload's place in the batch.
        index: usize,
    },
    /// The batch is larger than the configured bound.
    #[error("append {bytes} bytes as one batch: at most {max} are allowed")]
    TooLarge {
        /// The batch's size as written.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The disk has no room; the fragment that fitted was cut off again.
    #[error("append to {}: the disk is full", path.display())]
    DiskFull {
        /// The segment concerned.
        path: PathBuf,
    },
    /// A write or sync failed now or earlier; nothing is accepted any more.
    #[error("append to the failed log {}: {reason}", path.display())]
    Failed {
        /// The segment concerned.
        path: PathBuf,
        /// What failed first.
        reason: String,
    },
}

/// Why frames could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The frames asked for were removed by `truncate_before`.
    #[error("read from log_seq {asked}: the log starts with {first}")]
    Gone {
        /// Where reading was to begin.
        asked: u64,
        /// The first frame there is.
        first: u64,
    },
    /// Something that was written whole is damaged.
    #[error("read the log: {0}")]
    Corrupt(#[from] Corrupt),
    /// A segment could not be read.
    #[error("read the log at {}", path.display())]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why old segments could not be removed.
#[derive(Debug, Error)]
pub enum TruncateError {
    /// A write or sync failed earlier; nothing is removed any more.
    #[error("truncate the failed log: {reason}")]
    Failed {
        /// What failed first.
        reason: String,
    },
    /// A segment could not be removed.
    #[error("remove the segment {}", path.display())]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

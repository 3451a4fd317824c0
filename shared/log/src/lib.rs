//! An append-only log of single-line payloads that survives a crash at any byte.
//!
//! Used by the coordinator's journal and by the worker's outbox. A directory holds segments
//! `NNNNNNNN.log`, named by the `log_seq` of their first frame, and a `lock` file. One frame is one
//! line:
//!
//! ```text
//! <crc32 8 hex> <log_seq> <index>/<count> <payload bytes> <payload>\n
//! ```
//!
//! The CRC covers everything after the first space up to the newline. `index` of `count` is the
//! frame's place in the batch it was appended with, so `count - 1 - index` frames of that batch
//! still follow; a batch never spans two segments.
//!
//! A batch is one write and one `fdatasync`, and the next one is written only after that sync. So
//! at most the last batch of the last segment can be unacknowledged, and what a cut-off write
//! leaves there is known: a prefix of the batch, or sectors that read as zero. Exactly that is a
//! torn tail: it is cut at open and reported. Every other bad byte is [`Corrupt`], with file and
//! offset, and nothing is dropped.
//!
//! Not here: what a payload means, hashes, threads, async. A failed sync is never tried again: the
//! log refuses everything until the process starts anew and reads what the disk really holds.

mod disk;
mod error;
mod frame;
mod lock;
mod log;
mod read;
mod scan;
mod segment;

pub use disk::{Disk, RealDisk, is_full};
pub use error::{AppendError, Corrupt, Damage, OpenError, ReadError, TruncateError};
pub use lock::{Lock, LockError, Owner};
pub use log::{Log, Options, Report};
pub use read::{Frame, Frames};
pub use scan::Cut;

//! What can go wrong with artifacts, one enum per operation.
//!
//! Not here: what the caller does about it.

use std::io;
use std::path::PathBuf;

use ganger_shared::digest::Digest;
use thiserror::Error;

/// The store could not be opened.
#[derive(Debug, Error)]
#[error("open the artifact store at {}", path.display())]
pub struct OpenError {
    /// The directory concerned.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Why an upload did not begin.
#[derive(Debug, Error)]
pub enum BeginError {
    /// The artifact is larger than the bound.
    #[error("take artifact {sha256}: it has {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// The artifact.
        sha256: Digest,
        /// Its announced size.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// There is no room for it beside what the journal needs.
    #[error("take artifact {sha256}: {free_bytes} bytes free, {needed_bytes} needed")]
    DiskFull {
        /// The artifact.
        sha256: Digest,
        /// What is free.
        free_bytes: u64,
        /// What it needs, the journal's floor included.
        needed_bytes: u64,
    },
    /// Somebody else is uploading it right now.
    #[error("take artifact {sha256}: it is being uploaded already")]
    Busy {
        /// The artifact.
        sha256: Digest,
    },
    /// The partial file could not be opened.
    #[error("take artifact {sha256}")]
    Io {
        /// The artifact.
        sha256: Digest,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why a chunk was not taken; what was received before is kept.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The chunk leaves a hole.
    #[error("write artifact {sha256} at {offset}: only {received} bytes were received so far")]
    Gap {
        /// The artifact.
        sha256: Digest,
        /// Where the chunk was to go.
        offset: u64,
        /// Where the next chunk has to begin.
        received: u64,
    },
    /// The chunk goes beyond the announced size.
    #[error("write artifact {sha256}: {end} bytes, but {bytes} were announced")]
    TooLong {
        /// The artifact.
        sha256: Digest,
        /// Where the chunk would end.
        end: u64,
        /// The announced size.
        bytes: u64,
    },
    /// The disk is full.
    #[error("write artifact {sha256}: the disk is full")]
    DiskFull {
        /// The artifact.
        sha256: Digest,
    },
    /// The partial file could not be written.
    #[error("write artifact {sha256}")]
    Io {
        /// The artifact.
        sha256: Digest,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why an upload did not become an artifact.
#[derive(Debug, Error)]
pub enum FinishError {
    /// Bytes are missing; the upload can go on.
    #[error("finish artifact {sha256}: {received} of {bytes} bytes were received")]
    Incomplete {
        /// The artifact.
        sha256: Digest,
        /// What was received.
        received: u64,
        /// The announced size.
        bytes: u64,
    },
    /// The bytes are not those announced; they are thrown away.
    #[error("finish artifact {sha256}: the bytes hash to {found}")]
    WrongDigest {
        /// The announced digest.
        sha256: Digest,
        /// What the bytes hash to.
        found: Digest,
    },
    /// The file could not be read, synced or renamed.
    #[error("finish artifact {sha256}")]
    Io {
        /// The artifact.
        sha256: Digest,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why bytes were not stored.
#[derive(Debug, Error)]
pub enum PutError {
    /// They are too many, or there is no room for them.
    #[error(transparent)]
    Refused(#[from] BeginError),
    /// The disk filled up meanwhile.
    #[error("store artifact {sha256}: the disk is full")]
    DiskFull {
        /// The artifact.
        sha256: Digest,
    },
    /// The file that is to become an artifact could not be read.
    #[error("store {} as an artifact", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file could not be written, synced or renamed.
    #[error("store artifact {sha256}")]
    Io {
        /// The artifact.
        sha256: Digest,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why an artifact could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is not here, or was purged.
    #[error("read artifact {sha256}: it is not in the store")]
    Absent {
        /// The artifact.
        sha256: Digest,
    },
    /// Its file could not be read.
    #[error("read artifact {sha256}")]
    Io {
        /// The artifact.
        sha256: Digest,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// An artifact could not be removed.
#[derive(Debug, Error)]
#[error("purge artifact {sha256}")]
pub struct PurgeError {
    /// The artifact.
    pub sha256: Digest,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

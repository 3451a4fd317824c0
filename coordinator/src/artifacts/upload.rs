//! One upload: chunks in order, resumable after any interruption, whole or nothing at its end.
//!
//! The partial file is locked while it is written to, so that two uploads of one artifact do not
//! mix. Not here: where the chunks come from.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use ganger_log::is_full;
use ganger_shared::digest::ArtifactRef;

use super::reader::digest_of;
use super::{Artifacts, BeginError, FinishError, WriteError};

/// An upload under way; dropping it keeps what was received for the next try.
#[derive(Debug)]
pub struct Upload {
    store: Artifacts,
    expected: ArtifactRef,
    path: PathBuf,
    file: File,
    received: u64,
}

impl Upload {
    /// Begins an upload, or goes on with what a former one left.
    pub(super) fn begin(store: Artifacts, expected: ArtifactRef) -> Result<Self, BeginError> {
        let ArtifactRef { sha256, bytes } = expected;
        let path = store.partial(&sha256);
        let at = |source| BeginError::Io { sha256, source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(at)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BeginError::Busy { sha256 }),
            Err(TryLockError::Error(source)) => return Err(at(source)),
        }
        // Between opening and locking, a former upload may have finished and taken the file away.
        if !path.is_file() {
            return Err(BeginError::Busy { sha256 });
        }
        let mut received = file.metadata().map_err(at)?.len();
        if received > bytes {
            file.set_len(0).map_err(at)?;
            received = 0;
        }
        file.seek(SeekFrom::Start(received)).map_err(at)?;
        Ok(Self { store, expected, path, file, received })
    }

    /// How many bytes are here: where the next chunk begins.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Takes a chunk; what was received before is skipped.
    pub fn write_chunk(&mut self, offset: u64, chunk: &[u8]) -> Result<(), WriteError> {
        let ArtifactRef { sha256, bytes } = self.expected;
        let received = self.received;
        if offset > received {
            return Err(WriteError::Gap { sha256, offset, received });
        }
        let end = offset.saturating_add(chunk.len() as u64);
        if end > bytes {
            return Err(WriteError::TooLong { sha256, end, bytes });
        }
        let known = usize::try_from(received - offset).unwrap_or(usize::MAX);
        let new = chunk.get(known..).unwrap_or_default();
        if let Err(source) = self.file.write_all(new) {
            self.take_back().map_err(|source| WriteError::Io { sha256, source })?;
            return Err(if is_full(&source) {
                WriteError::DiskFull { sha256 }
            } else {
                WriteError::Io { sha256, source }
            });
        }
        self.received += new.len() as u64;
        Ok(())
    }

    /// Turns the upload into an artifact: digest compared, file and name on the disk.
    pub fn finish(self) -> Result<ArtifactRef, FinishError> {
        let ArtifactRef { sha256, bytes } = self.expected;
        if self.received < bytes {
            return Err(FinishError::Incomplete { sha256, received: self.received, bytes });
        }
        let at = |source| FinishError::Io { sha256, source };
        let found = digest_of(&self.file).map_err(at)?;
        if found != sha256 {
            fs::remove_file(&self.path).map_err(at)?;
            return Err(FinishError::WrongDigest { sha256, found });
        }
        self.file.sync_all().map_err(at)?;
        self.store.name(&self.path, &sha256).map_err(at)?;
        Ok(self.expected)
    }

    /// Removes what a failed write left of a chunk.
    fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.received)?;
        self.file.seek(SeekFrom::Start(self.received)).map(|_| ())
    }
}

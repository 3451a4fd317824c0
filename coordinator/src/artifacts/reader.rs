//! Reading an artifact in chunks.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ganger_shared::digest::Digest;
use sha2::{Digest as _, Sha256};

use super::ReadError;

/// The largest chunk, so that nobody asks for all of it at once.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// An open artifact; a purge meanwhile does not take it away.
#[derive(Debug)]
pub struct Reader {
    file: File,
    bytes: u64,
    sha256: Digest,
}

impl Reader {
    pub(super) fn open(path: &Path, sha256: &Digest) -> Result<Self, ReadError> {
        let at = |source: std::io::Error| {
            if source.kind() == ErrorKind::NotFound {
                ReadError::Absent { sha256: *sha256 }
            } else {
                ReadError::Io { sha256: *sha256, source }
            }
        };
        let file = File::open(path).map_err(at)?;
        let bytes = file.metadata().map_err(at)?.len();
        Ok(Self { file, bytes, sha256: *sha256 })
    }

    /// The artifact's size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads up to `len` bytes at an offset, at most 1 MiB; empty at and beyond the end.
    pub fn chunk(&self, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut chunk = vec![0; len.min(CHUNK_BYTES_MAX).min(left)];
        self.file.read_exact_at(&mut chunk, offset).map_err(|source| self.failed(source))?;
        Ok(chunk)
    }

    /// Says whether the bytes are still what the name says.
    pub fn is_intact(&self) -> Result<bool, ReadError> {
        let found = digest_of(&self.file).map_err(|source| self.failed(source))?;
        Ok(found == self.sha256)
    }

    fn failed(&self, source: std::io::Error) -> ReadError {
        ReadError::Io { sha256: self.sha256, source }
    }
}

/// The digest of a file's bytes, from its first to its last.
pub(super) fn digest_of(mut file: &File) -> std::io::Result<Digest> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

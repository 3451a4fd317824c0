//! The artifact store: bodies too large for an event, kept under the digest of their bytes.
//!
//! `<2 hex>/<64 hex>` are the artifacts, each whole, synced and never changed; `partial/` holds
//! uploads under way, which outlive a crash and are resumed where they stopped. An artifact is
//! durable before its digest is told, so an event may name it at once. Everything blocks on the
//! disk: call it where blocking is allowed.
//!
//! Not here: who may read or purge what, and how long anything is kept.

mod error;
mod reader;
mod upload;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ganger_log::is_full;
use ganger_shared::digest::{ArtifactRef, Digest};
use nix::sys::statvfs::statvfs;
use uuid::Uuid;

pub use error::{BeginError, FinishError, OpenError, PurgeError, PutError, ReadError, WriteError};
pub use reader::Reader;
pub use upload::Upload;

/// Where uploads are kept until they are whole.
const PARTIAL: &str = "partial";
/// What the file of [`Artifacts::put_bytes`] is called until it has its name.
const PUT: &str = "put-";

/// Bounds of an artifact store.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The largest artifact.
    pub artifact_bytes_max: u64,
    /// How much space is left free for the journal.
    pub floor_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { artifact_bytes_max: 1 << 30, floor_bytes: 64 << 20 }
    }
}

/// A handle to the store; it holds no state but where it is.
#[derive(Debug, Clone)]
pub struct Artifacts {
    dir: PathBuf,
    options: Options,
}

/// What an announced artifact needs.
#[derive(Debug)]
pub enum Begun {
    /// Nothing: it is here already.
    Held,
    /// Its bytes, from [`Upload::received`] on.
    Wanted(Upload),
}

impl Artifacts {
    /// Opens the store in `dir`, creates it when there is none.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let partial = dir.join(PARTIAL);
        let at = |source| OpenError { path: partial.clone(), source };
        fs::create_dir_all(&partial).map_err(at)?;
        for entry in fs::read_dir(&partial).map_err(at)? {
            let entry = entry.map_err(at)?;
            if entry.file_name().to_string_lossy().starts_with(PUT) {
                fs::remove_file(entry.path()).map_err(at)?;
            }
        }
        sync_dir(dir).map_err(at)?;
        Ok(Self { dir: dir.to_owned(), options })
    }

    /// Announces an artifact: it is held already, or its upload begins or goes on.
    pub fn begin(&self, expected: &ArtifactRef) -> Result<Begun, BeginError> {
        if self.has(&expected.sha256) {
            return Ok(Begun::Held);
        }
        self.room_for(expected)?;
        Upload::begin(self.clone(), expected.clone()).map(Begun::Wanted)
    }

    /// Stores bytes that are already in memory.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<ArtifactRef, PutError> {
        let artifact = ArtifactRef::of(bytes);
        if self.has(&artifact.sha256) {
            return Ok(artifact);
        }
        self.room_for(&artifact)?;
        let path = self.dir.join(PARTIAL).join(format!("{PUT}{}", Uuid::now_v7()));
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(source) = written.and_then(|()| self.name(&path, &artifact.sha256)) {
            // A leftover is removed by the next open.
            let _ = fs::remove_file(&path);
            return Err(if is_full(&source) {
                PutError::DiskFull { sha256: artifact.sha256 }
            } else {
                PutError::Io { sha256: artifact.sha256, source }
            });
        }
        Ok(artifact)
    }

    /// Makes a file an artifact: hashed, synced and moved here from its place on the same disk.
    pub fn put_file(&self, file: &Path) -> Result<ArtifactRef, PutError> {
        let unnamed = |source| PutError::File { path: file.to_owned(), source };
        let open = File::open(file).map_err(unnamed)?;
        let bytes = open.metadata().map_err(unnamed)?.len();
        let artifact = ArtifactRef { sha256: reader::digest_of(&open).map_err(unnamed)?, bytes };
        if self.has(&artifact.sha256) {
            fs::remove_file(file).map_err(unnamed)?;
            return Ok(artifact);
        }
        let max = self.options.artifact_bytes_max;
        if bytes > max {
            return Err(BeginError::TooLarge { sha256: artifact.sha256, bytes, max }.into());
        }
        let sha256 = artifact.sha256;
        let named = open.sync_all().and_then(|()| self.name(file, &sha256));
        named.map_err(|source| PutError::Io { sha256, source })?;
        Ok(artifact)
    }

    /// How many bytes of an unfinished upload are here.
    pub fn received(&self, sha256: &Digest) -> u64 {
        fs::metadata(self.partial(sha256)).map_or(0, |partial| partial.len())
    }

    /// Says whether an artifact is here, whole.
    pub fn has(&self, sha256: &Digest) -> bool {
        self.path(sha256).is_file()
    }

    /// The file that holds an artifact, for programs that read files; never to be written.
    pub fn file(&self, sha256: &Digest) -> Option<PathBuf> {
        let path = self.path(sha256);
        path.is_file().then_some(path)
    }

    /// Opens an artifact for reading.
    pub fn read(&self, sha256: &Digest) -> Result<Reader, ReadError> {
        Reader::open(&self.path(sha256), sha256)
    }

    /// Reads an artifact again from end to end and says whether it is still what its name says.
    pub fn is_intact(&self, sha256: &Digest) -> Result<bool, ReadError> {
        self.read(sha256)?.is_intact()
    }

    /// Removes an artifact; says whether it was there.
    pub fn purge(&self, sha256: &Digest) -> Result<bool, PurgeError> {
        let path = self.path(sha256);
        let at = |source| PurgeError { sha256: *sha256, source };
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(at(error)),
        }
        sync_dir(&self.shard(sha256)).map_err(at)?;
        Ok(true)
    }

    fn path(&self, sha256: &Digest) -> PathBuf {
        self.shard(sha256).join(sha256.to_string())
    }

    fn shard(&self, sha256: &Digest) -> PathBuf {
        self.dir.join(format!("{:02x}", sha256.as_bytes()[0]))
    }

    fn partial(&self, sha256: &Digest) -> PathBuf {
        self.dir.join(PARTIAL).join(sha256.to_string())
    }

    fn room_for(&self, artifact: &ArtifactRef) -> Result<(), BeginError> {
        let ArtifactRef { sha256, bytes } = *artifact;
        let max = self.options.artifact_bytes_max;
        if bytes > max {
            return Err(BeginError::TooLarge { sha256, bytes, max });
        }
        let stats =
            statvfs(&self.dir).map_err(|errno| BeginError::Io { sha256, source: errno.into() })?;
        let free_bytes = stats.blocks_available() * stats.fragment_size();
        let needed_bytes = bytes + self.options.floor_bytes;
        if free_bytes < needed_bytes {
            return Err(BeginError::DiskFull { sha256, free_bytes, needed_bytes });
        }
        Ok(())
    }

    /// Gives a whole and synced file its name, durably.
    fn name(&self, path: &Path, sha256: &Digest) -> io::Result<()> {
        let shard = self.shard(sha256);
        if !shard.is_dir() {
            fs::create_dir_all(&shard)?;
            sync_dir(&self.dir)?;
        }
        fs::rename(path, self.path(sha256))?;
        sync_dir(&shard)
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests;

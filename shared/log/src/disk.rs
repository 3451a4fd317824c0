//! The three things the log asks of a disk, so that a test can let them go wrong.
//!
//! Not here: opening, naming and removing files; those fail before anything is promised.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// What the log asks of the disk for every batch.
pub trait Disk: Send {
    /// Appends all bytes to the file, or says why not; part of them may have been written.
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;

    /// Returns only when the file's data and size are on the disk.
    fn sync(&mut self, file: &File) -> io::Result<()>;

    /// Says how many bytes an unprivileged process can still write below `dir`.
    fn free_bytes(&mut self, dir: &Path) -> io::Result<u64>;
}

/// The disk as the kernel gives it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn free_bytes(&mut self, dir: &Path) -> io::Result<u64> {
        let stats = statvfs(dir)?;
        Ok(stats.blocks_available() * stats.fragment_size())
    }
}

/// Says whether an error means that the disk, or this user's share of it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

//! Disk space kept back, so that stop and cancel can be recorded when the disk is full.
//!
//! Not here: deciding which events are that important.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::files::remove;

/// The reserve file and the space it stands for.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    floor_bytes: u64,
    present: bool,
}

impl Reserve {
    /// Finds the reserve a former process left, or none.
    pub fn find(path: PathBuf, bytes: u64, floor_bytes: u64) -> Self {
        let present = path.metadata().is_ok_and(|found| found.len() >= bytes);
        Self { path, bytes, floor_bytes, present }
    }

    /// Below how much free space only the essential is written. With the reserve given up, its
    /// space counts as used, or its release would open the door for everybody.
    pub fn floor(&self) -> u64 {
        self.floor_bytes + if self.present { 0 } else { self.bytes }
    }

    pub fn present(&self) -> bool {
        self.present
    }

    /// Gives the space up; says whether there was any.
    pub fn release(&mut self) -> io::Result<bool> {
        self.present = false;
        remove(&self.path)
    }

    /// Takes the space back if there is enough of it again.
    pub fn restore(&mut self, free_bytes: u64) -> io::Result<()> {
        if self.present || free_bytes < self.floor() {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?;
        if let Err(error) = allocate(&file, self.bytes) {
            remove(&self.path)?;
            return Err(error);
        }
        self.present = true;
        Ok(())
    }
}

/// Gives a file real blocks; where the file system cannot promise them, by writing.
fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let len = i64::try_from(bytes).map_err(io::Error::other)?;
    match fallocate(file, FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        Err(Errno::EOPNOTSUPP) => {
            let zeros = vec![0; 1 << 20];
            let mut left = bytes;
            while left > 0 {
                let part = left.min(1 << 20);
                file.write_all(&zeros[..usize::try_from(part).map_err(io::Error::other)?])?;
                left -= part;
            }
            file.sync_all()
        }
        Err(errno) => Err(errno.into()),
    }
}

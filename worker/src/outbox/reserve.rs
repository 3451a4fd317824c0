//! Room kept free for the reports of what already runs, for the day the disk is full.
//!
//! Not here: noticing that it is full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is kept free.
pub(super) const RESERVE_BYTES: usize = 8 << 20;
/// Free room beside the reserve before it is made again, so that it does not come and go.
const ROOM_BYTES: u64 = 4 * RESERVE_BYTES as u64;

/// A file whose only use is to be removed.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    there: bool,
}

impl Reserve {
    /// Makes the reserve, if there is room for it.
    pub(super) fn make(path: &Path) -> Self {
        let mut reserve = Self { path: path.to_owned(), there: false };
        reserve.refill(None);
        reserve
    }

    /// Whether the room is still kept.
    pub(super) fn is_there(&self) -> bool {
        self.there
    }

    /// Gives the room away; false where there was none left.
    pub(super) fn spend(&mut self) -> bool {
        std::mem::take(&mut self.there) && fs::remove_file(&self.path).is_ok()
    }

    /// Keeps the room again, when `free` says that there is plenty.
    pub(super) fn refill(&mut self, free: Option<u64>) {
        if !self.there && free.is_none_or(|free| free >= ROOM_BYTES) {
            // A reserve that cannot be made is a disk that is tight, which is what this says.
            self.there = self.write().is_ok();
            if !self.there {
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() == RESERVE_BYTES as u64) {
            return Ok(());
        }
        let mut file = File::create(&self.path)?;
        // Written, not only sized: a hole keeps no room.
        file.write_all(&vec![0xa5; RESERVE_BYTES])?;
        file.sync_all()
    }
}

//! The files of a journal's directory, and writing a small one so that it is whole or absent.
//!
//! Not here: what is in them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the parts of a journal are.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub dir: PathBuf,
    /// The truth, with the lock of the whole directory.
    pub log: PathBuf,
    /// Its index.
    pub sled: PathBuf,
    /// Exists while the index is being rebuilt: what it holds then is worth nothing.
    pub rebuilding: PathBuf,
    /// Up to where everything was read back and found good.
    pub verified: PathBuf,
    pub snapshots: PathBuf,
    /// Space kept for the day the disk is full.
    pub reserve: PathBuf,
}

impl Files {
    pub fn of(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            log: dir.join("log"),
            sled: dir.join("sled"),
            rebuilding: dir.join("sled.rebuilding"),
            verified: dir.join("verified"),
            snapshots: dir.join("snapshots"),
            reserve: dir.join("reserve"),
        }
    }
}

/// Writes a file under another name, syncs it, and gives it its name.
pub(super) fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut file = File::create(&new)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_dir_of(path)
}

/// Makes a file's name, or its absence, durable.
pub(super) fn sync_dir_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

/// Removes a file and does not mind its absence; says whether it was there.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

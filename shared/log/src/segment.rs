//! The files of a log: their names, their order, and making a new one durable.
//!
//! Not here: what is in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// One segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The `log_seq` of its first frame, also its name.
    pub first: u64,
    pub path: PathBuf,
    pub bytes: u64,
}

/// Lists the segments of a directory in the order they were written.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(first) = entry.file_name().to_str().and_then(first_of) {
            segments.push(Segment { first, path: entry.path(), bytes: entry.metadata()?.len() });
        }
    }
    segments.sort_by_key(|segment| segment.first);
    Ok(segments)
}

fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let named = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if named { digits.parse().ok() } else { None }
}

/// The name of the segment that starts with `first`.
pub(crate) fn path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:08}.log"))
}

/// Creates an empty segment and syncs it and its name.
pub(crate) fn create(dir: &Path, first: u64) -> io::Result<(Segment, File)> {
    let path = path(dir, first);
    let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
    file.sync_all()?;
    sync_dir(dir)?;
    Ok((Segment { first, path, bytes: 0 }, file))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

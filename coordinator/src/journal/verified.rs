//! The mark that says up to where the log was read back, or written and synced, and found good.
//!
//! Opening checks chains and the index only beyond it. A mark that is missing, damaged or of
//! another log costs a full check and nothing else. It also remembers how long the log once was.
//! Not here: the checking.

use std::fs;
use std::io;
use std::path::Path;

use super::anchor::Anchor;
use super::files::write_whole;

/// Reads the mark; none if there is none that can be trusted.
pub(super) fn read(path: &Path) -> Option<Anchor> {
    let text = fs::read_to_string(path).ok()?;
    let (crc, json) = text.trim_end().split_once(' ')?;
    if crc != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// Replaces the mark.
pub(super) fn write(path: &Path, anchor: &Anchor) -> io::Result<()> {
    let json = serde_json::to_string(anchor)?;
    let crc = format!("{:08x} ", crc32fast::hash(json.as_bytes()));
    write_whole(path, &[crc.as_bytes(), json.as_bytes(), b"\n"])
}

//! Anchors: what others have seen of this journal, and where it stands against that.
//!
//! A hash chain finds an edit and a gap; a journal that is whole but shorter than it once was is
//! found only by somebody outside who remembers. Not here: who remembers what.

use std::path::Path;

use ganger_log::{Frames, ReadError};
use ganger_shared::digest::Digest;

use super::record;

pub use ganger_shared::link::Anchor;

/// Where the journal stands against an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It holds the anchor's line and more, or a loss since then was accepted.
    Ahead,
    /// It ends with the anchor's line.
    Same,
    /// It does not reach the anchor: something that was acknowledged is gone.
    Behind,
    /// It holds another line at that place, or is another store.
    Forked,
}

/// Compares an anchor with a journal whose tip is given and whose log is in `log_dir`.
pub(super) fn standing(seen: &Anchor, tip: &Anchor, log_dir: &Path) -> Result<Standing, ReadError> {
    if let Some(known) = without_reading(seen, tip) {
        return Ok(known);
    }
    let same = hash_at(log_dir, seen.log_seq)? == Some(seen.hash);
    Ok(if same { Standing::Ahead } else { Standing::Forked })
}

/// The comparison as far as it needs no line but the last.
pub(super) fn without_reading(seen: &Anchor, tip: &Anchor) -> Option<Standing> {
    if seen.store_id != tip.store_id {
        return Some(Standing::Forked);
    }
    if seen.generation != tip.generation {
        let accepted = seen.generation < tip.generation;
        return Some(if accepted { Standing::Ahead } else { Standing::Behind });
    }
    if seen.log_seq > tip.log_seq {
        return Some(Standing::Behind);
    }
    (seen.log_seq == tip.log_seq).then_some(if seen.hash == tip.hash {
        Standing::Same
    } else {
        Standing::Forked
    })
}

/// The hash of the line at a place of the log; none if there is no such line.
pub(super) fn hash_at(log_dir: &Path, log_seq: u64) -> Result<Option<Digest>, ReadError> {
    let frame = Frames::of_dir(log_dir, log_seq)?.next().transpose()?;
    Ok(frame
        .filter(|frame| frame.log_seq == log_seq)
        .and_then(|frame| record::anchor_hash(&frame.payload)))
}

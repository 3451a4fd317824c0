//! Streaming frames from disk, from any `log_seq` on.
//!
//! Reading holds no lock and no part of the log in memory but the current batch, so it also serves
//! a reader in another process while the log is written. Not here: what the payloads mean.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec;

use crate::error::{Corrupt, Damage, ReadError};
use crate::scan::{Cut, Scanner, Step};
use crate::segment::{self, Segment};

/// One frame as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its number.
    pub log_seq: u64,
    /// The payload as it was appended.
    pub payload: String,
    /// The segment it is in.
    pub file: Arc<Path>,
    /// Where in the segment its line starts.
    pub offset: u64,
}

/// The frames from a `log_seq` on, up to the end the log had when reading began.
pub struct Frames {
    segments: vec::IntoIter<Segment>,
    from: u64,
    /// The first frame the next segment must start with; none before the first segment.
    next: Option<u64>,
    scanner: Option<(Scanner, Arc<Path>)>,
    batch: vec::IntoIter<Frame>,
    torn: Option<Cut>,
    failed: bool,
}

impl Frames {
    /// Reads a directory's frames without taking its lock; an unfinished batch at the end is not
    /// returned but told by [`Frames::torn`].
    pub fn of_dir(dir: &Path, from: u64) -> Result<Self, ReadError> {
        let segments =
            segment::list(dir).map_err(|source| ReadError::Io { path: dir.to_owned(), source })?;
        Self::new(segments, from)
    }

    pub(crate) fn new(mut segments: Vec<Segment>, from: u64) -> Result<Self, ReadError> {
        if let Some(first) = segments.first().map(|segment| segment.first)
            && from < first
        {
            return Err(ReadError::Gone { asked: from, first });
        }
        let before = segments.iter().take_while(|segment| segment.first <= from).count();
        segments.drain(..before.saturating_sub(1));
        Ok(Self {
            segments: segments.into_iter(),
            from,
            next: None,
            scanner: None,
            batch: Vec::new().into_iter(),
            torn: None,
            failed: false,
        })
    }

    /// The unfinished batch at the end, known once the iterator has ended.
    pub fn torn(&self) -> Option<&Cut> {
        self.torn.as_ref()
    }

    /// Loads the next batch; false at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if self.scanner.is_none() && !self.next_segment()? {
                return Ok(false);
            }
            let Some((scanner, file)) = &mut self.scanner else { return Ok(false) };
            match scanner.step()? {
                Step::Batch if scanner.next_log_seq() <= self.from => {}
                Step::Batch => {
                    self.batch = frames(scanner, file, self.from).into_iter();
                    return Ok(true);
                }
                Step::End => {
                    self.next = Some(scanner.next_log_seq());
                    self.scanner = None;
                }
                Step::Torn(cut) => {
                    self.torn = Some(cut);
                    self.scanner = None;
                }
            }
        }
    }

    fn next_segment(&mut self) -> Result<bool, ReadError> {
        let Some(segment) = self.segments.next() else { return Ok(false) };
        follows(&segment, self.next)?;
        let last = self.segments.len() == 0;
        let scanner = Scanner::open(&segment.path, segment.first, segment.bytes, last)?;
        let file: Arc<Path> = PathBuf::from(scanner.path()).into();
        self.scanner = Some((scanner, file));
        Ok(true)
    }
}

/// Refuses a segment that does not start where the one before it ended.
pub(crate) fn follows(segment: &Segment, next: Option<u64>) -> Result<(), Corrupt> {
    match next {
        Some(next) if next != segment.first => Err(Corrupt {
            file: segment.path.clone(),
            offset: 0,
            log_seq: next,
            damage: Damage::MissingSegment { found: segment.first },
        }),
        Some(_) | None => Ok(()),
    }
}

fn frames(scanner: &Scanner, file: &Arc<Path>, from: u64) -> Vec<Frame> {
    let wanted = scanner.frames().iter().filter(|located| located.log_seq >= from);
    wanted
        .map(|located| Frame {
            log_seq: located.log_seq,
            payload: scanner.payload(located).to_owned(),
            file: Arc::clone(file),
            offset: located.offset,
        })
        .collect()
}

impl Iterator for Frames {
    type Item = Result<Frame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        loop {
            if let Some(frame) = self.batch.next() {
                return Some(Ok(frame));
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

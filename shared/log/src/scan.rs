//! Reading one segment batch by batch, and the one judgement the log rests on: whether bad bytes
//! at its end are a write that was cut off or damage to something that was whole.
//!
//! Not here: the order of segments, and cutting; `log` does both.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Take};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Corrupt, Damage, ReadError};
use crate::frame::{self, Header};

/// The unit a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// A write that was cut off at the end of the last segment, never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment it is in.
    pub file: PathBuf,
    /// Where the unfinished batch starts.
    pub offset: u64,
    /// How many bytes of it were there.
    pub bytes: u64,
}

/// What the next step through a segment found.
pub(crate) enum Step {
    /// A whole batch, now in [`Scanner::frames`].
    Batch,
    /// The clean end.
    End,
    /// An unfinished batch up to the end.
    Torn(Cut),
}

/// A frame of the current batch.
pub(crate) struct Located {
    pub log_seq: u64,
    /// Where in the file its line starts.
    pub offset: u64,
    /// Where in the batch's bytes its payload is.
    pub payload: Range<usize>,
}

/// One pass through one segment.
pub(crate) struct Scanner {
    reader: BufReader<Take<File>>,
    path: PathBuf,
    /// Whether this is the last segment, the only one that may end in a torn tail.
    last: bool,
    offset: u64,
    next: u64,
    bytes: Vec<u8>,
    frames: Vec<Located>,
}

impl Scanner {
    /// Opens a segment for reading its first `limit` bytes.
    pub fn open(path: &Path, first: u64, limit: u64, last: bool) -> Result<Self, ReadError> {
        let file =
            File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Ok(Self {
            reader: BufReader::with_capacity(128 * 1024, file.take(limit)),
            path: path.to_owned(),
            last,
            offset: 0,
            next: first,
            bytes: Vec::new(),
            frames: Vec::new(),
        })
    }

    /// The `log_seq` of the frame after the batches read so far.
    pub fn next_log_seq(&self) -> u64 {
        self.next
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The frames of the batch the last step found.
    pub fn frames(&self) -> &[Located] {
        &self.frames
    }

    /// The payload of one of them.
    pub fn payload(&self, frame: &Located) -> &str {
        std::str::from_utf8(&self.bytes[frame.payload.clone()])
            .expect("only valid UTF-8 is parsed as a frame")
    }

    /// Reads the next whole batch.
    pub fn step(&mut self) -> Result<Step, ReadError> {
        self.bytes.clear();
        self.frames.clear();
        let mut count = 0;
        loop {
            let line_at = self.bytes.len();
            let read = self
                .reader
                .read_until(b'\n', &mut self.bytes)
                .map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
            if read == 0 && self.frames.is_empty() {
                return Ok(Step::End);
            }
            match self.accept(line_at, count) {
                Ok(header) if header.index + 1 == header.count => return Ok(self.finish()),
                Ok(header) => count = header.count,
                Err(damage) => return self.bad_tail(line_at, damage),
            }
        }
    }

    fn finish(&mut self) -> Step {
        self.offset += self.bytes.len() as u64;
        self.next += self.frames.len() as u64;
        Step::Batch
    }

    /// Takes the line starting at `line_at` as the next frame of the current batch.
    fn accept(&mut self, line_at: usize, count: u32) -> Result<Header, Damage> {
        let Some((b'\n', line)) = self.bytes[line_at..].split_last() else {
            return Err(Damage::UnfinishedBatch);
        };
        let header = check(line, self.next, self.frames.len(), count)?;
        self.frames.push(Located {
            log_seq: header.log_seq,
            offset: self.offset + line_at as u64,
            payload: line_at + header.payload_at..self.bytes.len() - 1,
        });
        Ok(header)
    }

    /// Decides what the bytes from the current batch on are, the first bad line at `line_at`.
    fn bad_tail(&mut self, line_at: usize, damage: Damage) -> Result<Step, ReadError> {
        let log_seq = self.next + self.frames.len() as u64;
        self.frames.clear();
        if self.last {
            self.reader
                .read_to_end(&mut self.bytes)
                .map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
            if self.was_cut_off(line_at, log_seq) {
                let bytes = self.bytes.len() as u64;
                return Ok(Step::Torn(Cut { file: self.path.clone(), offset: self.offset, bytes }));
            }
        }
        let offset = self.offset + line_at as u64;
        Err(Corrupt { file: self.path.clone(), offset, log_seq, damage }.into())
    }

    fn was_cut_off(&self, line_at: usize, log_seq: u64) -> bool {
        let bad = &self.bytes[line_at..];
        let index = u32::try_from(log_seq - self.next).expect("a batch counts its frames in u32");
        let prefix = !bad.contains(&b'\n') && frame::is_cut_off(bad, log_seq, index);
        prefix || (self.lost_sectors(line_at) && !self.later_batch(line_at))
    }

    /// Says whether the bad line holds a stretch of zeros that is exactly what sectors never
    /// written leave: from the batch's start or a sector's to a sector's or the file's end.
    fn lost_sectors(&self, line_at: usize) -> bool {
        let end = self.offset + self.bytes.len() as u64;
        let edge = |at: u64| at.is_multiple_of(SECTOR) || at == self.offset || at == end;
        let line = self.bytes[line_at..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        let mut at = self.offset + line_at as u64;
        line.chunk_by(|a, b| (*a == 0) == (*b == 0)).any(|run| {
            let from = at;
            at += run.len() as u64;
            run[0] == 0 && edge(from) && edge(at)
        })
    }

    /// Says whether a frame of a later batch follows: then the bad one had been synced before it.
    fn later_batch(&self, line_at: usize) -> bool {
        self.bytes[line_at..]
            .split(|&byte| byte == b'\n')
            .filter_map(|line| frame::parse(line).ok())
            .any(|header| header.log_seq - u64::from(header.index) != self.next)
    }
}

/// Parses a line and checks that it is frame `taken` of the batch that starts with `first`.
fn check(line: &[u8], first: u64, taken: usize, count: u32) -> Result<Header, Damage> {
    let header = frame::parse(line)?;
    if header.log_seq != first + taken as u64 {
        return Err(Damage::OutOfOrder { found: header.log_seq });
    }
    if header.index as usize != taken || (taken > 0 && header.count != count) {
        return Err(Damage::BrokenBatch);
    }
    Ok(header)
}

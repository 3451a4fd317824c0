//! Following the hash chains of all streams through the log.
//!
//! Not here: reading the log, and what is done about a bad event.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use ganger_log::{Corrupt, Damage, Frame};
use ganger_shared::digest::Digest;
use thiserror::Error;

use super::record::{self, GENESIS, Line, Record};

/// The first bad event, as `journal verify` names it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{kind} at log_seq {log_seq}, {} event {}, in {} at byte {offset}",
    stream.as_deref().unwrap_or("unreadable"), seq.unwrap_or(0), file.display()
)]
pub struct Bad {
    /// Its stream, if that can still be read.
    pub stream: Option<String>,
    /// Its number in the stream, if that can still be read.
    pub seq: Option<u64>,
    /// Its place in the log.
    pub log_seq: u64,
    /// The file it is in.
    pub file: PathBuf,
    /// Where in the file its line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: BadKind,
}

/// What is wrong with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadKind {
    /// Its hash is not the hash of its bytes.
    Hash,
    /// It does not name the hash of the event before it.
    Prev,
    /// Its line was damaged: the checksum is wrong, or it is no event at all.
    Crc,
    /// The events before it are missing.
    Gap,
    /// The index holds something else, or holds it although the log does not.
    SledDiffers,
}

impl fmt::Display for BadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hash => "hash",
            Self::Prev => "prev",
            Self::Crc => "crc",
            Self::Gap => "gap",
            Self::SledDiffers => "sled_differs",
        })
    }
}

/// Where a stream stands: the number and hash of its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tip {
    pub seq: u64,
    pub hash: Digest,
}

impl Tip {
    /// Where a stream stands before its first event.
    pub fn start() -> Self {
        Self { seq: 0, hash: Digest::from_bytes(GENESIS) }
    }
}

/// The tips of the streams met so far.
#[derive(Debug, Default)]
pub(super) struct Chain {
    tips: HashMap<String, Tip>,
}

impl Chain {
    /// Takes the next event of a stream, or says why it cannot be that. `before` finds the event
    /// before a stream's first one met here.
    pub fn accept(
        &mut self,
        record: &Record<'_>,
        before: impl FnOnce(&Record<'_>) -> Option<Tip>,
    ) -> Result<(), BadKind> {
        let known = self.tips.get(record.stream).copied();
        let tip = known.or_else(|| before(record)).unwrap_or_else(Tip::start);
        if !record.hash_is_true() {
            return Err(BadKind::Hash);
        }
        if record.seq != tip.seq + 1 {
            return Err(BadKind::Gap);
        }
        if record.prev_hash != tip.hash {
            return Err(BadKind::Prev);
        }
        let tip = Tip { seq: record.seq, hash: record.hash };
        match self.tips.get_mut(record.stream) {
            Some(known) => *known = tip,
            None => {
                self.tips.insert(record.stream.to_owned(), tip);
            }
        }
        Ok(())
    }

    /// The last event met of a stream.
    pub fn tip(&self, stream: &str) -> Tip {
        self.tips.get(stream).copied().unwrap_or_else(Tip::start)
    }

    /// How many streams were met.
    pub fn streams(&self) -> usize {
        self.tips.len()
    }
}

impl Bad {
    /// Names an event that stands whole in the log.
    pub(super) fn event(frame: &Frame, record: Option<&Record<'_>>, kind: BadKind) -> Self {
        Self {
            stream: record.map(|record| record.stream.to_owned()),
            seq: record.map(|record| record.seq),
            log_seq: frame.log_seq,
            file: frame.file.to_path_buf(),
            offset: frame.offset,
            kind,
        }
    }

    /// Names a frame the log refuses to read, as far as its text can still be understood.
    pub(super) fn frame(corrupt: &Corrupt) -> Self {
        let line = line_at(&corrupt.file, corrupt.offset).unwrap_or_default();
        let text = String::from_utf8_lossy(&line);
        let payload = text.find('{').map_or("", |at| &text[at..]);
        let record = match record::parse(payload) {
            Some(Line::Event(record)) => Some(record),
            Some(Line::Store(_)) | None => None,
        };
        let kind = match corrupt.damage {
            Damage::Crc | Damage::Malformed | Damage::BrokenBatch | Damage::UnfinishedBatch => {
                BadKind::Crc
            }
            Damage::OutOfOrder { .. } | Damage::MissingSegment { .. } => BadKind::Gap,
        };
        Self {
            stream: record.map(|record| record.stream.to_owned()),
            seq: record.map(|record| record.seq),
            log_seq: corrupt.log_seq,
            file: corrupt.file.clone(),
            offset: corrupt.offset,
            kind,
        }
    }
}

fn line_at(file: &Path, offset: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{BufRead, BufReader, Seek, SeekFrom};
    let mut reader = BufReader::new(std::fs::File::open(file)?);
    reader.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(line)
}

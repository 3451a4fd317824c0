//! Going through the log at open: every chain is followed, the index compared and completed.
//!
//! Not here: what is done when the index differs; that is `open`.

use std::path::Path;

use ganger_log::{Frame, Log};
use ganger_shared::digest::Digest;

use super::OpenError;
use super::chain::{Bad, BadKind, Chain, Tip};
use super::files::Files;
use super::index::{Applied, Entry, Index};
use super::record::{self, Line, Record};

/// How many bytes of lines are taken into the index at once while it is completed.
const CHUNK_BYTES: usize = 1 << 20;

/// What going through the log showed.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The store's id and generation.
    pub store: Option<(String, u64)>,
    /// The last line.
    pub last: Option<Applied>,
    /// How many lines the index lacked.
    pub inserted: u64,
}

/// Why going through the log ended early.
pub(super) enum WalkError {
    Open(OpenError),
    /// The index disagrees with the log, which is good so far.
    Differs {
        log_seq: u64,
    },
}

impl<E: Into<OpenError>> From<E> for WalkError {
    fn from(error: E) -> Self {
        Self::Open(error.into())
    }
}

/// One pass: up to `applied` a line must be in the index as it is, beyond it is taken in.
pub(super) struct Walk<'a> {
    sled: &'a Path,
    index: &'a mut Index,
    applied: u64,
    chain: Chain,
    walked: Walked,
}

impl<'a> Walk<'a> {
    /// Prepares a pass; `walked` is what is known from before its first line.
    pub fn new(files: &'a Files, index: &'a mut Index, applied: u64, walked: Walked) -> Self {
        Self { sled: &files.sled, index, applied, chain: Chain::default(), walked }
    }

    /// Goes through the log from a line on.
    pub fn go(mut self, log: &Log, from: u64) -> Result<Walked, WalkError> {
        let (mut pending, mut bytes) = (Vec::new(), 0);
        for frame in log.read_from(from)? {
            let frame = frame?;
            let hash = self.check(&frame)?;
            self.walked.last = Some(Applied { log_seq: frame.log_seq, hash });
            if frame.log_seq > self.applied {
                bytes += frame.payload.len();
                pending.push(frame);
            }
            if bytes >= CHUNK_BYTES {
                self.take_in(&pending)?;
                pending.clear();
                bytes = 0;
            }
        }
        self.take_in(&pending)?;
        Ok(self.walked)
    }

    /// Checks one line and returns its hash.
    fn check(&mut self, frame: &Frame) -> Result<Digest, WalkError> {
        match record::parse(&frame.payload) {
            Some(Line::Event(event)) => {
                self.check_event(frame, &event)?;
                Ok(event.hash)
            }
            Some(Line::Store(mark)) => {
                self.walked.store = Some((mark.store_id.to_owned(), mark.generation));
                Ok(Digest::of(frame.payload.as_bytes()))
            }
            None => Err(Bad::event(frame, None, BadKind::Crc).into()),
        }
    }

    fn check_event(&mut self, frame: &Frame, event: &Record<'_>) -> Result<(), WalkError> {
        let (index, applied) = (&*self.index, self.applied);
        match self.chain.accept(event, |event| before(index, applied, event)) {
            Ok(()) => {}
            // The event before may be missing from the index only: the log's own word is asked for.
            Err(BadKind::Gap | BadKind::Prev) if applied > 0 => {
                return Err(WalkError::Differs { log_seq: frame.log_seq });
            }
            Err(kind) => return Err(Bad::event(frame, Some(event), kind).into()),
        }
        let stored = index.get(event.stream, event.seq).map_err(|error| self.failed(error))?;
        let same = stored.as_ref().is_some_and(|(log_seq, line)| {
            *log_seq == frame.log_seq && line == frame.payload.as_bytes()
        });
        let good = if frame.log_seq <= applied { same } else { stored.is_none() };
        if good { Ok(()) } else { Err(WalkError::Differs { log_seq: frame.log_seq }) }
    }

    fn take_in(&mut self, frames: &[Frame]) -> Result<(), OpenError> {
        let entries: Vec<Entry<'_>> = frames
            .iter()
            .map(|frame| Entry { log_seq: frame.log_seq, line: &frame.payload })
            .collect();
        self.walked.inserted += entries.len() as u64;
        // An index built from nothing is thrown away by a crash, so it need not be synced yet.
        let taken = match self.applied {
            0 => self.index.insert_unsynced(&entries),
            _ => self.index.insert(&entries),
        };
        taken.map_err(|error| self.failed(error))
    }

    fn failed(&self, source: sled::Error) -> OpenError {
        OpenError::Index { path: self.sled.to_owned(), source }
    }
}

/// The event before this one, as the index has it; none where the log is read from its beginning,
/// since there the log itself must have shown it.
fn before(index: &Index, applied: u64, event: &Record<'_>) -> Option<Tip> {
    if applied == 0 || event.seq <= 1 {
        return None;
    }
    let (_, line) = index.get(event.stream, event.seq - 1).ok()??;
    match record::parse(std::str::from_utf8(&line).ok()?)? {
        Line::Event(record) => Some(Tip { seq: record.seq, hash: record.hash }),
        Line::Store(_) => None,
    }
}

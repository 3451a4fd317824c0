//! Checking a journal from its files, with or without a coordinator running on them.
//!
//! Every line of the log is read and its chain followed; the index is compared only when nobody
//! holds it. The first bad event is named. Nothing is repaired here.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ganger_log::{Cut, Frame, Frames, Lock, LockError, ReadError};
use thiserror::Error;

use super::Options;
use super::chain::{Bad, BadKind, Chain};
use super::counters::Counters;
use super::files::Files;
use super::index::{Applied, Index, Unusable};
use super::record::{self, Line};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// How many events are good, up to the first bad one.
    pub events: u64,
    /// In how many streams.
    pub streams: usize,
    /// The last good line of the log.
    pub log_seq: u64,
    /// The first bad event.
    pub first_bad: Option<Bad>,
    /// An unfinished write at the end; the next open cuts it off.
    pub torn: Option<Cut>,
    /// How the index was compared.
    pub index: IndexState,
}

/// How the index was compared with the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// It holds the log's lines up to here.
    Compared {
        /// The last line it has taken in.
        log_seq: u64,
    },
    /// A running coordinator holds it.
    Held {
        /// Its process id.
        pid: u32,
    },
    /// There is none; the next open builds it.
    Absent,
    /// It does not open; the next open builds it anew.
    Unusable {
        /// What it said.
        why: String,
    },
}

/// Why a journal could not be checked at all.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// There is no journal.
    #[error("verify {}: there is no journal", dir.display())]
    Absent {
        /// The directory.
        dir: PathBuf,
    },
    /// A file could not be read.
    #[error("verify {}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The index failed while it was being read.
    #[error("verify the index at {}", path.display())]
    Index {
        /// The index's directory.
        path: PathBuf,
        /// What sled said.
        #[source]
        source: sled::Error,
    },
}

/// The index as far as it can be compared; the lock is held for as long as it is open.
struct Held {
    index: Option<(Index, Applied)>,
    state: IndexState,
    _lock: Option<Lock>,
}

/// Checks the journal in `dir`; it changes nothing but what opening sled changes.
pub fn verify(dir: &Path) -> Result<VerifyReport, VerifyError> {
    let files = Files::of(dir);
    if !files.log.is_dir() {
        return Err(VerifyError::Absent { dir: dir.to_owned() });
    }
    let held = hold_index(&files)?;
    let mut report = VerifyReport {
        events: 0,
        streams: 0,
        log_seq: 0,
        first_bad: None,
        torn: None,
        index: held.state.clone(),
    };
    let mut chain = Chain::default();
    let failed = |source| VerifyError::Index { path: files.sled.clone(), source };
    match follow(&files, &held, &mut chain, &mut report) {
        Ok(()) => report.first_bad = surplus(&files, &held, &chain).map_err(failed)?,
        Err(Stop::Bad(bad)) => report.first_bad = Some(bad),
        Err(Stop::Sled(source)) => return Err(failed(source)),
        Err(Stop::Read(error)) => report.first_bad = Some(bad_read(error)?),
    }
    report.streams = chain.streams();
    Ok(report)
}

/// Why following the log ended early.
enum Stop {
    Bad(Bad),
    Sled(sled::Error),
    Read(ReadError),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

fn follow(
    files: &Files,
    held: &Held,
    chain: &mut Chain,
    report: &mut VerifyReport,
) -> Result<(), Stop> {
    let mut frames = Frames::of_dir(&files.log, 1)?;
    for frame in frames.by_ref() {
        let frame = frame?;
        match record::parse(&frame.payload) {
            Some(Line::Event(event)) => {
                let bad = |kind| Stop::Bad(Bad::event(&frame, Some(&event), kind));
                chain.accept(&event, |_| None).map_err(bad)?;
                if differs(held, &frame, (event.stream, event.seq)).map_err(Stop::Sled)? {
                    return Err(bad(BadKind::SledDiffers));
                }
                report.events += 1;
            }
            Some(Line::Store(_)) => {}
            None => return Err(Stop::Bad(Bad::event(&frame, None, BadKind::Crc))),
        }
        report.log_seq = frame.log_seq;
    }
    report.torn = frames.torn().cloned();
    Ok(())
}

/// Says whether the index should hold this line and does not.
fn differs(held: &Held, frame: &Frame, (stream, seq): (&str, u64)) -> sled::Result<bool> {
    let Some((index, applied)) = &held.index else {
        return Ok(false);
    };
    if frame.log_seq > applied.log_seq {
        return Ok(false);
    }
    let same = index.get(stream, seq)?.is_some_and(|(log_seq, line)| {
        log_seq == frame.log_seq && line == frame.payload.as_bytes()
    });
    Ok(!same)
}

/// Finds an event the index holds and the log does not.
fn surplus(files: &Files, held: &Held, chain: &Chain) -> sled::Result<Option<Bad>> {
    let Some((index, _)) = &held.index else {
        return Ok(None);
    };
    let longer =
        index.streams()?.into_iter().find(|(stream, tip, _)| tip.seq > chain.tip(stream).seq);
    Ok(longer.map(|(stream, _, log_seq)| Bad {
        seq: Some(chain.tip(&stream).seq + 1),
        stream: Some(stream),
        log_seq,
        file: files.sled.clone(),
        offset: 0,
        kind: BadKind::SledDiffers,
    }))
}

fn bad_read(error: ReadError) -> Result<Bad, VerifyError> {
    match error {
        ReadError::Corrupt(corrupt) => Ok(Bad::frame(&corrupt)),
        ReadError::Gone { first, .. } => Ok(Bad {
            stream: None,
            seq: None,
            log_seq: first,
            file: PathBuf::new(),
            offset: 0,
            kind: BadKind::Gap,
        }),
        ReadError::Io { path, source } => Err(VerifyError::Io { path, source }),
    }
}

fn hold_index(files: &Files) -> Result<Held, VerifyError> {
    let without = |state| Held { index: None, state, _lock: None };
    let lock = match Lock::take(&files.log.join("lock")) {
        Ok(lock) => lock,
        Err(LockError::Held { owner, .. }) => {
            return Ok(without(IndexState::Held { pid: owner.pid }));
        }
        Err(LockError::Io { path, source }) => return Err(VerifyError::Io { path, source }),
    };
    if !files.sled.is_dir() || files.rebuilding.exists() {
        return Ok(without(IndexState::Absent));
    }
    let options = Options::default();
    let settings = (options.cache_bytes, options.flush_at);
    let index = match Index::open(&files.sled, settings, &Arc::new(Counters::default())) {
        Ok(index) => index,
        Err(Unusable::InUse) => return Ok(without(IndexState::Held { pid: 0 })),
        Err(Unusable::Damaged(why)) => return Ok(without(IndexState::Unusable { why })),
    };
    let failed = |source| VerifyError::Index { path: files.sled.clone(), source };
    let Some(applied) = index.applied().map_err(failed)? else {
        return Ok(without(IndexState::Absent));
    };
    let state = IndexState::Compared { log_seq: applied.log_seq };
    Ok(Held { index: Some((index, applied)), state, _lock: Some(lock) })
}

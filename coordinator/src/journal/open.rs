//! Opening a journal: lock, repair, verify, and complete the index from the log.
//!
//! The log is the truth. An index that does not open, does not say how far it reaches or holds
//! something else is put aside and built anew; a log that is shorter than what was acknowledged is
//! refused. Everything done is in the report. Not here: going
//! through the log (`walk`), and writing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ganger_log::Log;
use ganger_shared::digest::Digest;
use uuid::Uuid;

use super::anchor::hash_at;
use super::chain::{Bad, BadKind};
use super::counters::Counters;
use super::files::{Files, remove, sync_dir_of};
use super::index::{Applied, Entry, FlushAt, Index, Unusable, remove_generating};
use super::record::StoreMark;
use super::reserve::Reserve;
use super::walk::{Walk, WalkError, Walked};
use super::{Anchor, OpenError, Options, verified};

/// sled writes a snapshot while it opens; on a disk without room for that it damages itself.
const OPEN_BYTES_MIN: u64 = 8 << 20;

/// What opening found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReport {
    /// What the log found and did.
    pub log: ganger_log::Report,
    /// Half-written sled snapshots that were removed.
    pub removed: Vec<PathBuf>,
    /// What became of the index.
    pub index: IndexOutcome,
    /// The first line that was checked against its chain and the index.
    pub verified_from: u64,
    /// A loss was accepted, and a generation begun that outranks it.
    pub loss_accepted: bool,
    /// The reserve is there; without it a full disk stops everything.
    pub reserve: bool,
    /// The last line of the journal.
    pub tip: Anchor,
}

/// What became of the index while opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexOutcome {
    /// It was as long as the log.
    Kept,
    /// It lacked the last lines of the log.
    Completed {
        /// How many.
        lines: u64,
    },
    /// It was built from the log.
    Rebuilt {
        /// What was wrong with the old one.
        why: String,
        /// Where the old one was put; none if there was none worth keeping.
        quarantine: Option<PathBuf>,
        /// How many lines it holds now.
        lines: u64,
    },
}

/// Everything the writer will own.
pub(super) struct Opened {
    pub files: Files,
    /// Before the log, whose lock must outlast the index.
    pub index: Index,
    pub log: Log,
    pub tip: Anchor,
    pub reserve: Reserve,
    pub counters: Arc<Counters>,
}

/// The parts of opening that outlast a single step.
struct Opening {
    files: Files,
    log: Log,
    sled: (u64, FlushAt),
    counters: Arc<Counters>,
}

/// Why the index has to be built from the log, and where the old one went.
struct Rebuild {
    why: String,
    quarantine: Option<PathBuf>,
}

/// The mark and the index as far as both can be believed.
struct Known {
    mark: Option<Anchor>,
    index: Index,
    applied: Option<Applied>,
    rebuild: Option<Rebuild>,
}

/// Opens the journal's parts, whole and in agreement.
pub(super) fn open(
    dir: &Path,
    options: Options,
    counters: &Arc<Counters>,
) -> Result<(Opened, OpenReport), OpenError> {
    let files = Files::of(dir);
    fs::create_dir_all(&files.snapshots).map_err(at(&files.snapshots))?;
    let (mut log, log_report) = Log::open(&files.log, options.log)?;
    let mut reserve =
        Reserve::find(files.reserve.clone(), options.reserve_bytes, options.floor_bytes);
    make_room(&files, &mut log, &mut reserve)?;
    let removed = remove_generating(&files.sled).map_err(at(&files.sled))?;
    let sled = (options.cache_bytes, options.flush_at);
    let mut opening = Opening { files, log, sled, counters: Arc::clone(counters) };
    let known = opening.known(options.rebuild_index, options.accept_loss)?;
    let (index, outcome, walked, verified_from) = opening.reconcile(known)?;
    let (tip, index) = opening.identify(index, walked, options.accept_loss)?;
    let opened = opening.finish(index, tip, reserve)?;
    let report = OpenReport {
        log: log_report,
        removed,
        index: outcome,
        verified_from,
        loss_accepted: options.accept_loss,
        reserve: opened.reserve.present(),
        tip: opened.tip.clone(),
    };
    Ok((opened, report))
}

/// Gives the reserve up if the index could not be opened otherwise.
fn make_room(files: &Files, log: &mut Log, reserve: &mut Reserve) -> Result<(), OpenError> {
    let mut free_bytes = log.free_bytes().map_err(at(&files.dir))?;
    if free_bytes < OPEN_BYTES_MIN && reserve.release().map_err(at(&files.reserve))? {
        free_bytes = log.free_bytes().map_err(at(&files.dir))?;
    }
    if free_bytes < OPEN_BYTES_MIN {
        let (dir, needed_bytes) = (files.dir.clone(), OPEN_BYTES_MIN);
        return Err(OpenError::NoSpace { dir, free_bytes, needed_bytes });
    }
    // Without a reserve the floor is higher; that is the answer to a full disk, not an error.
    let _ = reserve.restore(free_bytes);
    Ok(())
}

impl Opening {
    /// Reads the mark and opens the index, and holds both against the log's end.
    fn known(&self, rebuild_index: bool, accept_loss: bool) -> Result<Known, OpenError> {
        let mut mark = verified::read(&self.files.verified);
        let (mut index, mut rebuild) = self.open_index(rebuild_index)?;
        let mut applied = index.applied().map_err(self.sled_failed())?;
        let last = self.log.next_log_seq() - 1;
        let seen = applied.map_or(0, |applied| applied.log_seq);
        let seen = seen.max(mark.as_ref().map_or(0, |mark| mark.log_seq));
        if seen > last {
            if !accept_loss {
                let (dir, log_seq) = (self.files.dir.clone(), last);
                return Err(OpenError::LogBehindIndex { dir, log_seq, seen });
            }
            mark = None;
        }
        if let Some(marked) = &mark
            && hash_at(&self.files.log, marked.log_seq)? != Some(marked.hash)
        {
            mark = None;
        }
        if let Some(at) = applied
            && hash_at(&self.files.log, at.log_seq)? != Some(at.hash)
        {
            let why = format!("it is at another line {} than the log", at.log_seq);
            (index, rebuild) = self.put_aside(Some(index), why)?;
            applied = None;
        }
        Ok(Known { mark, index, applied, rebuild })
    }

    /// Opens the index, or an empty one in place of one that is of no use.
    fn open_index(&self, rebuild_index: bool) -> Result<(Index, Option<Rebuild>), OpenError> {
        if self.files.rebuilding.exists() {
            return self.put_aside(None, "a rebuild was not finished".to_owned());
        }
        if rebuild_index {
            return self.put_aside(None, "it was asked for".to_owned());
        }
        match Index::open(&self.files.sled, self.sled, &self.counters) {
            Ok(index) => Ok((index, None)),
            Err(Unusable::InUse) => Err(OpenError::IndexInUse { path: self.files.sled.clone() }),
            Err(Unusable::Damaged(why)) => self.put_aside(None, why),
        }
    }

    /// Renames the index out of the way and opens an empty one.
    fn put_aside(
        &self,
        index: Option<Index>,
        why: String,
    ) -> Result<(Index, Option<Rebuild>), OpenError> {
        drop(index);
        let sled = &self.files.sled;
        let quarantine = if self.files.rebuilding.exists() || !sled.exists() {
            match fs::remove_dir_all(sled) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(sled)(error));
                }
                Ok(()) | Err(_) => None,
            }
        } else {
            let aside = self.quarantine();
            fs::rename(sled, &aside).map_err(at(sled))?;
            Some(aside)
        };
        sync_dir_of(sled).map_err(at(sled))?;
        match Index::open(sled, self.sled, &self.counters) {
            Ok(index) => Ok((index, Some(Rebuild { why, quarantine }))),
            Err(Unusable::InUse) => Err(OpenError::IndexInUse { path: sled.clone() }),
            Err(Unusable::Damaged(why)) => {
                let source = sled::Error::Unsupported(why);
                Err(OpenError::Index { path: sled.clone(), source })
            }
        }
    }

    fn quarantine(&self) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.files.dir.join(format!("sled.quarantine.{}", now.as_millis()))
    }

    /// Goes through the log from where both the mark and the index are good; where the index turns
    /// out to differ, goes through all of it once more with an empty one.
    fn reconcile(&mut self, known: Known) -> Result<(Index, IndexOutcome, Walked, u64), OpenError> {
        let Known { mark, mut index, applied, rebuild } = known;
        let first = self.log.first_log_seq();
        let applied_seq = applied.map_or(0, |applied| applied.log_seq);
        let from = mark.as_ref().map_or(0, |mark| mark.log_seq).min(applied_seq) + 1;
        let mut rebuild = rebuild;
        if rebuild.is_none() && applied_seq > 0 {
            let store = mark.filter(|_| from > first);
            let known = Walked {
                store: store.map(|mark| (mark.store_id, mark.generation)),
                last: applied,
                inserted: 0,
            };
            match Walk::new(&self.files, &mut index, applied_seq, known).go(&self.log, from) {
                Ok(walked) => {
                    let outcome = match walked.inserted {
                        0 => IndexOutcome::Kept,
                        lines => IndexOutcome::Completed { lines },
                    };
                    return Ok((index, outcome, walked, from));
                }
                Err(WalkError::Open(error)) => return Err(error),
                Err(WalkError::Differs { log_seq }) => {
                    let why = format!("it differs from the log at {log_seq}");
                    (index, rebuild) = self.put_aside(Some(index), why)?;
                }
            }
        }
        let walked = self.rebuild(&mut index)?;
        let lines = walked.inserted;
        let outcome = match rebuild {
            Some(Rebuild { why, quarantine }) => IndexOutcome::Rebuilt { why, quarantine, lines },
            None if lines == 0 => IndexOutcome::Kept,
            None => {
                let why = "it was empty".to_owned();
                IndexOutcome::Rebuilt { why, quarantine: None, lines }
            }
        };
        Ok((index, outcome, walked, first))
    }

    /// Fills an empty index; a crash in the middle throws it away by the file that says so.
    fn rebuild(&mut self, index: &mut Index) -> Result<Walked, OpenError> {
        let (flag, first) = (self.files.rebuilding.clone(), self.log.first_log_seq());
        fs::write(&flag, b"").and_then(|()| sync_dir_of(&flag)).map_err(at(&flag))?;
        let walked = match Walk::new(&self.files, index, 0, Walked::default()).go(&self.log, first)
        {
            Ok(walked) => walked,
            Err(WalkError::Open(error)) => return Err(error),
            Err(WalkError::Differs { log_seq }) => {
                let path = self.files.sled.clone();
                let source = sled::Error::Unsupported(format!("it changed at {log_seq}"));
                return Err(OpenError::Index { path, source });
            }
        };
        index.sync().map_err(self.sled_failed())?;
        remove(&flag).and_then(|_| sync_dir_of(&flag)).map_err(at(&flag))?;
        Ok(walked)
    }

    /// Names the store, and begins its first generation or the one that outranks a loss.
    fn identify(
        &mut self,
        mut index: Index,
        walked: Walked,
        accept_loss: bool,
    ) -> Result<(Anchor, Index), OpenError> {
        let mark = match (walked.store, walked.last) {
            (Some((store_id, generation)), Some(last)) if !accept_loss => {
                let Applied { log_seq, hash } = last;
                return Ok((Anchor { store_id, generation, log_seq, hash }, index));
            }
            (Some((store_id, generation)), _) => (store_id, generation + 1),
            (None, None) => (Uuid::now_v7().to_string(), 1),
            (None, Some(last)) => {
                let file = self.files.log.clone();
                let (stream, seq, offset, kind) = (None, None, 0, BadKind::Gap);
                let log_seq = last.log_seq;
                return Err(Bad { stream, seq, log_seq, file, offset, kind }.into());
            }
        };
        let (store_id, generation) = mark;
        let line = StoreMark { store_id: &store_id, generation }.write();
        let log_seq = *self.log.append_batch(&[&line])?.start();
        index.insert(&[Entry { log_seq, line: &line }]).map_err(self.sled_failed())?;
        let hash = Digest::of(line.as_bytes());
        Ok((Anchor { store_id, generation, log_seq, hash }, index))
    }

    /// Syncs the index and marks everything as verified.
    fn finish(self, mut index: Index, tip: Anchor, reserve: Reserve) -> Result<Opened, OpenError> {
        index.sync().map_err(self.sled_failed())?;
        verified::write(&self.files.verified, &tip).map_err(at(&self.files.verified))?;
        let Self { files, log, counters, .. } = self;
        counters.opened(log.syncs());
        counters.file_written();
        Ok(Opened { files, index, log, tip, reserve, counters })
    }

    fn sled_failed(&self) -> impl Fn(sled::Error) -> OpenError + use<> {
        let path = self.files.sled.clone();
        move |source| OpenError::Index { path: path.clone(), source }
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |source| OpenError::Io { path: path.clone(), source }
}

//! The index over the log: sled, holding every event by stream and number.
//!
//! A key is the stream's name, a zero byte and the number, big-endian; a value is the `log_seq`,
//! big-endian, and the line as it stands in the log. The key of one zero byte says up to where the
//! log has been taken in; it changes in the same commit as the events. Commits are small and sled's
//! own file is synced by hand, because sled's flush is not: stack.md measured both.
//!
//! Not here: rebuilding (`open`), and the truth (`ganger_log`).

use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ganger_shared::digest::Digest;
use sled::{Batch, Db, IVec};

use super::chain::Tip;
use super::counters::Counters;
use super::record::{self, Line};
use super::{ReadError, StoredEvent, StreamName};

const APPLIED: &[u8] = &[0];
/// A commit larger than this is split: sled loses older events when a large one is cut off.
const COMMIT_BYTES_MAX: usize = 64 * 1024;
/// How long sled is given to let go of its file.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// How much may be in sled and not yet synced.
#[derive(Debug, Clone, Copy)]
pub struct FlushAt {
    /// So many events.
    pub events: usize,
    /// So many bytes.
    pub bytes: usize,
    /// For so long.
    pub after: Duration,
}

/// A line of the log on its way into the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub log_seq: u64,
    pub line: &'a str,
}

/// Up to where the log has been taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Applied {
    pub log_seq: u64,
    pub hash: Digest,
}

/// Why the index could not be opened.
pub(super) enum Unusable {
    /// Another handle has it open.
    InUse,
    /// It is damaged, or not ours.
    Damaged(String),
}

/// The open index, written by one owner.
pub(super) struct Index {
    db: Arc<Db>,
    data: File,
    flush_at: FlushAt,
    events: usize,
    bytes: usize,
    since: Option<Instant>,
    counters: Arc<Counters>,
}

/// Reading the index for as long as its owner keeps it open.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    db: Weak<Db>,
}

impl Index {
    /// Opens the index, or says why it is of no use; a panic inside sled counts as damage.
    pub fn open(
        dir: &Path,
        (cache_bytes, flush_at): (u64, FlushAt),
        counters: &Arc<Counters>,
    ) -> Result<Self, Unusable> {
        let damaged = |what: &dyn std::fmt::Display| Unusable::Damaged(what.to_string());
        let config = sled::Config::new().path(dir).cache_capacity(cache_bytes).flush_every_ms(None);
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let db = config.open()?;
            // An index with events but without this key was not written whole.
            let whole = db.get(APPLIED)?.is_some() || db.first()?.is_none();
            sled::Result::Ok((db, whole))
        }));
        let db = match opened {
            Ok(Ok((db, true))) => db,
            Ok(Ok((_, false))) => return Err(damaged(&"it does not say how far it reaches")),
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("acquire lock") => {
                return Err(Unusable::InUse);
            }
            Ok(Err(error)) => return Err(damaged(&error)),
            Err(_) => return Err(damaged(&"sled panicked while opening it")),
        };
        let data = File::open(dir.join("db")).map_err(|error| damaged(&error))?;
        let (db, counters) = (Arc::new(db), Arc::clone(counters));
        Ok(Self { db, data, flush_at, events: 0, bytes: 0, since: None, counters })
    }

    /// A handle for reading that does not keep the index open.
    pub fn reader(&self) -> Reader {
        Reader { db: Arc::downgrade(&self.db) }
    }

    /// Up to where the log has been taken in; none for an empty index.
    pub fn applied(&self) -> sled::Result<Option<Applied>> {
        let value = self.db.get(APPLIED)?;
        Ok(value.and_then(|value| {
            let (log_seq, hash) = value.split_first_chunk::<8>()?;
            let hash = Digest::from_bytes(hash.try_into().ok()?);
            Some(Applied { log_seq: u64::from_be_bytes(*log_seq), hash })
        }))
    }

    /// Takes lines of the log in, in small commits; each but the last is synced before the next.
    pub fn insert(&mut self, entries: &[Entry<'_>]) -> sled::Result<()> {
        let mut rest = entries;
        while !rest.is_empty() {
            if rest.len() < entries.len() {
                self.sync()?;
            }
            let (commit, after) = rest.split_at(commit_len(rest));
            self.commit(commit)?;
            rest = after;
        }
        Ok(())
    }

    /// Takes lines in without syncing in between: only for an index that a crash may throw away.
    pub fn insert_unsynced(&mut self, entries: &[Entry<'_>]) -> sled::Result<()> {
        let mut rest = entries;
        while !rest.is_empty() {
            let (commit, after) = rest.split_at(commit_len(rest));
            self.commit(commit)?;
            rest = after;
        }
        Ok(())
    }

    fn commit(&mut self, entries: &[Entry<'_>]) -> sled::Result<()> {
        let mut batch = Batch::default();
        for entry in entries {
            let Some(line) = record::parse(entry.line) else {
                continue;
            };
            let hash = match line {
                Line::Event(event) => {
                    batch.insert(key(event.stream, event.seq), value(entry));
                    event.hash
                }
                Line::Store(_) => Digest::of(entry.line.as_bytes()),
            };
            batch.insert(APPLIED, [&entry.log_seq.to_be_bytes()[..], hash.as_bytes()].concat());
            self.bytes += entry.line.len();
        }
        self.events += entries.len();
        self.since.get_or_insert_with(Instant::now);
        self.db.apply_batch(batch)
    }

    /// Until when the index must be synced; none when there is nothing to sync.
    pub fn sync_due(&self) -> Option<Instant> {
        let since = self.since?;
        let full = self.events >= self.flush_at.events || self.bytes >= self.flush_at.bytes;
        Some(if full { since } else { since + self.flush_at.after })
    }

    /// Brings everything taken in so far to the disk.
    pub fn sync(&mut self) -> sled::Result<()> {
        self.db.flush()?;
        self.data.sync_data()?;
        self.counters.index_synced();
        (self.events, self.bytes, self.since) = (0, 0, None);
        Ok(())
    }

    /// The stored value of an event: `log_seq` and line.
    pub fn get(&self, stream: &str, seq: u64) -> sled::Result<Option<(u64, IVec)>> {
        Ok(self.db.get(key(stream, seq))?.as_ref().and_then(split))
    }

    /// The last event of a stream.
    pub fn tip(&self, stream: &str) -> sled::Result<Tip> {
        tip(&self.db, stream)
    }

    /// All streams with their last event, and where in the log that is.
    pub fn streams(&self) -> sled::Result<Vec<(String, Tip, u64)>> {
        streams(&self.db, "")
    }
}

impl Reader {
    /// Reads a stream's events from a number on.
    pub fn read(
        &self,
        stream: &StreamName,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let Some(db) = self.db.upgrade() else {
            return Err(ReadError::Closed { stream: stream.clone() });
        };
        let from_seq = from_seq.max(1);
        let range = db.range(key(stream.as_str(), from_seq)..=key(stream.as_str(), u64::MAX));
        let mut events: Vec<StoredEvent> = Vec::new();
        for (stored, seq) in range.take(limit).zip(from_seq..) {
            let (_, value) =
                stored.map_err(|source| ReadError::Index { stream: stream.clone(), source })?;
            let before = events.last().map(|event| event.hash);
            let event = event(&value, seq, before)
                .ok_or_else(|| ReadError::Damaged { stream: stream.clone(), seq })?;
            events.push(event);
        }
        Ok(events)
    }

    /// The hash of one event; none if there is no such event, or the journal is closed.
    pub fn hash(&self, stream: &StreamName, seq: u64) -> Option<Digest> {
        let events = self.read(stream, seq, 1).ok()?;
        events.first().map(|event| event.hash)
    }

    /// The streams whose names begin with `prefix`, and the number of their last event.
    pub fn streams(&self, prefix: &str) -> Vec<(StreamName, u64)> {
        let Some(db) = self.db.upgrade() else {
            return Vec::new();
        };
        let all = streams(&db, prefix).unwrap_or_default();
        all.into_iter().filter_map(|(name, tip, _)| Some((name.parse().ok()?, tip.seq))).collect()
    }
}

/// How many of the entries go into the next commit: at least one, and no more than fit.
fn commit_len(entries: &[Entry<'_>]) -> usize {
    let mut bytes = 0;
    let fitting = entries.iter().take_while(|entry| {
        bytes += entry.line.len();
        bytes <= COMMIT_BYTES_MAX
    });
    fitting.count().max(1)
}

fn key(stream: &str, seq: u64) -> Vec<u8> {
    [stream.as_bytes(), &[0], &seq.to_be_bytes()].concat()
}

fn value(entry: &Entry<'_>) -> Vec<u8> {
    [&entry.log_seq.to_be_bytes(), entry.line.as_bytes()].concat()
}

fn split(value: &IVec) -> Option<(u64, IVec)> {
    let log_seq = *value.first_chunk::<8>()?;
    let line = value.subslice(8, value.len() - 8);
    Some((u64::from_be_bytes(log_seq), line))
}

/// Reads a stored event that must be number `seq` and follow `before`.
fn event(value: &[u8], seq: u64, before: Option<Digest>) -> Option<StoredEvent> {
    let line = std::str::from_utf8(value.get(8..)?).ok()?;
    let Line::Event(record) = record::parse(line)? else {
        return None;
    };
    let follows = before.is_none_or(|hash| hash == record.prev_hash);
    (record.seq == seq && follows).then(|| StoredEvent {
        seq,
        body: record.body.to_owned(),
        hash: record.hash,
    })
}

fn tip(db: &Db, stream: &str) -> sled::Result<Tip> {
    let last = db.range(key(stream, 0)..=key(stream, u64::MAX)).next_back().transpose()?;
    Ok(last.and_then(|(_, value)| tip_of(&value)).unwrap_or_else(Tip::start))
}

fn tip_of(value: &[u8]) -> Option<Tip> {
    match record::parse(std::str::from_utf8(value.get(8..)?).ok()?)? {
        Line::Event(record) => Some(Tip { seq: record.seq, hash: record.hash }),
        Line::Store(_) => None,
    }
}

/// Hops from stream to stream, so the cost is that of the streams, not of their events.
fn streams(db: &Db, prefix: &str) -> sled::Result<Vec<(String, Tip, u64)>> {
    let mut found = Vec::new();
    let mut from = if prefix.is_empty() { vec![1] } else { prefix.as_bytes().to_vec() };
    while let Some((first, _)) = db.range(from..).next().transpose()? {
        let end = first.iter().position(|&byte| byte == 0).unwrap_or(first.len());
        let Ok(stream) = std::str::from_utf8(&first[..end]) else {
            break;
        };
        if !stream.starts_with(prefix) {
            break;
        }
        let last = db.range(key(stream, 0)..=key(stream, u64::MAX)).next_back().transpose()?;
        if let Some((tip, log_seq)) = last.and_then(|(_, value)| {
            Some((tip_of(&value)?, u64::from_be_bytes(*value.first_chunk::<8>()?)))
        }) {
            found.push((stream.to_owned(), tip, log_seq));
        }
        from = [stream.as_bytes(), &[1]].concat();
    }
    Ok(found)
}

/// Waits, within bounds, until nobody has the index open: sled's own threads let go of its file
/// only some time after the last handle is gone, and a reader may still be at work.
pub(super) fn wait_for_release(dir: &Path) {
    // Where there is no file nobody can hold it; where it cannot be opened sled will say why.
    let Ok(file) = File::open(dir.join("db")) else { return };
    let until = Instant::now() + RELEASE_WITHIN;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < until {
        #[expect(clippy::disallowed_methods, reason = "a lock has no event to wait for; bounded")]
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes the half-written snapshots that would keep sled from ever opening again.
pub(super) fn remove_generating(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(&path)?;
            removed.push(path);
        }
    }
    Ok(removed)
}

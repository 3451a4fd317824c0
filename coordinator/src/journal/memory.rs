//! A journal without a disk, for tests of those who append: same numbers, same hashes, same
//! refusals, gone with its last handle.
//!
//! Not here: durability. Its state lives in a `watch` channel, which changes it in one step and
//! shares it between handles without a lock of our own.

use std::collections::BTreeMap;

use ganger_shared::digest::Digest;
use tokio::sync::watch;

use super::chain::Tip;
use super::{
    Anchor, AppendError, Committed, Snapshot, Standing, StoredEvent, StreamName, anchor, record,
};

/// A handle to a journal in memory; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    state: watch::Sender<State>,
    /// Appends wait while it is.
    held: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    streams: BTreeMap<StreamName, Vec<StoredEvent>>,
    snapshots: BTreeMap<(StreamName, u32), Snapshot>,
    /// The hashes by place in the log, from 1.
    hashes: Vec<Digest>,
    tip: Anchor,
    /// How many more appends are taken before the journal fails.
    left: Option<u64>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new("memory")
    }
}

impl MemoryJournal {
    /// Begins an empty journal with this store id.
    pub fn new(store_id: &str) -> Self {
        let hash = Digest::of(store_id.as_bytes());
        let tip = Anchor { store_id: store_id.to_owned(), generation: 1, log_seq: 1, hash };
        let state = State {
            streams: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            hashes: vec![hash],
            tip,
            left: None,
        };
        Self { state: watch::Sender::new(state), held: watch::Sender::new(false) }
    }

    /// Lets the journal fail after so many more appends, as a disk would; none lets it work again.
    pub fn fail_after(&self, appends: Option<u64>) {
        self.state.send_modify(|state| state.left = appends);
    }

    /// Lets appends wait, as a disk that stalls would, or go on.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Returns when appends do not wait (any more).
    pub(super) async fn unheld(&self) {
        // The sender lives as long as this handle, so that it cannot be gone.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }

    /// Appends as [`super::Journal::append`] does, at once.
    pub fn append(
        &self,
        stream: &StreamName,
        expected_seq: u64,
        bodies: &[String],
    ) -> Result<Committed, AppendError> {
        let mut answer = Err(AppendError::Closed { stream: stream.clone() });
        self.state.send_modify(|state| answer = state.append(stream, expected_seq, bodies));
        answer
    }

    /// Reads as [`super::Journal::read`] does.
    pub fn read(&self, stream: &StreamName, from_seq: u64, limit: usize) -> Vec<StoredEvent> {
        let state = self.state.borrow();
        let events = state.streams.get(stream).into_iter().flatten();
        events.filter(|event| event.seq >= from_seq).take(limit).cloned().collect()
    }

    /// Lists as [`super::Journal::streams`] does.
    pub fn streams(&self, prefix: &str) -> Vec<(StreamName, u64)> {
        let state = self.state.borrow();
        let named = state.streams.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
        named.map(|(name, events)| (name.clone(), events.len() as u64)).collect()
    }

    /// The place of the last event.
    pub fn tip(&self) -> Anchor {
        self.state.borrow().tip.clone()
    }

    /// Compares as [`super::Journal::check_anchor`] does.
    pub fn check_anchor(&self, seen: &Anchor) -> Standing {
        let state = self.state.borrow();
        anchor::without_reading(seen, &state.tip).unwrap_or_else(|| {
            let place = usize::try_from(seen.log_seq.wrapping_sub(1)).unwrap_or(usize::MAX);
            let same = state.hashes.get(place) == Some(&seen.hash);
            if same { Standing::Ahead } else { Standing::Forked }
        })
    }

    /// Keeps a snapshot; says whether the event it was taken at exists.
    pub fn save_snapshot(&self, stream: &StreamName, snapshot: &Snapshot) -> bool {
        self.state.send_if_modified(|state| {
            let known = state.streams.get(stream).map_or(0, Vec::len) as u64;
            if snapshot.seq == 0 || snapshot.seq > known {
                return false;
            }
            state.snapshots.insert((stream.clone(), snapshot.schema), snapshot.clone());
            true
        })
    }

    /// The snapshot kept last of a stream in a schema.
    pub fn load_snapshot(&self, stream: &StreamName, schema: u32) -> Option<Snapshot> {
        self.state.borrow().snapshots.get(&(stream.clone(), schema)).cloned()
    }
}

impl State {
    fn append(
        &mut self,
        stream: &StreamName,
        expected: u64,
        bodies: &[String],
    ) -> Result<Committed, AppendError> {
        super::Limits::DEFAULT.check(stream, bodies)?;
        let events = self.streams.entry(stream.clone()).or_default();
        let actual = events.len() as u64;
        if expected != actual {
            return Err(AppendError::WrongSeq { stream: stream.clone(), expected, actual });
        }
        match &mut self.left {
            Some(0) => {
                let reason = "the test said so".to_owned();
                return Err(AppendError::Failed { stream: stream.clone(), reason });
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let mut tip =
            events.last().map_or_else(Tip::start, |last| Tip { seq: last.seq, hash: last.hash });
        for body in bodies {
            let seq = tip.seq + 1;
            let (_, hash) = record::write(stream.as_str(), seq, tip.hash, body);
            events.push(StoredEvent { seq, body: body.clone(), hash });
            self.hashes.push(hash);
            tip = Tip { seq, hash };
        }
        self.tip.log_seq += bodies.len() as u64;
        self.tip.hash = tip.hash;
        Ok(Committed { first_seq: expected + 1, last_seq: tip.seq, anchor: self.tip.clone() })
    }
}

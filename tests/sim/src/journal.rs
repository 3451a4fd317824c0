//! The journal as its contract says: batches are whole, in order, and durable when acknowledged.
//!
//! What was not acknowledged when the process dies is there or not, the older before the newer. Not
//! here: frames, hashes and files; the store's own tests have those.

use std::collections::{BTreeMap, VecDeque};

use ganger_shared::digest::Digest;
use ganger_shared::event::{Envelope, FleetEvent, RunEvent};
use ganger_shared::ids::RunId;
use ganger_shared::link::Anchor;

/// Batches that one sync makes durable.
const GROUP: usize = 16;

/// One batch.
#[derive(Debug, Clone)]
pub(crate) enum Batch {
    Run { run: RunId, before: u64, events: Vec<Envelope<RunEvent>> },
    Fleet(FleetEvent),
}

/// The coordinator's disk, and what is on its way there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    pub(crate) runs: BTreeMap<RunId, Vec<Envelope<RunEvent>>>,
    pub(crate) fleet: Vec<FleetEvent>,
    log_seq: u64,
    waiting: VecDeque<Batch>,
    syncing: Vec<Batch>,
}

impl Journal {
    pub(crate) fn anchor(&self) -> Anchor {
        Anchor {
            store_id: "store".to_owned(),
            generation: 1,
            log_seq: self.log_seq,
            hash: Digest::from_bytes([0; 32]),
        }
    }

    pub(crate) fn enqueue(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    /// Begins a sync of what waits, unless one is under way; whether it did.
    pub(crate) fn begin_sync(&mut self) -> bool {
        if !self.syncing.is_empty() || self.waiting.is_empty() {
            return false;
        }
        let group = self.waiting.len().min(GROUP);
        self.syncing = self.waiting.drain(..group).collect();
        true
    }

    /// What was being synced is durable.
    pub(crate) fn synced(&mut self) -> Vec<Batch> {
        let batches = std::mem::take(&mut self.syncing);
        for batch in &batches {
            self.keep(batch);
        }
        batches
    }

    /// The process is gone: the first so many of what was under way made it to the disk.
    pub(crate) fn crashed(&mut self, made_it: usize) -> Vec<Batch> {
        let mut batches = std::mem::take(&mut self.syncing);
        self.waiting.clear();
        batches.truncate(made_it);
        for batch in &batches {
            self.keep(batch);
        }
        batches
    }

    pub(crate) fn under_way(&self) -> usize {
        self.syncing.len()
    }

    fn keep(&mut self, batch: &Batch) {
        self.log_seq += 1;
        match batch {
            Batch::Run { run, events, .. } => {
                self.runs.entry(run.clone()).or_default().extend(events.iter().cloned());
            }
            Batch::Fleet(event) => self.fleet.push(event.clone()),
        }
    }
}

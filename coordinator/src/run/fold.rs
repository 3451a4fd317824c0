//! Folding a run from its snapshot and its events: at the start, and after a refused batch.

use ganger_coordinator_core::run::{FoldError, Run};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::limits;
use thiserror::Error;

use super::{SNAPSHOT_EVERY, State};
use crate::journal::{ReadError, Snapshot};

/// The version of the state's encoding. A snapshot of another version is not loaded; the events are.
const SCHEMA: u32 = 1;

/// Why a run cannot be folded.
#[derive(Debug, Error)]
pub enum Error {
    /// The store does not give its events.
    #[error("read the run's events")]
    Read(#[from] ReadError),
    /// An event is not one this build knows.
    #[error("event {seq} of {stream} is not readable: {source}")]
    Unreadable {
        /// The stream.
        stream: String,
        /// Its place.
        seq: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// An event does not fit onto the ones before.
    #[error("event {seq} of {stream} does not apply: {source}")]
    Fold {
        /// The stream.
        stream: String,
        /// Its place.
        seq: u64,
        /// Why.
        source: FoldError,
    },
}

impl State {
    pub(super) fn fold(&mut self) -> Result<(), Error> {
        self.run = self.snapshot().unwrap_or_default();
        self.snapshot_at = self.run.sequence();
        loop {
            let from = self.run.sequence() + 1;
            let page = self.house.store.read(&self.stream, from, limits::PAGE)?;
            if page.is_empty() {
                break;
            }
            for stored in page {
                let (stream, seq) = (self.stream.to_string(), stored.seq);
                let envelope: Envelope<RunEvent> = serde_json::from_str(&stored.body)
                    .map_err(|source| Error::Unreadable { stream: stream.clone(), seq, source })?;
                self.run
                    .apply(seq, &envelope)
                    .map_err(|source| Error::Fold { stream, seq, source })?;
            }
        }
        self.run.settle();
        Ok(())
    }

    /// The newest snapshot that can be read; a bad one is only slower, never wrong.
    fn snapshot(&self) -> Option<Run> {
        let loaded = self.house.store.load_snapshot(&self.stream, SCHEMA).ok()?.snapshot?;
        serde_json::from_slice(&loaded.bytes).ok()
    }

    pub(super) fn snapshot_if_due(&mut self) {
        let seq = self.run.sequence();
        let over = self.run.state().terminal() && seq > self.snapshot_at;
        if seq - self.snapshot_at < SNAPSHOT_EVERY && !over {
            return;
        }
        let Ok(bytes) = serde_json::to_vec(&self.run) else { return };
        match self.house.store.save_snapshot(&self.stream, &Snapshot { seq, schema: SCHEMA, bytes }) {
            Ok(()) => self.snapshot_at = seq,
            Err(error) => tracing::warn!(run = %self.id, %error, "no snapshot was saved"),
        }
    }
}

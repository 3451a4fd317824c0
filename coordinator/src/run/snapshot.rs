//! When a run's state is written down whole, so that a start need not fold all of its events.
//!
//! The writing waits for the disk, so it goes on beside the actor. Not here: reading one (`fold`).

use ganger_coordinator_core::run::Run;
use tokio::task::JoinHandle;

use super::State;
use super::fold::SCHEMA;
use crate::journal::Snapshot;

/// Events between two snapshots of a small state.
const EVERY: u64 = 512;
/// Bytes of state that one more event between two snapshots pays for.
const BYTES_PER_EVENT: u64 = 1 << 10;

/// What is known of a run's snapshots.
#[derive(Default)]
pub(super) struct Snapshots {
    /// The last event in the newest one.
    pub(super) at: u64,
    /// Its size.
    pub(super) bytes: u64,
    writing: Option<JoinHandle<()>>,
}

impl Snapshots {
    /// A large state is written more rarely, so that no event costs more than its share.
    fn due(&self, run: &Run) -> bool {
        let since = run.sequence().saturating_sub(self.at);
        let often = since >= EVERY.max(self.bytes / BYTES_PER_EVENT);
        let busy = self.writing.as_ref().is_some_and(|writing| !writing.is_finished());
        !busy && (often || (run.state().terminal() && since > 0))
    }
}

impl State {
    pub(super) fn snapshot_if_due(&mut self) {
        if !self.snapshots.due(&self.run) {
            return;
        }
        let seq = self.run.sequence();
        let bytes = match serde_json::to_vec(&self.run) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(run = %self.id, %error, "a state was not written out");
                return;
            }
        };
        (self.snapshots.at, self.snapshots.bytes) = (seq, bytes.len() as u64);
        let (store, stream) = (self.house.store.clone(), self.stream.clone());
        self.snapshots.writing = Some(tokio::task::spawn_blocking(move || {
            let snapshot = Snapshot { seq, schema: SCHEMA, bytes };
            if let Err(error) = store.save_snapshot(&stream, &snapshot) {
                tracing::warn!(%stream, %error, "no snapshot was saved");
            }
        }));
    }
}

//! Writes the fleet's facts beside its work: a slow disk must not make beats late.

use ganger_shared::actor::Actor;
use ganger_shared::event::{Envelope, FleetEvent};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::journal::{AppendError, EventStore, StreamName};

/// Facts that may wait to be written. More are dropped and counted in the log: they are for people,
/// nothing is decided on them.
const WAITING: usize = 1_024;

/// The way to the task that writes.
pub(super) struct Recorder {
    queue: mpsc::Sender<FleetEvent>,
}

impl Recorder {
    pub(super) fn start(store: EventStore, clock: Clock) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(store, clock, waiting));
        Self { queue }
    }

    pub(super) fn record(&self, event: FleetEvent) {
        if self.queue.try_send(event).is_err() {
            tracing::warn!(limit = WAITING, "a fact about the fleet was not written down");
        }
    }
}

async fn write(store: EventStore, clock: Clock, mut waiting: mpsc::Receiver<FleetEvent>) {
    let stream = StreamName::fleet();
    let tip = store.streams(stream.as_str());
    let mut seq = tip.first().map_or(0, |(_, seq)| *seq);
    while let Some(event) = waiting.recv().await {
        let envelope = Envelope { at: clock.utc(), by: Actor::Coordinator, event };
        let body = serde_json::to_string(&envelope).expect("an event is plain data");
        match store.append(&stream, seq, vec![body]).await {
            Ok(committed) => seq = committed.last_seq,
            Err(AppendError::WrongSeq { actual, .. }) => seq = actual,
            Err(error) => tracing::warn!(%error, "a fact about the fleet was not written down"),
        }
    }
}

//! Writes the fleet's facts beside its work: a slow disk must not make beats late.

use std::time::Duration;

use ganger_shared::actor::Actor;
use ganger_shared::event::{Envelope, FleetEvent};
use ganger_shared::limits;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::journal::{AppendError, EventStore, ReadError, StreamName};

/// Facts that may wait to be written. More are dropped and counted in the log: they are for people,
/// nothing is decided on them.
const WAITING: usize = 1_024;

/// How long the last facts may take to be written.
const FINISH: Duration = Duration::from_secs(2);

/// The way to the task that writes.
pub(super) struct Recorder {
    queue: mpsc::Sender<FleetEvent>,
    task: JoinHandle<()>,
}

impl Recorder {
    pub(super) fn start(store: EventStore, clock: Clock) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        let task = tokio::spawn(write(store, clock, waiting));
        Self { queue, task }
    }

    /// Waits until what was recorded is written.
    pub(super) async fn finish(self) {
        drop(self.queue);
        if tokio::time::timeout(FINISH, self.task).await.is_err() {
            tracing::warn!("the last facts about the fleet were not written down");
        }
    }

    pub(super) fn record(&self, event: FleetEvent) {
        if self.queue.try_send(event).is_err() {
            tracing::warn!(limit = WAITING, "a fact about the fleet was not written down");
        }
    }
}

/// Why the fleet's facts cannot be read.
#[derive(Debug, Error)]
pub(super) enum ReplayError {
    /// The store does not give them.
    #[error("read stream fleet")]
    Read(#[from] ReadError),
    /// One is not of a kind this build knows.
    #[error("event {seq} of stream fleet is not readable: {source}")]
    Unreadable {
        /// Its place.
        seq: u64,
        /// Why.
        source: serde_json::Error,
    },
}

/// Hands over every fact of earlier starts, in order.
pub(super) fn replay(
    store: &EventStore,
    mut each: impl FnMut(&FleetEvent),
) -> Result<(), ReplayError> {
    let mut from = 1;
    loop {
        let page = store.read(&StreamName::fleet(), from, limits::PAGE)?;
        let Some(last) = page.last().map(|stored| stored.seq) else { return Ok(()) };
        from = last + 1;
        for stored in page {
            let seq = stored.seq;
            let envelope: Envelope<FleetEvent> = serde_json::from_str(&stored.body)
                .map_err(|source| ReplayError::Unreadable { seq, source })?;
            each(&envelope.event);
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
            Err(error) => {
                tracing::warn!(%error, "a fact about the fleet was not written down");
                // Nobody else writes this stream; should somebody, the next fact goes behind it.
                if let AppendError::WrongSeq { actual, .. } = error {
                    seq = actual;
                }
            }
        }
    }
}

//! What a run's actor is told, and where its answers go.

use ganger_coordinator_core::run::{Reply, Verb};
use ganger_shared::actor::Actor;
use ganger_shared::digest::Digest;
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{IdempotencyKey, RunId, WorkerId};
use ganger_shared::view::{Explanation, RunRow, RunView};
use tokio::sync::{broadcast, oneshot};

use crate::session::{Inquiry, Reported, SessionHandle};

/// What a run's actor is told.
pub enum RunMessage {
    /// Decide this.
    Ask(Box<Asked>),
    /// Decide what waits.
    Flush,
    /// Hand out all that is owed, some time after the journal refused something.
    HandOut,
    /// A worker is reconciled: tell it everything that is owed to it.
    Attached {
        /// Which.
        worker: WorkerId,
    },
    /// Show the run.
    View(oneshot::Sender<Option<RunView>>),
    /// Show the run as a list does.
    Row(oneshot::Sender<Option<RunRow>>),
    /// Whether a call was carried out under a key.
    Called {
        /// The key.
        key: IdempotencyKey,
        /// The answer: the digest of its body, and the run's sequence.
        port: oneshot::Sender<Option<(Digest, u64)>>,
    },
    /// Say why a unit does not run.
    Explain {
        /// Which.
        unit: String,
        /// The answer.
        port: oneshot::Sender<Result<Explanation, ganger_shared::rejection::Rejection>>,
    },
    /// Panic, as a defect would.
    #[cfg(test)]
    Break,
    /// Follow its events.
    Watch(oneshot::Sender<Watching>),
}

/// One command, whose it is, and who waits for the answer.
pub struct Asked {
    /// Whose.
    pub by: Actor,
    /// What.
    pub verb: Verb,
    /// For whom the answer is.
    pub reply: ReplyTo,
}

impl Asked {
    /// A command of the coordinator itself, whose answer nobody needs.
    pub fn internal(verb: Verb) -> Self {
        Self { by: Actor::Coordinator, verb, reply: ReplyTo::Nobody }
    }

    /// Something may be due.
    pub fn tick() -> Self {
        Self::internal(Verb::Tick)
    }
}

/// Who waits for an answer.
pub enum ReplyTo {
    /// Nobody.
    Nobody,
    /// A call of the API.
    Caller(oneshot::Sender<Outcome>),
    /// The worker that reported.
    Worker(Reported),
    /// The fleet that made an offer.
    Fleet {
        /// Which offer.
        token: u64,
        /// From here on, by the monotonic clock, it is not taken.
        lapses_ms: u64,
    },
    /// The session that reconciles its worker.
    Session(Inquiry),
    /// The session of a worker that holds what the fleet does not know.
    Unheld(SessionHandle),
}

/// The answer to a call of the API.
#[derive(Debug)]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// The answer.
    pub reply: Reply,
}

/// One event, as watchers see it.
#[derive(Debug)]
pub struct Seen {
    /// Its place in the run's stream.
    pub seq: u64,
    /// The event.
    pub envelope: Envelope<RunEvent>,
}

/// A subscription to a run's events.
pub struct Watching {
    /// The last event before the subscription: what is older is read from the store.
    pub sequence: u64,
    /// The run is over: nothing but late facts follow.
    pub over: bool,
    /// What follows.
    pub events: broadcast::Receiver<std::sync::Arc<Seen>>,
}

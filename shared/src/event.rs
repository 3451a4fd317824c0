//! Everything that can have happened, in the past tense: the schema of the journal.
//!
//! Events are added, never renamed, and a field is added only with a default: a journal written by
//! any released build replays in every later one. Each stored event is one line of JSON, an
//! `Envelope` around one of the enums below, told apart by its `type`.

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::digest::Digest;
use crate::fleet::WorkerFacts;
use crate::ids::{InstanceId, RunId, WorkerId};
use crate::time::Timestamp;

mod parts;
mod run;

pub use parts::{
    AttemptLease, CheckLease, CommandRecord, Conflict, HoldReason, LossReason, Repository,
    RetryCause, Submitted,
};
pub use run::RunEvent;

/// One event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<E> {
    /// When it was decided; never earlier than the event before it in the stream.
    pub at: Timestamp,
    /// Whose act it was.
    pub by: Actor,
    /// What happened.
    #[serde(flatten)]
    pub event: E,
}

/// What happened to the fleet: stream `fleet`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum FleetEvent {
    /// A worker attached for the first time, or with other facts than before.
    WorkerEnrolled {
        /// What it offers.
        facts: Box<WorkerFacts>,
    },
    /// A new start of a worker's process.
    InstanceAttached {
        /// Which worker.
        worker: WorkerId,
        /// Which start.
        instance: InstanceId,
    },
    /// A worker's leases ended.
    WorkerLost {
        /// Which.
        worker: WorkerId,
        /// Which start.
        instance: InstanceId,
    },
}

/// What happened to the coordinator itself: stream `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum SystemEvent {
    /// The coordinator began to serve.
    CoordinatorStarted {
        /// Its build.
        build: String,
        /// What opening the store had to do; empty after a clean stop.
        repairs: Vec<String>,
    },
    /// A token was issued; only its hash is kept.
    TokenIssued {
        /// The name its bearer acts under.
        name: String,
        /// What the bearer may do.
        role: Role,
        /// SHA-256 of the token.
        hash: Digest,
        /// When it ends; absent for never.
        expires: Option<Timestamp>,
    },
    /// A token is not valid any more.
    TokenRevoked {
        /// Which.
        hash: Digest,
    },
    /// A submit was carried out under a key (kept 7 days).
    SubmitRecorded {
        /// The key and body.
        record: CommandRecord,
        /// The run it made.
        run: RunId,
    },
    /// A run's fold failed three times in a minute.
    RunQuarantined {
        /// Which.
        run: RunId,
        /// What was said.
        reason: String,
    },
    /// Somebody says that a quarantined run may be folded again.
    RunUnquarantined {
        /// Which.
        run: RunId,
    },
    /// An artifact's bytes were removed on purpose.
    ArtifactPurged {
        /// Which.
        sha256: Digest,
        /// Why.
        reason: String,
    },
}

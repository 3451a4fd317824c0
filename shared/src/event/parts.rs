//! What the larger events carry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::delivery::Place;
use crate::digest::{ArtifactRef, Digest};
use crate::ids::{
    AttemptId, CheckId, CommitId, Epoch, IdempotencyKey, InstanceId, ProjectId, RepositoryId,
    RunId, TreeId, WorkerId,
};
use crate::plan;
use crate::time::DurationMs;

/// The repository of a run as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The same for every clone of it.
    pub id: RepositoryId,
    /// Where the user's clone is, as the user's client sees it.
    pub shown: String,
    /// The pinned commit.
    pub base: CommitId,
    /// The name the plan gave for it.
    pub base_name: String,
}

/// A run was submitted: everything but its tasks and units, which follow as events of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The run.
    pub run: RunId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The plan's name.
    pub name: String,
    /// Labels, for filters.
    pub labels: BTreeMap<String, String>,
    /// The user's words, verbatim (R204).
    pub goal: String,
    /// The contract, frozen.
    pub contract: plan::Contract,
    /// Its SHA-256.
    pub contract_hash: Digest,
    /// The plan text as sent.
    pub plan: ArtifactRef,
    /// Files the plan names, by the path it names them with.
    pub attachments: BTreeMap<String, ArtifactRef>,
    /// The repository, where there is one.
    pub repository: Option<Repository>,
    /// Supervised or autonomous.
    pub mode: plan::Mode,
    /// Start units when they are ready, or on command.
    pub dispatch: plan::Dispatch,
    /// Order among runs.
    pub priority: i32,
    /// The limits of the ledger.
    pub budgets: plan::Budgets,
    /// What happens to the result.
    pub delivery: plan::DeliveryMode,
    /// How long each rung of the stop ladder waits in this run.
    pub grace_ms: DurationMs,
    /// How long a tree may take to be prepared.
    pub prepare_ms: DurationMs,
}

/// A lease on an attempt was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLease {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its fence.
    pub epoch: Epoch,
    /// The worker.
    pub worker: WorkerId,
    /// The start of its process.
    pub instance: InstanceId,
    /// The commit it begins from.
    pub base: Option<CommitId>,
    /// How long it may take: the unit's timeout, or less where the ledger has less left.
    pub allotted_ms: DurationMs,
}

/// A lease on a measuring of a check was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckLease {
    /// The measuring.
    pub check: CheckId,
    /// Its fence.
    pub epoch: Epoch,
    /// The worker.
    pub worker: WorkerId,
    /// The start of its process.
    pub instance: InstanceId,
    /// The commit whose tree is measured.
    pub commit: CommitId,
    /// That tree.
    pub tree: TreeId,
    /// Where that is, relative to the author.
    pub place: Place,
}

/// Why a lease ended without a word of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// No beat arrived for the lease's length.
    LeaseExpired,
    /// Beats arrived, without this lease in them, for the lease's length.
    NotHeld,
    /// The worker's process was started anew without it.
    InstanceReplaced,
    /// The worker said goodbye while it held it.
    WorkerLeft,
}

/// Why another attempt follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// The last one was lost; counts against the losses, not the retries.
    Lost,
    /// The unit declares retries.
    Declared,
    /// The failure was of a transient class.
    Transient,
    /// Somebody asked for it.
    Command,
}

/// What holds a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// A unit failed or was cancelled, and nothing else can go on.
    UnitFailed,
    /// A gate is closed, and nothing else can go on.
    Gate,
    /// A safeguard stopped it.
    Safeguard,
}

/// What an idempotent call answered the first time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// The client's name for the call.
    pub key: IdempotencyKey,
    /// The digest of the call's body: another body under the same key is refused.
    pub body: Digest,
}

/// Why a delivery does not fit onto the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Conflict {
    /// The same places were changed.
    Files {
        /// Where.
        files: Vec<String>,
    },
    /// It merges, and a required check does not pass on the merged tree.
    Checks {
        /// Which.
        failed: Vec<CheckId>,
    },
    /// Somebody else moved the branch.
    ForeignTip {
        /// What was found there.
        found: Option<CommitId>,
    },
}

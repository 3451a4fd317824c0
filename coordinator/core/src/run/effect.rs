//! What the world still owes a run: data, handed out by the actor, repeated until it is done.

use std::collections::BTreeMap;

use ganger_shared::digest::ArtifactRef;
use ganger_shared::ids::{
    AttemptId, CheckId, CommitId, Epoch, LaneId, RepositoryId, TreeId, UnitId, WorkId, WorkerId,
};
use ganger_shared::link::StopReason;
use ganger_shared::plan::Where;
use ganger_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

/// By which receivers recognise an effect they were handed before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EffectId {
    /// A unit's lane wants a slot.
    WantSlot(UnitId, LaneId),
    /// A check wants a slot.
    WantCheck(CheckId),
    /// A unit's files are claimed.
    Claim(UnitId),
    /// A worker is to be given a lease.
    Assign(WorkId, Epoch),
    /// A worker is to stop one.
    Stop(WorkId, Epoch),
    /// A delivery's bundle is to be taken into the mirror.
    Take(AttemptId),
    /// A delivery is to be merged onto the branch's tip.
    Merge(AttemptId),
    /// A commit is to be put on the branch.
    Apply(AttemptId),
}

/// One thing owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Find a slot.
    WantSlot(SlotWant),
    /// Keep others off these files.
    Claim {
        /// Whose files.
        unit: UnitId,
        /// Of which repository.
        repository: RepositoryId,
        /// Which, as globs.
        files: Vec<String>,
    },
    /// Give the lease's assignment to its worker; `Run::assignment` builds it.
    Assign {
        /// To whom.
        worker: WorkerId,
        /// Which work.
        work: WorkId,
        /// Under which fence.
        epoch: Epoch,
    },
    /// Tell the worker to stop.
    Stop {
        /// Whom.
        worker: WorkerId,
        /// Which work.
        work: WorkId,
        /// Under which fence.
        epoch: Epoch,
        /// Why.
        reason: StopReason,
        /// Without grace.
        now: bool,
    },
    /// Take a delivery into the mirror and verify it.
    Take {
        /// Which.
        attempt: AttemptId,
        /// The repository.
        repository: RepositoryId,
        /// The bundle.
        bundle: ArtifactRef,
        /// The commit it carries.
        commit: CommitId,
        /// That commit's parent.
        base: CommitId,
        /// That commit's tree.
        tree: TreeId,
        /// Globs the delivery may touch.
        files: Vec<String>,
    },
    /// Compute the tree that merging would give.
    Merge {
        /// Which.
        attempt: AttemptId,
        /// The repository.
        repository: RepositoryId,
        /// The delivery's commit.
        commit: CommitId,
        /// The branch's tip.
        onto: CommitId,
    },
    /// Make the commit and move the branch onto it.
    Apply {
        /// Which.
        attempt: AttemptId,
        /// The repository.
        repository: RepositoryId,
        /// The tip it goes on.
        parent: CommitId,
        /// Its tree.
        tree: TreeId,
        /// Its time in seconds since the epoch.
        time_unix: i64,
        /// Its message.
        message: String,
    },
}

/// What kind of slot is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WantKind {
    /// For an attempt.
    Attempt {
        /// Of which unit.
        unit: UnitId,
        /// In which lane.
        lane: LaneId,
    },
    /// For a check.
    Check {
        /// Which measuring.
        check: CheckId,
        /// The worker that wrote what is measured.
        author: WorkerId,
        /// Where the plan wants it.
        place: Option<Where>,
    },
}

/// A wish for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotWant {
    /// What for.
    pub kind: WantKind,
    /// Labels the worker must have.
    pub labels: BTreeMap<String, String>,
    /// The agent that must run there.
    pub agent: Option<String>,
    /// The files that are written, of which repository; absent where nothing is.
    pub claim: Option<(RepositoryId, Vec<String>)>,
    /// The unit's own order within its run.
    pub priority: i32,
    /// Since when it waits.
    pub since: Timestamp,
    /// Not before this time.
    pub not_before: Timestamp,
}

//! What can have happened to a run.

use serde::{Deserialize, Serialize};

use super::{
    AttemptLease, CheckLease, CommandRecord, Conflict, HoldReason, LossReason, RetryCause,
    Submitted,
};
use crate::delivery::{CheckResult, Delivery};
use crate::failure::Failure;
use crate::ids::{AttemptId, CheckId, CommitId, Epoch, TreeId, UnitId, WorkId};
use crate::link::{Ended, Failed, Started, StopReason, Stopped};
use crate::plan;
use crate::time::{DurationMs, Timestamp};
use crate::verdict::Verdict;

/// What happened to a run: stream `run/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum RunEvent {
    /// The run exists.
    RunSubmitted(Box<Submitted>),
    /// A task belongs to the revision being written.
    TaskPlanned {
        /// The revision.
        revision: u32,
        /// The task.
        task: plan::Task,
    },
    /// A unit, its defaults filled in, belongs to the revision being written.
    UnitPlanned {
        /// The revision.
        revision: u32,
        /// The unit.
        unit: Box<plan::Unit>,
    },
    /// The revision is whole and in force.
    RevisionAccepted {
        /// The revision.
        revision: u32,
        /// Units it added.
        units: u32,
    },
    /// A mutating call was carried out in this batch.
    CommandRecorded(CommandRecord),
    /// An attempt was leased.
    AttemptLeased(AttemptLease),
    /// The worker has it on disk.
    AttemptAccepted {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
    },
    /// Its program runs.
    AttemptStarted {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// How.
        started: Started,
    },
    /// It is to be stopped.
    AttemptStopping {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// Why.
        reason: StopReason,
        /// When to stop waiting for it.
        until: Timestamp,
    },
    /// It handed in.
    AttemptDelivered {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// What.
        ended: Box<Ended<Delivery>>,
    },
    /// What it handed in stands in the coordinator's mirror.
    DeliveryTaken {
        /// Which.
        attempt: AttemptId,
    },
    /// It failed.
    AttemptFailed {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// How.
        ended: Box<Ended<Failed>>,
    },
    /// It was stopped.
    AttemptCancelled {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// How it ended; absent where nobody heard of it.
        ended: Option<Ended<Stopped>>,
    },
    /// Its lease ended without a word.
    AttemptLost {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// How.
        reason: LossReason,
    },
    /// A result came after its lease had ended; its use is booked, its parts are kept.
    LateResult {
        /// Which.
        attempt: AttemptId,
        /// Under which fence.
        epoch: Epoch,
        /// How long it had been at work.
        active_ms: DurationMs,
        /// What it handed in, if it did.
        delivery: Option<Box<Delivery>>,
        /// It stands in for the rerun that was not yet granted.
        adopted: bool,
    },
    /// Another attempt follows.
    RetryScheduled {
        /// Of which unit.
        unit: UnitId,
        /// Not before.
        not_before: Timestamp,
        /// Why.
        cause: RetryCause,
    },
    /// No attempt follows by itself.
    UnitFailed {
        /// Which.
        unit: UnitId,
        /// Why.
        failure: Failure,
    },
    /// A check was leased.
    CheckLeased(CheckLease),
    /// A check was measured.
    CheckMeasured {
        /// Which.
        check: CheckId,
        /// Under which fence.
        epoch: Epoch,
        /// What came out.
        result: Box<CheckResult>,
    },
    /// A check's lease ended without a word.
    CheckLost {
        /// Which.
        check: CheckId,
        /// Under which fence.
        epoch: Epoch,
        /// How.
        reason: LossReason,
    },
    /// Somebody judged an attempt.
    VerdictGiven(Box<Verdict>),
    /// The tree that would be committed on the moved branch.
    MergePrepared {
        /// Whose delivery.
        attempt: AttemptId,
        /// The tip it is merged onto.
        parent: CommitId,
        /// The merged tree.
        tree: TreeId,
        /// A commit of it that workers can fetch.
        commit: CommitId,
    },
    /// It does not fit onto the branch.
    IntegrationConflicted {
        /// Whose delivery.
        attempt: AttemptId,
        /// Why.
        conflict: Conflict,
    },
    /// The commit to be made, whole: its id follows from these values alone.
    ApplyIntended {
        /// Whose delivery.
        attempt: AttemptId,
        /// The tip it goes on.
        parent: CommitId,
        /// Its tree.
        tree: TreeId,
        /// Its time, in seconds since the epoch.
        time_unix: i64,
    },
    /// The branch has it.
    Applied {
        /// Whose delivery.
        attempt: AttemptId,
        /// The new tip.
        commit: CommitId,
    },
    /// A unit was cancelled.
    UnitCancelled {
        /// Which.
        unit: UnitId,
        /// Whether all its processes are known to be gone.
        confirmed: bool,
        /// Why.
        reason: String,
    },
    /// A unit is being cancelled: its attempt is being stopped.
    UnitStopping {
        /// Which.
        unit: UnitId,
        /// Why.
        reason: String,
    },
    /// Nothing new starts.
    RunPaused {
        /// Why.
        reason: String,
    },
    /// It goes on after a pause.
    RunResumed,
    /// Nothing runs and nothing can start.
    RunHeld {
        /// Why.
        reason: HoldReason,
    },
    /// Something can go on again.
    RunReleased,
    /// A limit of the ledger is reached and nothing runs.
    RunBudgetLimited {
        /// Which.
        dimension: crate::ledger::Dimension,
    },
    /// Everything is being stopped.
    RunStopping {
        /// Why.
        reason: String,
        /// Without grace.
        now: bool,
    },
    /// It was stopped.
    RunAborted,
    /// Every unit is accepted and integrated, or skipped.
    RunCompleted {
        /// The branch's tip, where there is a repository.
        tip: Option<CommitId>,
    },
}

impl RunEvent {
    /// The work the event is about, where it is about one.
    pub fn work(&self) -> Option<WorkId> {
        match self {
            Self::AttemptLeased(lease) => Some(WorkId::Attempt(lease.attempt.clone())),
            Self::AttemptAccepted { attempt, .. }
            | Self::AttemptStarted { attempt, .. }
            | Self::AttemptStopping { attempt, .. }
            | Self::AttemptDelivered { attempt, .. }
            | Self::DeliveryTaken { attempt }
            | Self::AttemptFailed { attempt, .. }
            | Self::AttemptCancelled { attempt, .. }
            | Self::AttemptLost { attempt, .. }
            | Self::LateResult { attempt, .. }
            | Self::MergePrepared { attempt, .. }
            | Self::IntegrationConflicted { attempt, .. }
            | Self::ApplyIntended { attempt, .. }
            | Self::Applied { attempt, .. } => Some(WorkId::Attempt(attempt.clone())),
            Self::VerdictGiven(verdict) => Some(WorkId::Attempt(verdict.attempt.clone())),
            Self::CheckLeased(lease) => Some(WorkId::Check(lease.check.clone())),
            Self::CheckMeasured { check, .. } | Self::CheckLost { check, .. } => {
                Some(WorkId::Check(check.clone()))
            }
            Self::RunSubmitted(_)
            | Self::TaskPlanned { .. }
            | Self::UnitPlanned { .. }
            | Self::RevisionAccepted { .. }
            | Self::CommandRecorded(_)
            | Self::RetryScheduled { .. }
            | Self::UnitFailed { .. }
            | Self::UnitCancelled { .. }
            | Self::UnitStopping { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed
            | Self::RunHeld { .. }
            | Self::RunReleased
            | Self::RunBudgetLimited { .. }
            | Self::RunStopping { .. }
            | Self::RunAborted
            | Self::RunCompleted { .. } => None,
        }
    }

    /// The unit the event is about, where it is about one.
    pub fn unit(&self) -> Option<UnitId> {
        if let Self::UnitPlanned { unit, .. } = self {
            return Some(unit.id.clone());
        }
        if let Self::RetryScheduled { unit, .. }
        | Self::UnitFailed { unit, .. }
        | Self::UnitCancelled { unit, .. }
        | Self::UnitStopping { unit, .. } = self
        {
            return Some(unit.clone());
        }
        self.work().map(|work| match work {
            WorkId::Attempt(attempt) => attempt.unit,
            WorkId::Check(check) => check.unit,
        })
    }
}

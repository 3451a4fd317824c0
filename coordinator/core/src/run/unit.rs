//! Units, attempts and measurings as the run's state holds them.

use std::collections::BTreeMap;

use ganger_shared::delivery::{CheckResult, Delivery, Outcome};
use ganger_shared::event::{AttemptLease, CheckLease, Conflict, LossReason};
use ganger_shared::failure::Failure;
use ganger_shared::ids::{CheckId, CommitId, Epoch, LaneId, TreeId, WorkerId};
use ganger_shared::link::{Ended, Failed, Started, StopReason, Stopped};
use ganger_shared::plan;
use ganger_shared::time::{DurationMs, Timestamp};
use ganger_shared::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// One work unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// As planned, defaults filled in.
    pub spec: plan::Unit,
    /// Where it stands.
    pub state: UnitState,
    /// Dependencies that are not accepted and integrated.
    pub open: u32,
    /// When it first became ready.
    pub ready_at: Option<Timestamp>,
    /// Units that depend on it.
    pub dependants: Vec<usize>,
    /// Every try.
    pub attempts: Vec<Attempt>,
    /// The newest fence per lane.
    pub epochs: BTreeMap<LaneId, Epoch>,
    /// Attempts lost, those included that their worker's restart cut off.
    pub losses: u32,
    /// Attempts that failed in a way that counts against the declared retries.
    pub failures: u32,
    /// Attempts that failed in a way that passes by itself, counted apart.
    pub transients: u32,
    /// The last event that touched it.
    pub seq: u64,
}

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitState {
    /// A dependency is missing.
    Pending,
    /// It may be leased.
    Ready {
        /// Since when.
        since: Timestamp,
        /// Not before.
        not_before: Timestamp,
    },
    /// Its last attempt is leased.
    Running,
    /// This attempt handed in; the gate is not passed.
    Delivered {
        /// Which, by its place in `attempts`.
        attempt: usize,
    },
    /// This attempt's delivery was accepted.
    Accepted {
        /// Which, by its place in `attempts`.
        attempt: usize,
        /// Whether the branch has it.
        integration: Integration,
    },
    /// No attempt follows by itself.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Its attempt is being stopped for good.
    Stopping {
        /// Why.
        reason: String,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// Whether its processes are known to be gone.
        confirmed: bool,
        /// Why.
        reason: String,
    },
    /// The run ended without it.
    Skipped {
        /// Why.
        reason: String,
    },
}

impl UnitState {
    /// The bare word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready { .. } => "ready",
            Self::Running => "running",
            Self::Delivered { .. } => "delivered",
            Self::Accepted { .. } => "accepted",
            Self::Failed { .. } => "failed",
            Self::Stopping { .. } => "stopping",
            Self::Cancelled { .. } => "cancelled",
            Self::Skipped { .. } => "skipped",
        }
    }

    /// Whether dependants may start and the run may complete.
    pub fn done(&self) -> bool {
        match self {
            Self::Accepted { integration, .. } => match integration {
                Integration::NotNeeded | Integration::Done { .. } => true,
                Integration::Pending | Integration::Conflict { .. } => false,
            },
            Self::Skipped { .. } => true,
            Self::Pending
            | Self::Ready { .. }
            | Self::Running
            | Self::Delivered { .. }
            | Self::Failed { .. }
            | Self::Stopping { .. }
            | Self::Cancelled { .. } => false,
        }
    }
}

/// Whether the branch has an accepted delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Integration {
    /// There is nothing to put on a branch.
    NotNeeded,
    /// Not yet.
    Pending,
    /// It has.
    Done {
        /// In this commit.
        commit: CommitId,
    },
    /// It cannot.
    Conflict {
        /// Why.
        conflict: Conflict,
    },
}

/// One try at a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its lease.
    pub lease: AttemptLease,
    /// When that was granted.
    pub leased_at: Timestamp,
    /// When its program started, and how.
    pub started: Option<(Timestamp, Started)>,
    /// Where it stands.
    pub phase: Phase,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What was judged of it.
    pub verdicts: Vec<Verdict>,
}

impl Attempt {
    /// Its delivery, as far as it has one that counts.
    pub fn delivery(&self) -> Option<&Delivery> {
        match &self.phase {
            Phase::Delivered { ended, .. } => Some(&ended.end),
            Phase::Leased
            | Phase::Preparing
            | Phase::Running
            | Phase::Stopping { .. }
            | Phase::Failed { .. }
            | Phase::Cancelled { .. }
            | Phase::Lost { .. } => None,
        }
    }
}

/// The phase of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The worker is being told.
    Leased,
    /// The worker makes its tree.
    Preparing,
    /// Its program runs.
    Running,
    /// It is being stopped.
    Stopping {
        /// Why.
        reason: StopReason,
    },
    /// It handed in.
    Delivered {
        /// What.
        ended: Ended<Delivery>,
        /// The mirror has it.
        taken: bool,
    },
    /// It failed.
    Failed {
        /// How.
        ended: Ended<Failed>,
    },
    /// It was stopped.
    Cancelled {
        /// Why.
        reason: StopReason,
        /// How it ended, where that was heard.
        ended: Option<Ended<Stopped>>,
        /// A delivery that came all the same.
        late: Option<Box<Delivery>>,
        /// How long it had worked, once that is known.
        active_ms: Option<DurationMs>,
    },
    /// Its lease ended without a word.
    Lost {
        /// How.
        reason: LossReason,
        /// A delivery that came all the same.
        late: Option<Box<Delivery>>,
        /// How long it had worked, once that is known.
        active_ms: Option<DurationMs>,
    },
}

/// What is measured of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The tree.
    pub tree: TreeId,
    /// A commit of it.
    pub commit: CommitId,
    /// The commit pinned files come from.
    pub pinned_from: CommitId,
    /// Who wrote it.
    pub author: WorkerId,
    /// One for each check the unit declares, in that order.
    pub checks: Vec<Measuring>,
}

/// One check of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measuring {
    /// The current or last measuring.
    pub id: CheckId,
    /// Whether the gate needs it.
    pub required: bool,
    /// The newest fence.
    pub epoch: Epoch,
    /// The lease, while there is one and of the last that ended.
    pub lease: Option<CheckLease>,
    /// When that was granted.
    pub leased_at: Option<Timestamp>,
    /// What came out.
    pub result: Option<CheckResult>,
}

/// The gate over a subject's required checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Not all are measured.
    Measuring,
    /// All pass.
    Open,
    /// One fails.
    Closed,
    /// None fails and one could not be measured.
    Held,
}

impl Measurement {
    /// The gate as the facts stand. Only required checks count; no required check is an open gate,
    /// which plan checking allows only to units that write nothing.
    pub fn gate(&self) -> Gate {
        let required = || self.checks.iter().filter(|check| check.required);
        let outcomes = || required().map(|check| check.result.as_ref().map(|r| r.outcome));
        if outcomes().any(|outcome| outcome == Some(Outcome::Fail)) {
            Gate::Closed
        } else if outcomes().any(|outcome| outcome.is_none()) {
            Gate::Measuring
        } else if outcomes().any(|outcome| outcome == Some(Outcome::NotMeasured)) {
            Gate::Held
        } else {
            Gate::Open
        }
    }
}

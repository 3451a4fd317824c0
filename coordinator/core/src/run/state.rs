//! The state of a run. Each variant carries what that state knows, and no more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ganger_shared::digest::Digest;
use ganger_shared::event::{HoldReason, Submitted};
use ganger_shared::ids::{
    AttemptId, CheckId, CommitId, Epoch, IdempotencyKey, InstanceId, Subject, TreeId, UnitId,
    WorkId, WorkerId,
};
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::plan;
use ganger_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::command::Calls;
use super::effect::{Effect, EffectId};
use super::unit::{Measurement, Measuring, Unit};

/// One run, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Run {
    /// The last event applied.
    pub(super) seq: u64,
    /// Its time: no later event is earlier.
    pub(super) at: Timestamp,
    /// The last event that is about no unit.
    pub(super) touched: u64,
    /// What was submitted; absent before the first event.
    pub(super) head: Option<Box<Submitted>>,
    /// Whose it is, and since when.
    pub(super) submitted_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) revision: u32,
    pub(super) tasks: Vec<plan::Task>,
    pub(super) units: Vec<Unit>,
    pub(super) index: BTreeMap<UnitId, usize>,
    /// Units that are ready, by their places: all that wants a slot as soon as slots are granted.
    pub(super) ready: BTreeSet<usize>,
    pub(super) state: RunState,
    pub(super) ledger: BTreeMap<Dimension, Account>,
    pub(super) calls: Calls,
    pub(super) tally: Tally,
    /// Everything leased now.
    #[serde(with = "crate::pairs")]
    pub(super) live: BTreeMap<WorkId, Live>,
    /// Everything the world owes.
    #[serde(with = "crate::pairs")]
    pub(super) owed: BTreeMap<EffectId, Effect>,
    /// What is measured of each subject.
    #[serde(with = "crate::pairs")]
    pub(super) measured: BTreeMap<(UnitId, Subject), Measurement>,
    /// When the worker of something leased should long have ended it.
    pub(super) overdue: BTreeSet<(Timestamp, WorkId)>,
    /// The integration branch's tip in the mirror.
    pub(super) tip: Option<CommitId>,
    /// Its tree, once something was applied.
    pub(super) tip_tree: Option<TreeId>,
    /// Accepted deliveries that wait for the branch, in order of acceptance.
    pub(super) queue: VecDeque<AttemptId>,
    /// What is being done with the first of them.
    pub(super) applying: Option<Applying>,
    /// Units whose consequences are not yet drawn; empty between batches.
    #[serde(skip)]
    pub(super) dirty: BTreeSet<usize>,
    /// Effects that came or went in this batch; empty between batches.
    #[serde(skip)]
    pub(super) moved: Vec<EffectId>,
}

/// The state of a run (design section 4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RunState {
    /// Its plan is being written down.
    #[default]
    Submitting,
    /// Units may start.
    Active,
    /// Nothing new starts; what runs, runs on.
    Paused {
        /// Why.
        reason: String,
    },
    /// Nothing runs and nothing can start.
    Held {
        /// Why.
        reason: HoldReason,
    },
    /// A limit is reached and nothing runs.
    BudgetLimited {
        /// Which.
        dimension: Dimension,
    },
    /// Everything is being stopped.
    Stopping {
        /// Why.
        reason: String,
        /// Without grace.
        now: bool,
    },
    /// Every unit is accepted and integrated, or skipped.
    Completed,
    /// It was stopped.
    Aborted,
}

impl RunState {
    /// Whether nothing will ever change it.
    pub fn terminal(&self) -> bool {
        match self {
            Self::Completed | Self::Aborted => true,
            Self::Submitting
            | Self::Active
            | Self::Paused { .. }
            | Self::Held { .. }
            | Self::BudgetLimited { .. }
            | Self::Stopping { .. } => false,
        }
    }

    /// The bare word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Submitting => "submitting",
            Self::Active => "active",
            Self::Paused { .. } => "paused",
            Self::Held { .. } => "held",
            Self::BudgetLimited { .. } => "budget_limited",
            Self::Stopping { .. } => "stopping",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
        }
    }
}

/// How many units are where; kept so that no step has to count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Waiting for a slot.
    pub ready: u32,
    /// Accepted and on the branch, or skipped.
    pub done: u32,
    /// Failed or cancelled.
    pub failed: u32,
    /// Deliveries being taken into the mirror.
    pub taking: u32,
    /// Checks wanted or leased.
    pub measuring: u32,
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// The fence.
    pub epoch: Epoch,
    /// The worker.
    pub worker: WorkerId,
    /// The start of its process.
    pub instance: InstanceId,
    /// When the worker should long have ended it: its place in `overdue`.
    pub(super) due: Timestamp,
}

/// What is being done with the first of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applying {
    /// The merged tree is being computed.
    Merging {
        /// Onto which tip.
        onto: CommitId,
    },
    /// The merged tree is being measured.
    Measuring {
        /// The tip it was merged onto.
        parent: CommitId,
        /// The merged tree.
        tree: TreeId,
    },
    /// The commit is being made.
    Committing {
        /// Its tree.
        tree: TreeId,
    },
}

impl Run {
    /// The sequence of the last event.
    pub fn sequence(&self) -> u64 {
        self.seq
    }

    /// Where the run stands.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// What was submitted; `None` only before the first event.
    pub fn submitted(&self) -> Option<&Submitted> {
        self.head.as_deref()
    }

    /// Every unit, in plan order.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// One unit.
    pub fn unit(&self, id: &UnitId) -> Option<&Unit> {
        self.unit_ix(id).map(|ix| &self.units[ix])
    }

    /// Everything the world owes.
    pub fn owed(&self) -> &BTreeMap<EffectId, Effect> {
        &self.owed
    }

    /// One account of the ledger.
    pub fn account(&self, dimension: Dimension) -> Account {
        self.ledger.get(&dimension).copied().unwrap_or_default()
    }

    /// What is leased now, and to whom.
    pub fn live(&self) -> &BTreeMap<WorkId, Live> {
        &self.live
    }

    /// The calls carried out, by key, each with the digest of its body.
    pub fn calls(&self) -> impl Iterator<Item = (&IdempotencyKey, &Digest)> {
        self.calls.iter()
    }

    /// Ends a fold: whatever it touched was dealt with when it was decided.
    pub fn settle(&mut self) {
        self.dirty.clear();
        self.moved.clear();
    }

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.overdue.first().map(|(at, _)| *at)
    }

    pub(super) fn unit_ix(&self, unit: &UnitId) -> Option<usize> {
        self.index.get(unit).copied()
    }

    pub(super) fn attempt(&self, id: &AttemptId) -> Option<(usize, usize)> {
        let unit = self.unit_ix(&id.unit)?;
        let at = self.units[unit].attempts.iter().position(|a| a.lease.attempt == *id)?;
        Some((unit, at))
    }

    /// The check of a subject this names, by whichever number it is measured now.
    pub fn measuring(&self, id: &CheckId) -> Option<&Measuring> {
        let measurement = self.measured.get(&(id.unit.clone(), id.subject.clone()))?;
        measurement.checks.iter().find(|check| check.id.check == id.check)
    }

    /// The first dimension that lets no further attempt be leased while nothing runs.
    pub(super) fn exhausted(&self) -> Option<Dimension> {
        [Dimension::Attempts, Dimension::ActiveMs]
            .into_iter()
            .find(|dimension| self.account(*dimension).left() == 0)
    }

    /// Whether every unit is accepted and integrated, or skipped.
    pub(super) fn all_done(&self) -> bool {
        !self.units.is_empty() && self.tally.done as usize == self.units.len()
    }

    /// Whether the run is over or being stopped: facts are still taken, nothing follows from them.
    pub(super) fn closing(&self) -> bool {
        matches!(self.state, RunState::Stopping { .. }) || self.state.terminal()
    }

    /// Whether new leases may be granted as the run stands.
    pub(super) fn grants(&self) -> bool {
        matches!(self.state, RunState::Active | RunState::Held { .. })
    }
}

//! What is owed follows from where things stand; kept up to date step by step, never recomputed.

use ganger_shared::delivery::TreeDelivery;
use ganger_shared::ids::{AttemptId, CheckId, CommitId, LaneId, RepositoryId, Subject, TreeId};
use ganger_shared::plan::{self, Kind};

use super::{Before, FoldError};
use crate::run::effect::{Effect, EffectId, SlotWant, WantKind};
use crate::run::state::{Applying, Run, RunState};
use crate::run::unit::{Attempt, Gate, Integration, Measurement, UnitState};

impl Run {
    pub(super) fn owe(&mut self, id: EffectId, effect: Effect) {
        self.owed.insert(id.clone(), effect);
        self.moved.push(id);
    }

    pub(super) fn drop_owed(&mut self, id: &EffectId) {
        if self.owed.remove(id).is_some() {
            self.moved.push(id.clone());
        }
    }

    pub(super) fn drop_take(&mut self, id: &AttemptId) {
        let take = EffectId::Take(id.clone());
        if self.owed.contains_key(&take) {
            self.tally.taking -= 1;
            self.drop_owed(&take);
        }
    }

    pub(super) fn drop_merge(&mut self, id: &AttemptId) {
        self.drop_owed(&EffectId::Merge(id.clone()));
    }

    pub(super) fn leave_queue(&mut self, id: &AttemptId) {
        self.drop_owed(&EffectId::Merge(id.clone()));
        self.drop_owed(&EffectId::Apply(id.clone()));
        if self.queue.front() == Some(id) {
            self.queue.pop_front();
        }
        self.applying = None;
    }

    pub(in crate::run) fn repository(&self) -> Option<RepositoryId> {
        self.head.as_ref()?.repository.as_ref().map(|repository| repository.id.clone())
    }

    /// Whether wants for attempts are put to the fleet.
    pub(super) fn grants_wanted(&self) -> bool {
        self.grants() && self.exhausted().is_none()
    }

    /// Whether checks, merges and commits may begin.
    pub(in crate::run) fn checks_wanted(&self) -> bool {
        match self.state {
            RunState::Active | RunState::Held { .. } | RunState::BudgetLimited { .. } => true,
            RunState::Submitting
            | RunState::Paused { .. }
            | RunState::Stopping { .. }
            | RunState::Completed
            | RunState::Aborted => false,
        }
    }

    /// What follows from an event beyond the unit it is about.
    pub(super) fn sync_after(&mut self, before: &Before) {
        if self.grants_wanted() != before.grants {
            for ix in self.ready.clone() {
                self.sync_want(ix);
            }
        }
        if self.checks_wanted() != before.checks {
            let open: Vec<CheckId> = self
                .measured
                .values()
                .flat_map(|measurement| &measurement.checks)
                .filter(|check| check.result.is_none())
                .map(|check| check.id.clone())
                .collect();
            for id in open {
                self.sync_check_want(&id);
            }
        }
        self.sync_merge();
        if self.all_done() && !before.done && !self.closing() {
            self.begin_final();
        }
    }

    /// Starts on the first of the queue: merges it, if the tip has moved since it began.
    fn sync_merge(&mut self) {
        if self.applying.is_some() || !self.checks_wanted() {
            return;
        }
        let (Some(id), Some(onto), Some(repository)) =
            (self.queue.front().cloned(), self.tip.clone(), self.repository())
        else {
            return;
        };
        let Some((ix, at)) = self.attempt(&id) else { return };
        let Some(tree) = self.units[ix].attempts[at].delivery().and_then(|d| d.tree.clone()) else {
            return;
        };
        if tree.base != onto {
            self.applying = Some(Applying::Merging { onto: onto.clone() });
            let effect =
                Effect::Merge { attempt: id.clone(), repository, commit: tree.commit, onto };
            self.owe(EffectId::Merge(id), effect);
        }
    }

    pub(super) fn on_apply_intended(
        &mut self,
        id: &AttemptId,
        parent: &CommitId,
        tree: &TreeId,
        time_unix: i64,
    ) -> Result<(), FoldError> {
        let repository = self.repository().ok_or_else(|| FoldError::NoTree(id.clone()))?;
        let (ix, _) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let subject = self.units[ix].spec.objective.clone().unwrap_or_default();
        let first = subject.lines().next().unwrap_or_default();
        let run = self.head.as_ref().map(|head| head.run.to_string()).unwrap_or_default();
        let message = format!("{}: {first}\n\nRun: {run}\nAttempt: {id}\n", id.unit);
        self.applying = Some(Applying::Committing { tree: tree.clone() });
        let effect = Effect::Apply {
            attempt: id.clone(),
            repository,
            parent: parent.clone(),
            tree: tree.clone(),
            time_unix,
            message,
        };
        self.owe(EffectId::Apply(id.clone()), effect);
        Ok(())
    }

    /// A ready unit wants a slot, as long as slots may be granted at all.
    pub(super) fn sync_want(&mut self, ix: usize) {
        let unit = &self.units[ix];
        let id = EffectId::WantSlot(unit.spec.id.clone(), LaneId::main());
        let UnitState::Ready { since, not_before } = unit.state else {
            self.drop_owed(&id);
            return;
        };
        if !self.grants_wanted() {
            self.drop_owed(&id);
            return;
        }
        let want = SlotWant {
            kind: WantKind::Attempt { unit: unit.spec.id.clone(), lane: LaneId::main() },
            labels: unit.spec.labels(),
            agent: (unit.spec.kind == Kind::Agent)
                .then(|| unit.spec.agent.as_ref().map(|agent| agent.name.clone()))
                .flatten(),
            claim: self.claim(ix),
            priority: unit.spec.priority(),
            since,
            not_before,
        };
        if self.owed.get(&id) != Some(&Effect::WantSlot(want.clone())) {
            self.owe(id, Effect::WantSlot(want));
        }
    }

    pub(super) fn sync_check_want(&mut self, id: &CheckId) {
        let effect_id = EffectId::WantCheck(id.clone());
        let Some(measuring) = self.measuring(id) else { return };
        let wanted = measuring.id == *id
            && measuring.result.is_none()
            && !self.live.contains_key(&ganger_shared::ids::WorkId::Check(id.clone()))
            && self.checks_wanted();
        let (Some(ix), true) = (self.unit_ix(&id.unit), wanted) else {
            self.drop_owed(&effect_id);
            return;
        };
        let unit = &self.units[ix];
        let Some(measurement) = self.measured.get(&(id.unit.clone(), id.subject.clone())) else {
            return;
        };
        let place = unit.spec.checks.iter().find(|c| c.name == id.check).and_then(|c| c.place);
        let want = SlotWant {
            kind: WantKind::Check { check: id.clone(), author: measurement.author.clone(), place },
            labels: unit.spec.labels(),
            agent: None,
            claim: None,
            priority: unit.spec.priority(),
            since: self.at,
            not_before: self.at,
        };
        if !self.owed.contains_key(&effect_id) {
            self.owe(effect_id, Effect::WantSlot(want));
        }
    }

    /// Files stay claimed from the lease until nothing more can follow by itself.
    pub(super) fn sync_claim(&mut self, ix: usize) {
        let unit = &self.units[ix];
        let id = EffectId::Claim(unit.spec.id.clone());
        let held = match &unit.state {
            UnitState::Running
            | UnitState::Stopping { .. }
            | UnitState::Accepted { integration: Integration::Pending, .. } => true,
            UnitState::Delivered { attempt } => {
                matches!(self.attempt_gate(ix, *attempt), Some(Gate::Measuring | Gate::Open) | None)
            }
            UnitState::Accepted { .. }
            | UnitState::Pending
            | UnitState::Ready { .. }
            | UnitState::Failed { .. }
            | UnitState::Cancelled { .. }
            | UnitState::Skipped { .. } => false,
        };
        match (held, self.claim(ix)) {
            (true, Some((repository, files))) => {
                if !self.owed.contains_key(&id) {
                    let unit = self.units[ix].spec.id.clone();
                    self.owe(id, Effect::Claim { unit, repository, files });
                }
            }
            (true, None) | (false, _) => self.drop_owed(&id),
        }
    }

    pub(in crate::run) fn claim(&self, ix: usize) -> Option<(RepositoryId, Vec<String>)> {
        let files = self.units[ix].spec.files.clone().unwrap_or_default();
        self.repository().filter(|_| !files.is_empty()).map(|repository| (repository, files))
    }

    /// The gate of one attempt's delivery; `None` before anything is measured of it.
    pub(in crate::run) fn attempt_gate(&self, ix: usize, at: usize) -> Option<Gate> {
        let unit = &self.units[ix];
        let attempt = &unit.attempts[at];
        attempt.delivery()?;
        if self.delivered_tree(attempt).is_none() {
            // Checks are measured on a tree: what has none has not passed any.
            let required = unit.spec.checks.iter().any(plan::Check::required);
            return Some(if required { Gate::Held } else { Gate::Open });
        }
        let subject = Subject::Attempt(attempt.lease.attempt.clone());
        self.measured.get(&(unit.spec.id.clone(), subject)).map(Measurement::gate)
    }

    /// The tree an attempt handed in, where the run has a repository.
    pub(in crate::run) fn delivered_tree<'a>(
        &self,
        attempt: &'a Attempt,
    ) -> Option<&'a TreeDelivery> {
        self.repository()?;
        attempt.delivery()?.tree.as_ref()
    }

    /// Whether an attempt handed in something for the branch.
    pub(in crate::run) fn writes(&self, attempt: &Attempt) -> bool {
        self.delivered_tree(attempt).is_some_and(|tree| tree.changes.total > 0)
    }

    /// A run that is over owes nothing.
    pub(super) fn forget_owed(&mut self) {
        self.tally.taking = 0;
        self.queue.clear();
        self.applying = None;
        let ids: Vec<EffectId> = self.owed.keys().cloned().collect();
        for id in ids {
            self.drop_owed(&id);
        }
        self.overdue.clear();
    }
}

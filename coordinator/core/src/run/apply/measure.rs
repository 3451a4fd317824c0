//! Checks: what is wanted, leased, measured, and what no longer matters.

use ganger_shared::delivery::{CheckResult, NotMeasured, Outcome};
use ganger_shared::event::CheckLease;
use ganger_shared::ids::{CheckId, CommitId, Epoch, Subject, TreeId, WorkId};
use ganger_shared::limits;
use ganger_shared::link::StopReason;
use ganger_shared::plan;
use ganger_shared::time::DurationMs;

use super::FoldError;
use crate::run::effect::{Effect, EffectId};
use crate::run::state::{Live, Run};
use crate::run::unit::{Measurement, Measuring, UnitState};

impl Run {
    /// Wants every check of the unit measured on this tree; `at` names the attempt that wrote it.
    pub(super) fn begin_measuring(
        &mut self,
        ix: usize,
        at: usize,
        subject: &Subject,
        (tree, commit, pinned_from): (&TreeId, &CommitId, &CommitId),
    ) {
        let unit = &self.units[ix];
        let checks = unit.spec.checks.iter().map(|check| Measuring {
            id: CheckId {
                unit: unit.spec.id.clone(),
                check: check.name.clone(),
                subject: subject.clone(),
                n: 1,
            },
            required: check.required(),
            epoch: Epoch::default(),
            lease: None,
            leased_at: None,
            result: None,
        });
        let measurement = Measurement {
            tree: tree.clone(),
            commit: commit.clone(),
            pinned_from: pinned_from.clone(),
            author: unit.attempts[at].lease.worker.clone(),
            checks: checks.collect(),
        };
        let ids: Vec<CheckId> = measurement.checks.iter().map(|check| check.id.clone()).collect();
        self.tally.measuring += u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.measured.insert((unit.spec.id.clone(), subject.clone()), measurement);
        for id in ids {
            self.sync_check_want(&id);
        }
        self.dirty.insert(ix);
    }

    /// Once every unit is done: wants those checks measured on the final tree that were not measured
    /// on exactly that tree before.
    pub(super) fn begin_final(&mut self) {
        let (Some(tip), Some(tree)) = (self.tip.clone(), self.tip_tree.clone()) else { return };
        let subject = Subject::Final(tree.clone());
        for ix in 0..self.units.len() {
            let UnitState::Accepted { attempt: at, .. } = self.units[ix].state else { continue };
            let id = self.units[ix].spec.id.clone();
            let attempt = self.units[ix].attempts[at].lease.attempt.clone();
            let subjects =
                [subject.clone(), Subject::Attempt(attempt.clone()), Subject::Merge(attempt)];
            let measured = subjects.into_iter().any(|subject| {
                self.measured.get(&(id.clone(), subject)).is_some_and(|m| m.tree == tree)
            });
            let base = self.units[ix].attempts[at].lease.base.clone();
            let (false, Some(base)) = (measured || self.units[ix].spec.checks.is_empty(), base)
            else {
                continue;
            };
            self.begin_measuring(ix, at, &subject, (&tree, &tip, &base));
        }
    }

    pub(super) fn on_check_leased(&mut self, lease: &CheckLease) -> Result<(), FoldError> {
        let at = self.at;
        let check = self.measuring_mut(&lease.check)?;
        check.epoch = lease.epoch;
        check.leased_at = Some(at);
        check.lease = Some(lease.clone());
        self.drop_owed(&EffectId::WantCheck(lease.check.clone()));
        let live = Live {
            epoch: lease.epoch,
            worker: lease.worker.clone(),
            instance: lease.instance.clone(),
            due: self.overdue_at(self.check_timeout(&lease.check)),
        };
        self.begin_lease(WorkId::Check(lease.check.clone()), live);
        Ok(())
    }

    fn check_timeout(&self, id: &CheckId) -> DurationMs {
        let unit = self.unit_ix(&id.unit).map(|ix| &self.units[ix].spec);
        let check = unit.and_then(|unit| unit.checks.iter().find(|check| check.name == id.check));
        check.map_or(limits::CHECK_TIMEOUT, plan::Check::timeout)
    }

    pub(super) fn on_measured(
        &mut self,
        id: &CheckId,
        result: &CheckResult,
    ) -> Result<(), FoldError> {
        self.drop_lease(&WorkId::Check(id.clone()));
        let check = self.measuring_mut(id)?;
        let first = check.result.is_none();
        check.result = Some(result.clone());
        self.drop_owed(&EffectId::WantCheck(id.clone()));
        if first {
            self.tally.measuring -= 1;
        }
        if let Some(ix) = self.unit_ix(&id.unit) {
            self.dirty.insert(ix);
            self.sync_claim(ix);
        }
        Ok(())
    }

    /// The lease is gone; the next measuring has the next number.
    pub(super) fn on_check_lost(&mut self, id: &CheckId) -> Result<(), FoldError> {
        self.drop_lease(&WorkId::Check(id.clone()));
        let check = self.measuring_mut(id)?;
        check.id.n += 1;
        let next = check.id.clone();
        self.sync_check_want(&next);
        Ok(())
    }

    /// Nothing of this unit needs measuring any more: what is wanted is dropped, what is leased is
    /// stopped.
    pub(super) fn withdraw_checks(&mut self, ix: usize) {
        let unit = &self.units[ix];
        let id = unit.spec.id.clone();
        let attempts = unit.attempts.iter().map(|attempt| attempt.lease.attempt.clone());
        let subjects = attempts
            .flat_map(|attempt| [Subject::Attempt(attempt.clone()), Subject::Merge(attempt)])
            .chain(self.tip_tree.clone().map(Subject::Final));
        let open: Vec<CheckId> = subjects
            .filter_map(|subject| self.measured.get(&(id.clone(), subject)))
            .flat_map(|measurement| &measurement.checks)
            .filter(|check| check.result.is_none())
            .map(|check| check.id.clone())
            .collect();
        for check in open {
            self.withdraw_check(&check);
        }
        self.sync_claim(ix);
    }

    fn withdraw_check(&mut self, id: &CheckId) {
        let work = WorkId::Check(id.clone());
        let Some(live) = self.live.get(&work).cloned() else {
            self.drop_owed(&EffectId::WantCheck(id.clone()));
            self.forget_check(id);
            return;
        };
        self.drop_owed(&EffectId::Assign(work.clone(), live.epoch));
        let effect = Effect::Stop {
            worker: live.worker,
            work: work.clone(),
            epoch: live.epoch,
            reason: StopReason::Withdrawn,
            now: true,
        };
        self.owe(EffectId::Stop(work, live.epoch), effect);
    }

    /// A check that nobody measures and nobody wants any more.
    fn forget_check(&mut self, id: &CheckId) {
        let key = (id.unit.clone(), id.subject.clone());
        let Some(measurement) = self.measured.get_mut(&key) else { return };
        let tree = measurement.tree.clone();
        if let Some(check) = measurement.checks.iter_mut().find(|check| check.id == *id) {
            check.result = Some(CheckResult {
                outcome: Outcome::NotMeasured,
                not_measured: Some(NotMeasured::Withdrawn),
                evidence: None,
                tree,
                message: None,
            });
            self.tally.measuring -= 1;
        }
    }

    fn measuring_mut(&mut self, id: &CheckId) -> Result<&mut Measuring, FoldError> {
        self.measured
            .get_mut(&(id.unit.clone(), id.subject.clone()))
            .and_then(|m| m.checks.iter_mut().find(|check| check.id == *id))
            .ok_or_else(|| FoldError::NoCheck(id.clone()))
    }
}

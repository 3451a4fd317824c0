//! The life of an attempt.

use ganger_shared::delivery::Delivery;
use ganger_shared::event::{AttemptLease, LossReason};
use ganger_shared::ids::{AttemptId, Epoch, Subject, WorkId};
use ganger_shared::ledger::Dimension;
use ganger_shared::link::{Ended, Failed, Started, StopReason, Stopped};
use ganger_shared::time::DurationMs;

use super::FoldError;
use super::plan::no_unit;
use crate::run::effect::{Effect, EffectId};
use crate::run::state::{Live, Run, RunState};
use crate::run::unit::{Attempt, Phase, UnitState};

/// How much longer than its own limits an attempt may stay silent before the coordinator stops it
/// (R083): the rungs of the stop ladder, and a minute for reports under way.
const RUNGS: u64 = 4;
const OVERDUE_SLACK_MS: u64 = 60_000;

impl Run {
    pub(super) fn on_attempt_leased(&mut self, lease: &AttemptLease) -> Result<(), FoldError> {
        let unit = &lease.attempt.unit;
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
        let work = WorkId::Attempt(lease.attempt.clone());
        self.units[ix].epochs.insert(lease.attempt.lane.clone(), lease.epoch);
        self.units[ix].attempts.push(Attempt {
            lease: lease.clone(),
            leased_at: self.at,
            started: None,
            phase: Phase::Leased,
            ended_at: None,
            verdicts: Vec::new(),
        });
        self.ledger.entry(Dimension::Attempts).or_default().settle(0, 1);
        self.ledger.entry(Dimension::ActiveMs).or_default().reserve(lease.allotted_ms.0);
        self.live.insert(
            work.clone(),
            Live {
                epoch: lease.epoch,
                worker: lease.worker.clone(),
                instance: lease.instance.clone(),
            },
        );
        self.overdue.insert((self.overdue_at(ix, lease), lease.attempt.clone()));
        self.set_state(ix, UnitState::Running);
        let worker = lease.worker.clone();
        let effect = Effect::Assign { worker, work: work.clone(), epoch: lease.epoch };
        self.owe(EffectId::Assign(work, lease.epoch), effect);
        Ok(())
    }

    fn overdue_at(&self, _ix: usize, lease: &AttemptLease) -> ganger_shared::time::Timestamp {
        let (prepare, grace) =
            self.head.as_ref().map_or((0, 0), |head| (head.prepare_ms.0, head.grace_ms.0));
        let wait = prepare + lease.allotted_ms.0 + RUNGS * grace + OVERDUE_SLACK_MS;
        self.at.plus(DurationMs(wait))
    }

    pub(super) fn on_accepted(&mut self, id: &AttemptId, epoch: Epoch) -> Result<(), FoldError> {
        self.drop_owed(&EffectId::Assign(WorkId::Attempt(id.clone()), epoch));
        self.attempt_mut(id)?.phase = Phase::Preparing;
        Ok(())
    }

    pub(super) fn on_started(
        &mut self,
        id: &AttemptId,
        epoch: Epoch,
        started: &Started,
    ) -> Result<(), FoldError> {
        self.drop_owed(&EffectId::Assign(WorkId::Attempt(id.clone()), epoch));
        let at = self.at;
        let attempt = self.attempt_mut(id)?;
        attempt.phase = Phase::Running;
        attempt.started = Some((at, started.clone()));
        Ok(())
    }

    pub(super) fn on_attempt_stopping(
        &mut self,
        id: &AttemptId,
        epoch: Epoch,
        reason: StopReason,
    ) -> Result<(), FoldError> {
        let work = WorkId::Attempt(id.clone());
        let now = matches!(self.state, RunState::Stopping { now: true, .. });
        let attempt = self.attempt_mut(id)?;
        attempt.phase = Phase::Stopping { reason };
        let worker = attempt.lease.worker.clone();
        let effect = Effect::Stop { worker, work: work.clone(), epoch, reason, now };
        self.owe(EffectId::Stop(work, epoch), effect);
        Ok(())
    }

    pub(super) fn on_delivered(
        &mut self,
        id: &AttemptId,
        ended: &Ended<Delivery>,
    ) -> Result<(), FoldError> {
        self.end_lease(id, Some(ended.active_ms))?;
        self.hand_in(id, ended.clone())
    }

    /// Makes this delivery the unit's, and has it taken into the mirror.
    fn hand_in(&mut self, id: &AttemptId, ended: Ended<Delivery>) -> Result<(), FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let bundle = ended.end.tree.as_ref().and_then(|tree| tree.bundle.clone());
        let taken = bundle.is_none();
        let tree = ended.end.tree.clone();
        self.units[ix].attempts[at].phase = Phase::Delivered { ended, taken };
        self.set_state(ix, UnitState::Delivered { attempt: at });
        match (tree, bundle, self.repository()) {
            (Some(tree), Some(bundle), Some(repository)) => {
                self.tally.taking += 1;
                let files = self.units[ix].spec.files.clone().unwrap_or_default();
                let effect = Effect::Take {
                    attempt: id.clone(),
                    repository,
                    bundle,
                    commit: tree.commit,
                    base: tree.base,
                    tree: tree.tree,
                    files,
                };
                self.owe(EffectId::Take(id.clone()), effect);
            }
            (Some(_), None, _) => self.measure_attempt(ix, at),
            (Some(_) | None, _, _) => {}
        }
        Ok(())
    }

    pub(super) fn on_taken(&mut self, id: &AttemptId) -> Result<(), FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        self.drop_take(id);
        if let Phase::Delivered { taken, .. } = &mut self.units[ix].attempts[at].phase {
            *taken = true;
        }
        self.measure_attempt(ix, at);
        self.dirty.insert(ix);
        Ok(())
    }

    fn measure_attempt(&mut self, ix: usize, at: usize) {
        if !matches!(self.units[ix].state, UnitState::Delivered { .. }) {
            return;
        }
        let attempt = &self.units[ix].attempts[at];
        let Some(tree) = attempt.delivery().and_then(|delivery| delivery.tree.clone()) else {
            return;
        };
        let subject = Subject::Attempt(attempt.lease.attempt.clone());
        self.begin_measuring(ix, at, &subject, (&tree.tree, &tree.commit, &tree.base));
    }

    pub(super) fn on_failed(
        &mut self,
        id: &AttemptId,
        ended: &Ended<Failed>,
    ) -> Result<(), FoldError> {
        self.drop_take(id);
        self.end_lease(id, Some(ended.active_ms))?;
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        self.units[ix].failures += 1;
        self.units[ix].attempts[at].phase = Phase::Failed { ended: ended.clone() };
        Ok(())
    }

    pub(super) fn on_attempt_cancelled(
        &mut self,
        id: &AttemptId,
        ended: Option<&Ended<Stopped>>,
    ) -> Result<(), FoldError> {
        self.end_lease(id, ended.map(|ended| ended.active_ms))?;
        let attempt = self.attempt_mut(id)?;
        let reason = match attempt.phase {
            Phase::Stopping { reason } => reason,
            Phase::Leased
            | Phase::Preparing
            | Phase::Running
            | Phase::Delivered { .. }
            | Phase::Failed { .. }
            | Phase::Cancelled { .. }
            | Phase::Lost { .. } => StopReason::Revoked,
        };
        attempt.phase = Phase::Cancelled { reason, ended: ended.cloned(), late: None };
        Ok(())
    }

    pub(super) fn on_lost(&mut self, id: &AttemptId, reason: LossReason) -> Result<(), FoldError> {
        self.end_lease(id, None)?;
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        self.units[ix].losses += 1;
        self.units[ix].attempts[at].phase = Phase::Lost { reason, late: None, active_ms: None };
        Ok(())
    }

    pub(super) fn on_late(
        &mut self,
        id: &AttemptId,
        active_ms: DurationMs,
        delivery: Option<&Delivery>,
        adopted: bool,
    ) -> Result<(), FoldError> {
        let attempt = self.attempt_mut(id)?;
        let booked = attempt.lease.allotted_ms;
        let late = delivery.map(|delivery| Box::new(delivery.clone()));
        let mut correct = false;
        match &mut attempt.phase {
            Phase::Lost { late: slot, active_ms: used, .. } => {
                correct = used.is_none();
                *used = Some(active_ms);
                if late.is_some() {
                    *slot = late;
                }
            }
            Phase::Cancelled { late: slot, .. } => *slot = late,
            Phase::Leased
            | Phase::Preparing
            | Phase::Running
            | Phase::Stopping { .. }
            | Phase::Delivered { .. }
            | Phase::Failed { .. } => {}
        }
        if correct {
            self.ledger.entry(Dimension::ActiveMs).or_default().correct(booked.0, active_ms.0);
        }
        if let (true, Some(delivery)) = (adopted, delivery) {
            let end = delivery.clone();
            let ended = Ended { end, active_ms, output: None, output_truncated: false };
            self.hand_in(id, ended)?;
        }
        Ok(())
    }

    /// Ends the lease on an attempt and books its time: all of the allotment where it is unknown.
    fn end_lease(&mut self, id: &AttemptId, used: Option<DurationMs>) -> Result<(), FoldError> {
        let work = WorkId::Attempt(id.clone());
        let at = self.at;
        let attempt = self.attempt_mut(id)?;
        let allotted = attempt.lease.allotted_ms;
        attempt.ended_at = Some(at);
        if let Some(live) = self.live.remove(&work) {
            self.drop_owed(&EffectId::Assign(work.clone(), live.epoch));
            self.drop_owed(&EffectId::Stop(work, live.epoch));
            let used = used.unwrap_or(allotted);
            self.ledger.entry(Dimension::ActiveMs).or_default().settle(allotted.0, used.0);
            self.overdue.retain(|(_, attempt)| attempt != id);
        }
        Ok(())
    }

    fn attempt_mut(&mut self, id: &AttemptId) -> Result<&mut Attempt, FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        Ok(&mut self.units[ix].attempts[at])
    }
}

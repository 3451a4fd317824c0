//! The life of an attempt.

use ganger_shared::delivery::Delivery;
use ganger_shared::event::{AttemptLease, LossReason};
use ganger_shared::failure::Retry;
use ganger_shared::ids::{AttemptId, Subject, WorkId};
use ganger_shared::ledger::Dimension;
use ganger_shared::link::{Ended, Failed, Started, StopReason, Stopped};
use ganger_shared::time::{DurationMs, Timestamp};

use super::FoldError;
use super::plan::no_unit;
use crate::run::effect::{Effect, EffectId};
use crate::run::state::{Live, Run, RunState};
use crate::run::unit::{Attempt, Phase, UnitState};

/// How much longer than its own limits leased work may stay silent before the coordinator stops it
/// (R083): the rungs of the stop ladder, and a minute for reports under way.
const RUNGS: u64 = 4;
const OVERDUE_SLACK_MS: u64 = 60_000;

impl Run {
    pub(super) fn on_attempt_leased(&mut self, lease: &AttemptLease) -> Result<(), FoldError> {
        let unit = &lease.attempt.unit;
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
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
        let live = Live {
            epoch: lease.epoch,
            worker: lease.worker.clone(),
            instance: lease.instance.clone(),
            due: self.overdue_at(lease.allotted_ms),
        };
        self.begin_lease(WorkId::Attempt(lease.attempt.clone()), live);
        self.set_state(ix, UnitState::Running);
        Ok(())
    }

    /// Something is leased: its worker is owed the assignment, and it has its time.
    pub(super) fn begin_lease(&mut self, work: WorkId, live: Live) {
        let (worker, epoch) = (live.worker.clone(), live.epoch);
        self.overdue.insert((live.due, work.clone()));
        self.live.insert(work.clone(), live);
        let effect = Effect::Assign { worker, work: work.clone(), epoch };
        self.owe(EffectId::Assign(work, epoch), effect);
    }

    /// A lease is gone, and with it what was owed to its worker.
    pub(super) fn drop_lease(&mut self, work: &WorkId) -> Option<Live> {
        let live = self.live.remove(work)?;
        self.overdue.remove(&(live.due, work.clone()));
        self.drop_owed(&EffectId::Assign(work.clone(), live.epoch));
        self.drop_owed(&EffectId::Stop(work.clone(), live.epoch));
        Some(live)
    }

    /// Moves the time at which something leased is overdue.
    pub(super) fn due_again(&mut self, work: &WorkId, due: Timestamp) {
        if let Some(live) = self.live.get_mut(work) {
            let was = std::mem::replace(&mut live.due, due);
            self.overdue.remove(&(was, work.clone()));
            self.overdue.insert((due, work.clone()));
        }
    }

    /// When work that may take so long should long be over.
    pub(super) fn overdue_at(&self, allotted: DurationMs) -> Timestamp {
        let (prepare, grace) =
            self.head.as_ref().map_or((0, 0), |head| (head.prepare_ms.0, head.grace_ms.0));
        let ladder = grace.saturating_mul(RUNGS).saturating_add(OVERDUE_SLACK_MS);
        self.at.plus(DurationMs(prepare.saturating_add(allotted.0).saturating_add(ladder)))
    }

    pub(super) fn on_accepted(&mut self, id: &AttemptId) -> Result<(), FoldError> {
        self.assigned(id)?.phase = Phase::Preparing;
        Ok(())
    }

    pub(super) fn on_started(
        &mut self,
        id: &AttemptId,
        started: &Started,
    ) -> Result<(), FoldError> {
        let at = self.at;
        let attempt = self.assigned(id)?;
        attempt.phase = Phase::Running;
        attempt.started = Some((at, started.clone()));
        Ok(())
    }

    /// An attempt whose worker has its assignment.
    fn assigned(&mut self, id: &AttemptId) -> Result<&mut Attempt, FoldError> {
        let epoch = self.attempt_mut(id)?.lease.epoch;
        self.drop_owed(&EffectId::Assign(WorkId::Attempt(id.clone()), epoch));
        self.attempt_mut(id)
    }

    pub(super) fn on_attempt_stopping(
        &mut self,
        id: &AttemptId,
        reason: StopReason,
        until: Timestamp,
    ) -> Result<(), FoldError> {
        let work = WorkId::Attempt(id.clone());
        let now = matches!(self.state, RunState::Stopping { now: true, .. });
        let attempt = self.attempt_mut(id)?;
        attempt.phase = Phase::Stopping { reason };
        let (worker, epoch) = (attempt.lease.worker.clone(), attempt.lease.epoch);
        self.due_again(&work, until.plus(DurationMs(OVERDUE_SLACK_MS)));
        // What the worker was not given yet it shall not begin now.
        self.drop_owed(&EffectId::Assign(work.clone(), epoch));
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

    /// Makes this delivery the unit's, and has its tree taken into the mirror. Without a repository
    /// there is neither tree nor mirror.
    fn hand_in(&mut self, id: &AttemptId, ended: Ended<Delivery>) -> Result<(), FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let tree = ended.end.tree.clone();
        let take = tree.and_then(|tree| {
            let (repository, bundle) = (self.repository()?, tree.bundle?);
            Some(Effect::Take {
                attempt: id.clone(),
                repository,
                bundle,
                commit: tree.commit,
                base: tree.base,
                tree: tree.tree,
                files: self.units[ix].spec.files.clone().unwrap_or_default(),
            })
        });
        let taken = take.is_none();
        self.units[ix].attempts[at].phase = Phase::Delivered { ended, taken };
        if let Some(effect) = take {
            self.tally.taking += 1;
            self.owe(EffectId::Take(id.clone()), effect);
        }
        self.set_state(ix, UnitState::Delivered { attempt: at });
        if taken {
            self.measure_attempt(ix, at);
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

    /// Wants the delivery's checks measured. Where nothing was changed there is no bundle, so the
    /// only commit that has the tree is the one the attempt began from.
    fn measure_attempt(&mut self, ix: usize, at: usize) {
        if self.units[ix].state != (UnitState::Delivered { attempt: at }) || self.closing() {
            return;
        }
        let attempt = &self.units[ix].attempts[at];
        let tree = self.delivered_tree(attempt).cloned();
        if let Some(tree) = tree {
            let subject = Subject::Attempt(attempt.lease.attempt.clone());
            let commit = if tree.bundle.is_some() { &tree.commit } else { &tree.base };
            self.begin_measuring(ix, at, &subject, (&tree.tree, commit, &tree.base));
        }
        self.sync_claim(ix);
    }

    pub(super) fn on_failed(
        &mut self,
        id: &AttemptId,
        ended: &Ended<Failed>,
    ) -> Result<(), FoldError> {
        self.drop_take(id);
        self.end_lease(id, Some(ended.active_ms))?;
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let unit = &mut self.units[ix];
        match ended.end.failure.class.retry() {
            Retry::Transient => unit.transients += 1,
            Retry::Loss => unit.losses += 1,
            Retry::Declared | Retry::Command => unit.failures += 1,
        }
        unit.attempts[at].phase = Phase::Failed { ended: ended.clone() };
        Ok(())
    }

    pub(super) fn on_attempt_cancelled(
        &mut self,
        id: &AttemptId,
        ended: Option<&Ended<Stopped>>,
    ) -> Result<(), FoldError> {
        let active_ms = ended.map(|ended| ended.active_ms);
        self.end_lease(id, active_ms)?;
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let reason = match self.units[ix].attempts[at].phase {
            Phase::Stopping { reason } => reason,
            Phase::Leased
            | Phase::Preparing
            | Phase::Running
            | Phase::Delivered { .. }
            | Phase::Failed { .. }
            | Phase::Cancelled { .. }
            | Phase::Lost { .. } => StopReason::Revoked,
        };
        if reason == StopReason::Timeout {
            self.units[ix].failures += 1;
        }
        self.units[ix].attempts[at].phase =
            Phase::Cancelled { reason, ended: ended.cloned(), late: None, active_ms };
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
            Phase::Lost { late: slot, active_ms: used, .. }
            | Phase::Cancelled { late: slot, active_ms: used, .. } => {
                correct = used.is_none();
                used.get_or_insert(active_ms);
                *slot = late.or(slot.take());
            }
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
        let at = self.at;
        let attempt = self.attempt_mut(id)?;
        let allotted = attempt.lease.allotted_ms;
        attempt.ended_at.get_or_insert(at);
        if self.drop_lease(&WorkId::Attempt(id.clone())).is_some() {
            let used = used.unwrap_or(allotted);
            self.ledger.entry(Dimension::ActiveMs).or_default().settle(allotted.0, used.0);
        }
        Ok(())
    }

    fn attempt_mut(&mut self, id: &AttemptId) -> Result<&mut Attempt, FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        Ok(&mut self.units[ix].attempts[at])
    }
}

//! Leases that end without a word, and what a worker is told when it comes back.

use ganger_shared::event::{LossReason, RetryCause, RunEvent};
use ganger_shared::failure::{Failure, FailureClass, Retry};
use ganger_shared::ids::{Epoch, InstanceId, WorkId, WorkerId};
use ganger_shared::limits;
use ganger_shared::link::{Lease, StopReason};
use ganger_shared::plan::Effects;
use ganger_shared::time::Timestamp;

use super::Decision;
use crate::run::command::Reply;
use crate::run::state::{Run, RunState};
use crate::run::unit::Phase;

impl Run {
    pub(super) fn lease_ended(
        &self,
        work: &WorkId,
        epoch: Epoch,
        reason: LossReason,
        now: Timestamp,
    ) -> Decision {
        let held = self.live.get(work).is_some_and(|live| live.epoch == epoch);
        let events = if held { self.lost(work, epoch, reason, now) } else { Vec::new() };
        Decision { events, reply: Reply::Done { sequence: 0, replayed: !held } }
    }

    fn lost(
        &self,
        work: &WorkId,
        epoch: Epoch,
        reason: LossReason,
        now: Timestamp,
    ) -> Vec<RunEvent> {
        match work {
            WorkId::Check(id) => self.check_lost(id, epoch, reason),
            WorkId::Attempt(id) => {
                let Some((ix, at)) = self.attempt(id) else { return Vec::new() };
                let attempt = id.clone();
                if let Phase::Stopping { reason } = self.units[ix].attempts[at].phase {
                    let mut events =
                        vec![RunEvent::AttemptCancelled { attempt, epoch, ended: None }];
                    events.extend(self.after_stop(ix, reason, false, now));
                    return events;
                }
                vec![
                    RunEvent::AttemptLost { attempt, epoch, reason },
                    self.after_loss(ix, at, reason, now),
                ]
            }
        }
    }

    /// A loss is no failure of the work: it is run again, up to a bound of its own, unless it may
    /// have had effects outside its tree.
    fn after_loss(&self, ix: usize, at: usize, reason: LossReason, now: Timestamp) -> RunEvent {
        let unit = &self.units[ix];
        let started = unit.attempts[at].started.is_some();
        let at_most_once = unit.spec.effects() == Effects::External && started;
        let losses = unit.losses + 1;
        if losses <= limits::LOSSES_PER_UNIT && !at_most_once {
            return RunEvent::RetryScheduled {
                unit: unit.spec.id.clone(),
                not_before: now,
                cause: RetryCause::Lost,
            };
        }
        let why = if at_most_once {
            "it has effects outside its tree and had started, so it is not run again by itself"
                .to_owned()
        } else {
            format!("lost {losses} times, at most {} are allowed", limits::LOSSES_PER_UNIT)
        };
        let last = format!("{why}; last: {}", loss_word(reason));
        RunEvent::UnitFailed {
            unit: unit.spec.id.clone(),
            failure: Failure::new(FailureClass::WorkerLost, last),
        }
    }

    /// Another attempt where the unit declares one, else the unit has failed. The failure that is
    /// being answered is not yet counted in the state.
    pub(super) fn after_failure(&self, ix: usize, failure: &Failure, now: Timestamp) -> RunEvent {
        let unit = &self.units[ix];
        let id = unit.spec.id.clone();
        let declared = unit.spec.retry.as_ref();
        let tries = unit.failures + 1;
        let most = declared.map_or(1, |retry| retry.attempts.unwrap_or(limits::ATTEMPTS_PER_UNIT));
        let (cause, most) = match failure.class.retry() {
            Retry::Transient => (RetryCause::Transient, most.max(limits::ATTEMPTS_PER_UNIT)),
            Retry::Declared => (RetryCause::Declared, most),
            Retry::Command => (RetryCause::Command, 1),
        };
        let contained = unit.spec.effects() == Effects::Contained;
        let goes_on = !matches!(self.state, RunState::Stopping { .. }) && !self.state.terminal();
        if !(tries < most && contained && goes_on) {
            return RunEvent::UnitFailed { unit: id, failure: failure.clone() };
        }
        let delay =
            declared.and_then(|retry| retry.delay.as_ref()).map_or(limits::RETRY_DELAY, |d| d.0);
        let not_before = now.plus(delay);
        let first = unit.attempts.first().map_or(now, |attempt| attempt.leased_at);
        match declared.and_then(|retry| retry.within.as_ref()) {
            Some(within) if not_before.since(first) > within.0 => {
                let message = format!(
                    "the time for retries ({}) is over; last: {}",
                    within.0, failure.message
                );
                RunEvent::UnitFailed {
                    unit: id,
                    failure: Failure::new(FailureClass::RetryBudgetExceeded, message),
                }
            }
            Some(_) | None => RunEvent::RetryScheduled { unit: id, not_before, cause },
        }
    }

    /// Compares what a worker holds with what it should hold.
    pub(super) fn reconcile(
        &self,
        worker: &WorkerId,
        instance: &InstanceId,
        (live, finished): (Vec<Lease>, Vec<Lease>),
        now: Timestamp,
    ) -> Decision {
        let (keep, revoke): (Vec<Lease>, Vec<Lease>) = live.into_iter().partition(|lease| {
            self.live.get(&lease.work).is_some_and(|held| {
                held.epoch == lease.epoch && held.worker == *worker && !self.state.terminal()
            })
        });
        let mut events = Vec::new();
        for (work, held) in self.live.iter().filter(|(_, held)| held.worker == *worker) {
            let named = |leases: &[Lease]| {
                leases.iter().any(|lease| lease.work == *work && lease.epoch == held.epoch)
            };
            if named(&keep) || named(&finished) {
                continue;
            }
            let replaced = held.instance != *instance;
            if replaced || !self.unheard(work) {
                let reason =
                    if replaced { LossReason::InstanceReplaced } else { LossReason::NotHeld };
                events.extend(self.lost(work, held.epoch, reason, now));
            }
        }
        Decision { events, reply: Reply::Reconciled { keep, revoke } }
    }

    /// A lease this worker does not hold (any more) is to be stopped there.
    pub(super) fn unheld(&self, worker: &WorkerId, lease: Lease) -> Decision {
        let held = self.live.get(&lease.work);
        let keep = held.is_some_and(|held| held.epoch == lease.epoch && held.worker == *worker);
        let (keep, revoke) = if keep { (vec![lease], vec![]) } else { (vec![], vec![lease]) };
        Decision::nothing(Reply::Reconciled { keep, revoke })
    }

    /// Whether the worker may simply not have been told of the lease yet.
    fn unheard(&self, work: &WorkId) -> bool {
        match work {
            WorkId::Check(_) => true,
            WorkId::Attempt(id) => self
                .attempt(id)
                .is_some_and(|(ix, at)| matches!(self.units[ix].attempts[at].phase, Phase::Leased)),
        }
    }

    /// Attempts whose workers should long have ended them.
    pub(super) fn tick(&self, now: Timestamp) -> Decision {
        let mut events = Vec::new();
        for (due, id) in &self.overdue {
            if *due > now {
                break;
            }
            let Some((ix, at)) = self.attempt(id) else { continue };
            let attempt = &self.units[ix].attempts[at];
            match attempt.phase {
                Phase::Leased | Phase::Preparing | Phase::Running => {
                    events.push(self.stopping_event(
                        id,
                        attempt.lease.epoch,
                        StopReason::Timeout,
                        now,
                    ));
                }
                Phase::Stopping { .. }
                | Phase::Delivered { .. }
                | Phase::Failed { .. }
                | Phase::Cancelled { .. }
                | Phase::Lost { .. } => {}
            }
        }
        Decision { events, reply: Reply::Done { sequence: 0, replayed: false } }
    }
}

fn loss_word(reason: LossReason) -> &'static str {
    match reason {
        LossReason::LeaseExpired => "no beat arrived for the length of the lease",
        LossReason::NotHeld => "the worker did not hold it",
        LossReason::InstanceReplaced => "the worker was started anew",
        LossReason::WorkerLeft => "the worker left",
    }
}

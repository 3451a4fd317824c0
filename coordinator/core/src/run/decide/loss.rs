//! Leases that end without a word, and what a worker is told when it comes back.

use ganger_shared::event::{LossReason, RetryCause, RunEvent};
use ganger_shared::failure::{Failure, FailureClass, Retry};
use ganger_shared::ids::{AttemptId, Epoch, InstanceId, WorkId, WorkerId};
use ganger_shared::limits;
use ganger_shared::link::{Lease, StopReason};
use ganger_shared::plan::Effects;
use ganger_shared::time::Timestamp;

use super::Decision;
use crate::run::command::Reply;
use crate::run::state::Run;
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

    fn after_loss(&self, ix: usize, at: usize, reason: LossReason, now: Timestamp) -> RunEvent {
        let attempt = &self.units[ix].attempts[at];
        let heard_of = attempt.started.is_some() || attempt.phase != Phase::Leased;
        // Only a worker that is there and never took the lease is known not to have started it.
        let never_taken = match reason {
            LossReason::NotHeld | LossReason::InstanceReplaced => !heard_of,
            LossReason::LeaseExpired | LossReason::WorkerLeft => false,
        };
        self.rerun(ix, never_taken, loss_word(reason), now)
    }

    /// A loss is no failure of the work: it is run again, up to a bound of its own, unless it may
    /// have had effects outside its tree.
    fn rerun(&self, ix: usize, never_taken: bool, last: &str, now: Timestamp) -> RunEvent {
        let unit = &self.units[ix];
        let at_most_once = unit.spec.effects() == Effects::External && !never_taken;
        let losses = unit.losses + 1;
        if losses <= limits::LOSSES_PER_UNIT && !at_most_once {
            return RunEvent::RetryScheduled {
                unit: unit.spec.id.clone(),
                not_before: now,
                cause: RetryCause::Lost,
            };
        }
        let why = if at_most_once {
            "it has effects outside its tree and may have started, so it is not run again by itself"
                .to_owned()
        } else {
            format!("lost {losses} times, at most {} are allowed", limits::LOSSES_PER_UNIT)
        };
        RunEvent::UnitFailed {
            unit: unit.spec.id.clone(),
            failure: Failure::new(FailureClass::WorkerLost, format!("{why}; last: {last}")),
        }
    }

    /// Another attempt where the unit declares one, else the unit has failed. The failure that is
    /// being answered is not yet counted in the state. An attempt that its worker's restart cut off
    /// is one that was lost: the worker only says so before anybody else could.
    pub(super) fn after_failure(&self, ix: usize, failure: &Failure, now: Timestamp) -> RunEvent {
        let unit = &self.units[ix];
        let id = unit.spec.id.clone();
        let declared = unit.spec.retry.as_ref();
        let most = unit.spec.attempts_max();
        let (cause, tries, most) = match failure.class.retry() {
            Retry::Transient => {
                (RetryCause::Transient, unit.transients, most.max(limits::ATTEMPTS_PER_UNIT))
            }
            Retry::Declared => (RetryCause::Declared, unit.failures, most),
            Retry::Loss => return self.rerun(ix, false, &failure.message, now),
            Retry::Command => (RetryCause::Command, unit.failures, 0),
        };
        let goes_on = tries + 1 < most && !self.closing() && self.rerunnable(ix, failure);
        if !goes_on {
            return RunEvent::UnitFailed { unit: id, failure: failure.clone() };
        }
        let not_before = now.plus(unit.spec.retry_delay());
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

    /// Whether the unit may be tried again without anybody asking: work with effects outside its tree
    /// only where it is sure that nothing was started.
    fn rerunnable(&self, ix: usize, failure: &Failure) -> bool {
        let unit = &self.units[ix];
        let started = unit.attempts.last().is_none_or(|attempt| attempt.started.is_some());
        let before_start =
            matches!(failure.class, FailureClass::PreflightFailed | FailureClass::WorkspaceFailed);
        unit.spec.effects() == Effects::Contained || (before_start && !started)
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

    /// Work whose worker should long have ended it: attempts are told to stop, then no longer waited
    /// for; checks are not measured.
    pub(super) fn tick(&self, now: Timestamp) -> Decision {
        let due = self.overdue.iter().take_while(|(due, _)| *due <= now);
        let events = due.flat_map(|(_, work)| match work {
            WorkId::Attempt(id) => self.attempt_overdue(id, now),
            WorkId::Check(id) => {
                self.live.get(work).map_or(Vec::new(), |live| self.check_overdue(id, live.epoch))
            }
        });
        Decision { events: events.collect(), reply: Reply::Done { sequence: 0, replayed: false } }
    }

    fn attempt_overdue(&self, id: &AttemptId, now: Timestamp) -> Vec<RunEvent> {
        let Some((ix, at)) = self.attempt(id) else { return Vec::new() };
        let attempt = &self.units[ix].attempts[at];
        let epoch = attempt.lease.epoch;
        match attempt.phase {
            Phase::Leased | Phase::Preparing | Phase::Running => {
                vec![self.stopping_event(id, epoch, StopReason::Timeout, now)]
            }
            Phase::Stopping { reason } => {
                let cancelled =
                    RunEvent::AttemptCancelled { attempt: id.clone(), epoch, ended: None };
                let next = self.after_stop(ix, reason, false, now);
                std::iter::once(cancelled).chain(next).collect()
            }
            Phase::Delivered { .. }
            | Phase::Failed { .. }
            | Phase::Cancelled { .. }
            | Phase::Lost { .. } => Vec::new(),
        }
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

//! A worker's facts about an attempt. Facts are taken in any state of the run; what a state of the
//! run forbids is only that something new begins.

use ganger_shared::actor::Actor;
use ganger_shared::delivery::{Delivery, Usage};
use ganger_shared::event::RunEvent;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{AttemptId, CommitId, Epoch, WorkId, WorkerId};
use ganger_shared::link::{Answer, Ended, Fact, Failed, Report, StopReason, Stopped};
use ganger_shared::time::{DurationMs, Timestamp};

use super::Decision;
use crate::run::command::Reply;
use crate::run::state::Run;
use crate::run::unit::{Phase, UnitState};

/// One live attempt a fact is about.
struct About {
    ix: usize,
    at: usize,
    id: AttemptId,
    epoch: Epoch,
    now: Timestamp,
}

impl Run {
    pub(super) fn report(&self, by: &Actor, report: Report, now: Timestamp) -> Decision {
        let Report { lease, fact, .. } = report;
        let (events, answer) = match &lease.work {
            WorkId::Attempt(id) => match self.about(by, id, lease.epoch, now) {
                Some(about) => self.attempt_report(&about, fact),
                None => (Vec::new(), Answer::Stale),
            },
            WorkId::Check(id) => self.check_report(id, lease.epoch, by, fact),
        };
        let answer = if self.state.terminal() { Answer::RunClosed } else { answer };
        Decision { events, reply: Reply::Answered(answer) }
    }

    /// The attempt a report is about, if this fence and this worker hold or held it (P037).
    fn about(&self, by: &Actor, id: &AttemptId, epoch: Epoch, now: Timestamp) -> Option<About> {
        let (ix, at) = self.attempt(id)?;
        let lease = &self.units[ix].attempts[at].lease;
        let known = lease.epoch == epoch && !foreign(by, &lease.worker);
        known.then(|| About { ix, at, id: id.clone(), epoch, now })
    }

    fn attempt_report(&self, about: &About, fact: Fact) -> (Vec<RunEvent>, Answer) {
        if let Fact::Measured(_) = fact {
            return (Vec::new(), Answer::Stale);
        }
        match &self.units[about.ix].attempts[about.at].phase {
            Phase::Leased | Phase::Preparing | Phase::Running => {
                (self.fact(about, fact), Answer::Recorded)
            }
            Phase::Stopping { reason } => {
                (self.fact_while_stopping(about, *reason, fact), Answer::Recorded)
            }
            Phase::Lost { active_ms: None, .. } | Phase::Cancelled { active_ms: None, .. } => {
                self.late_fact(about, fact)
            }
            Phase::Lost { .. }
            | Phase::Delivered { .. }
            | Phase::Failed { .. }
            | Phase::Cancelled { .. } => (Vec::new(), Answer::Recorded),
        }
    }

    fn fact(&self, about: &About, fact: Fact) -> Vec<RunEvent> {
        let About { ix, id, epoch, now, .. } = about;
        let (attempt, epoch) = (id.clone(), *epoch);
        match fact {
            Fact::Accepted => match self.units[*ix].attempts[about.at].phase {
                Phase::Leased => vec![RunEvent::AttemptAccepted { attempt, epoch }],
                Phase::Preparing
                | Phase::Running
                | Phase::Stopping { .. }
                | Phase::Delivered { .. }
                | Phase::Failed { .. }
                | Phase::Cancelled { .. }
                | Phase::Lost { .. } => Vec::new(),
            },
            Fact::Started(started) => {
                if self.units[*ix].attempts[about.at].started.is_some() {
                    return Vec::new();
                }
                vec![RunEvent::AttemptStarted { attempt, epoch, started }]
            }
            Fact::Delivered(ended) => self.delivered(about, ended),
            Fact::Failed(ended) => self.failed(about, *ended),
            Fact::Stopped(ended) => {
                let failure = Failure::new(
                    FailureClass::ProcessTerminated,
                    "the worker stopped the attempt by itself",
                );
                let failed = failed_by(failure, &ended);
                let mut events = vec![RunEvent::AttemptFailed {
                    attempt,
                    epoch,
                    ended: Box::new(failed.clone()),
                }];
                events.push(self.after_failure(*ix, &failed.end.failure, *now));
                events
            }
            Fact::Measured(_) => Vec::new(),
        }
    }

    /// A delivery that contradicts itself or its lease is none.
    fn delivered(&self, about: &About, ended: Box<Ended<Delivery>>) -> Vec<RunEvent> {
        let Some(fault) = self.fault(about, &ended.end) else {
            let (attempt, epoch) = (about.id.clone(), about.epoch);
            return vec![RunEvent::AttemptDelivered { attempt, epoch, ended }];
        };
        let usage = ended.end.usage;
        let failure = Failure::new(FailureClass::InvalidResult, fault);
        let failed = Failed { failure, left: Some(ended.end), usage };
        self.failed(
            about,
            Ended {
                end: failed,
                active_ms: ended.active_ms,
                output: ended.output,
                output_truncated: ended.output_truncated,
            },
        )
    }

    /// What makes a delivery unusable, as far as it shows without a look at the tree.
    fn fault(&self, about: &About, delivery: &Delivery) -> Option<String> {
        self.repository()?;
        let tree = delivery.tree.as_ref()?;
        let base = self.units[about.ix].attempts[about.at].lease.base.as_ref();
        if base != Some(&tree.base) {
            let leased = base.map_or("none", CommitId::as_str);
            return Some(format!("it began from {}, its lease says {leased}", tree.base));
        }
        let changed = tree.changes.total;
        (changed > 0 && tree.bundle.is_none())
            .then(|| format!("it changed {changed} paths and has no bundle that carries them"))
    }

    fn failed(&self, about: &About, ended: Ended<Failed>) -> Vec<RunEvent> {
        let next = self.after_failure(about.ix, &ended.end.failure, about.now);
        let failed = RunEvent::AttemptFailed {
            attempt: about.id.clone(),
            epoch: about.epoch,
            ended: Box::new(ended),
        };
        vec![failed, next]
    }

    /// The attempt was told to stop; what it says now is how it stopped. Where it was only late, an
    /// end of its own is still the truth.
    fn fact_while_stopping(&self, about: &About, why: StopReason, fact: Fact) -> Vec<RunEvent> {
        let overdue = why == StopReason::Timeout;
        match fact {
            Fact::Accepted | Fact::Started(_) | Fact::Measured(_) => Vec::new(),
            Fact::Delivered(ended) if overdue => self.delivered(about, ended),
            Fact::Failed(ended) if overdue => self.failed(about, *ended),
            Fact::Delivered(ended) => {
                let (active_ms, usage) = (ended.active_ms, ended.end.usage);
                let stopped = stopped_after(&ended, usage);
                let mut events = self.stopped(about, why, stopped);
                events.insert(1, late_result(about, active_ms, Some(ended.end), false));
                events
            }
            Fact::Failed(ended) => {
                let stopped = stopped_after(&ended, ended.end.usage);
                let mut events = self.stopped(about, why, stopped);
                if let Some(left) = ended.end.left {
                    events.insert(1, late_result(about, ended.active_ms, Some(left), false));
                }
                events
            }
            Fact::Stopped(ended) => self.stopped(about, why, ended),
        }
    }

    fn stopped(&self, about: &About, why: StopReason, ended: Ended<Stopped>) -> Vec<RunEvent> {
        let confirmed = ended.end.confirmed;
        let mut events = vec![RunEvent::AttemptCancelled {
            attempt: about.id.clone(),
            epoch: about.epoch,
            ended: Some(ended),
        }];
        events.extend(self.after_stop(about.ix, why, confirmed, about.now));
        events
    }

    /// What a stop leads to once nothing of the attempt is left.
    pub(super) fn after_stop(
        &self,
        ix: usize,
        why: StopReason,
        confirmed: bool,
        now: Timestamp,
    ) -> Option<RunEvent> {
        let unit = self.units[ix].spec.id.clone();
        if let UnitState::Stopping { reason } = &self.units[ix].state {
            return Some(RunEvent::UnitCancelled { unit, confirmed, reason: reason.clone() });
        }
        match why {
            StopReason::Timeout => {
                let failure = Failure::new(
                    FailureClass::Timeout,
                    "the attempt ran longer than it may and its worker did not end it",
                );
                Some(self.after_failure(ix, &failure, now))
            }
            StopReason::RunStopping | StopReason::Withdrawn => None,
            StopReason::Cancelled | StopReason::Revoked => {
                Some(RunEvent::UnitCancelled { unit, confirmed, reason: "cancelled".to_owned() })
            }
        }
    }

    /// The first word after the lease was over: its use is booked, and a delivery stands in for a
    /// rerun that was not yet granted.
    fn late_fact(&self, about: &About, fact: Fact) -> (Vec<RunEvent>, Answer) {
        match fact {
            Fact::Delivered(ended) => {
                let sound = self.fault(about, &ended.end).is_none();
                let adopted = sound && self.adoptable(about.ix, about.at);
                let answer = if adopted { Answer::Recorded } else { Answer::Stale };
                let late = late_result(about, ended.active_ms, Some(ended.end), adopted);
                (vec![late], answer)
            }
            Fact::Failed(ended) => {
                (vec![late_result(about, ended.active_ms, ended.end.left, false)], Answer::Stale)
            }
            Fact::Stopped(ended) => {
                (vec![late_result(about, ended.active_ms, None, false)], Answer::Stale)
            }
            Fact::Accepted | Fact::Started(_) | Fact::Measured(_) => (Vec::new(), Answer::Stale),
        }
    }
}

/// Whether another worker speaks than the one that holds or held the lease.
pub(super) fn foreign(by: &Actor, holder: &WorkerId) -> bool {
    matches!(by, Actor::Worker(name) if name != holder.as_str())
}

fn late_result(
    about: &About,
    active_ms: DurationMs,
    delivery: Option<Delivery>,
    adopted: bool,
) -> RunEvent {
    RunEvent::LateResult {
        attempt: about.id.clone(),
        epoch: about.epoch,
        active_ms,
        delivery: delivery.map(Box::new),
        adopted,
    }
}

fn stopped_after<T>(ended: &Ended<T>, usage: Usage) -> Ended<Stopped> {
    Ended {
        end: Stopped { confirmed: true, usage },
        active_ms: ended.active_ms,
        output: ended.output.clone(),
        output_truncated: ended.output_truncated,
    }
}

fn failed_by(failure: Failure, ended: &Ended<Stopped>) -> Ended<Failed> {
    Ended {
        end: Failed { failure, left: None, usage: ended.end.usage },
        active_ms: ended.active_ms,
        output: ended.output.clone(),
        output_truncated: ended.output_truncated,
    }
}

//! A worker's facts about an attempt. Facts are taken in any state of the run; what a state of the
//! run forbids is only that something new begins.

use ganger_shared::delivery::{Delivery, Usage};
use ganger_shared::event::RunEvent;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{AttemptId, Epoch, WorkId};
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
    pub(super) fn report(&self, report: Report, now: Timestamp) -> Decision {
        let (events, answer) = match &report.lease.work {
            WorkId::Attempt(id) => self.attempt_report(id, report.lease.epoch, report.fact, now),
            WorkId::Check(id) => self.check_report(id, report.lease.epoch, report.fact),
        };
        let answer = if self.state.terminal() { Answer::RunClosed } else { answer };
        Decision { events, reply: Reply::Answered(answer) }
    }

    fn attempt_report(
        &self,
        id: &AttemptId,
        epoch: Epoch,
        fact: Fact,
        now: Timestamp,
    ) -> (Vec<RunEvent>, Answer) {
        let stale = (Vec::new(), Answer::Stale);
        let Some((ix, at)) = self.attempt(id) else { return stale };
        let attempt = &self.units[ix].attempts[at];
        if attempt.lease.epoch != epoch {
            return stale;
        }
        let about = About { ix, at, id: id.clone(), epoch, now };
        match &attempt.phase {
            Phase::Leased | Phase::Preparing | Phase::Running => {
                (self.fact(&about, fact), Answer::Recorded)
            }
            Phase::Stopping { reason } => {
                (self.fact_while_stopping(&about, *reason, fact), Answer::Recorded)
            }
            Phase::Lost { late, active_ms, .. } => {
                let known = late.is_some() || active_ms.is_some();
                self.late_fact(&about, fact, known)
            }
            Phase::Delivered { .. } | Phase::Failed { .. } | Phase::Cancelled { .. } => {
                (Vec::new(), Answer::Recorded)
            }
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
            Fact::Delivered(ended) => vec![RunEvent::AttemptDelivered { attempt, epoch, ended }],
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

    fn failed(&self, about: &About, ended: Ended<Failed>) -> Vec<RunEvent> {
        let next = self.after_failure(about.ix, &ended.end.failure, about.now);
        let failed = RunEvent::AttemptFailed {
            attempt: about.id.clone(),
            epoch: about.epoch,
            ended: Box::new(ended),
        };
        vec![failed, next]
    }

    /// The attempt was told to stop; what it says now is how it stopped, whatever it is.
    fn fact_while_stopping(&self, about: &About, why: StopReason, fact: Fact) -> Vec<RunEvent> {
        match fact {
            Fact::Accepted | Fact::Started(_) | Fact::Measured(_) => Vec::new(),
            Fact::Delivered(ended) => {
                let stopped = stopped_after(ended.active_ms, ended.end.usage);
                let mut events = self.stopped(about, why, stopped);
                events.insert(1, late_result(about, ended.active_ms, Some(ended.end), false));
                events
            }
            Fact::Failed(ended) => {
                let stopped = stopped_after(ended.active_ms, ended.end.usage);
                self.stopped(about, why, stopped)
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

    fn late_fact(&self, about: &About, fact: Fact, known: bool) -> (Vec<RunEvent>, Answer) {
        if known {
            return (Vec::new(), Answer::Recorded);
        }
        match fact {
            Fact::Delivered(ended) => {
                let adopted = self.adoptable(about.ix, about.at);
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

fn stopped_after(active_ms: DurationMs, usage: Usage) -> Ended<Stopped> {
    let end = Stopped { confirmed: true, usage };
    Ended { end, active_ms, output: None, output_truncated: false }
}

fn failed_by(failure: Failure, ended: &Ended<Stopped>) -> Ended<Failed> {
    Ended {
        end: Failed { failure, left: None, usage: ended.end.usage },
        active_ms: ended.active_ms,
        output: ended.output.clone(),
        output_truncated: ended.output_truncated,
    }
}

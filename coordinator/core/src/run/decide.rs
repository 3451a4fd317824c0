//! What a run answers to a command, and what follows from it.
//!
//! A batch is decided command by command, each on the state the one before left: events are applied
//! as they are decided. If the journal then refuses the batch, the actor dies and folds again, so a
//! state ahead of the journal is never seen by anyone.

mod check;
mod consequence;
mod control;
mod grant;
mod integrate;
mod loss;
mod report;
mod submit;
mod verdict;

use std::collections::BTreeSet;

use ganger_shared::actor::Actor;
use ganger_shared::event::{CommandRecord, Envelope, RunEvent};
use ganger_shared::rejection::Rejection;
use ganger_shared::time::Timestamp;

use super::command::{Call, Command, Reply, Verb};
use super::effect::EffectId;
use super::state::Run;

/// What one command came to: events by the one who gave it, and the answer.
#[derive(Debug, Clone)]
pub struct Decision {
    /// What happened.
    pub events: Vec<RunEvent>,
    /// What is answered.
    pub reply: Reply,
}

/// What a batch came to.
#[derive(Debug, Clone, Default)]
pub struct Decided {
    /// To be appended as one batch before anyone is told.
    pub events: Vec<Envelope<RunEvent>>,
    /// One for each command, in order.
    pub replies: Vec<Reply>,
    /// Effects that came (they are in `owed`) or went (they are not).
    pub moved: Vec<EffectId>,
}

impl Decision {
    pub(super) fn nothing(reply: Reply) -> Self {
        Self { events: Vec::new(), reply }
    }

    pub(super) fn refused(rejection: Rejection) -> Self {
        Self::nothing(Reply::Rejected(rejection))
    }
}

impl Run {
    /// Decides a batch. The state is afterwards that of the last event; hand out nothing before the
    /// events are in the journal.
    pub fn decide_all(&mut self, commands: Vec<Command>) -> Decided {
        let mut decided = Decided::default();
        for command in commands {
            let Command { now, by, verb } = command;
            // A clock that was set back stops no retry: what is written never goes back either.
            let now = now.max(self.at);
            let decision = self.decide(&by, now, verb);
            for event in decision.events {
                self.record(&mut decided.events, by.clone(), now, event);
            }
            self.consequences(&mut decided.events, now);
            decided.replies.push(self.with_sequence(decision.reply));
        }
        let moved: BTreeSet<EffectId> = std::mem::take(&mut self.moved).into_iter().collect();
        decided.moved = moved.into_iter().collect();
        decided
    }

    /// Applies an event as it will be written.
    fn record(
        &mut self,
        events: &mut Vec<Envelope<RunEvent>>,
        by: Actor,
        now: Timestamp,
        event: RunEvent,
    ) {
        let envelope = Envelope { at: now, by, event };
        self.apply(self.seq + 1, &envelope).expect("an event decided on this state applies to it");
        events.push(envelope);
    }

    fn decide(&self, by: &Actor, now: Timestamp, verb: Verb) -> Decision {
        match verb {
            Verb::Submit { call, submitted, tasks, units } => {
                self.called(&call, |run| run.submit(*submitted, tasks, units))
            }
            Verb::TakeSlot(offer) => self.take_slot(&offer, now),
            Verb::Report(report) => self.report(by, *report, now),
            Verb::LeaseEnded { work, epoch, reason } => self.lease_ended(&work, epoch, reason, now),
            Verb::Reconcile { worker, instance, live, finished } => {
                self.reconcile(&worker, &instance, (live, finished), now)
            }
            Verb::Unheld { worker, lease } => self.unheld(&worker, lease),
            Verb::Taken { attempt } => self.taken(attempt),
            Verb::TakeFailed { attempt, failure } => self.take_failed(attempt, failure, now),
            Verb::Merged { attempt, parent, result } => self.merged(attempt, parent, result),
            Verb::ApplyDone { attempt, commit, tree } => self.apply_done(attempt, commit, &tree),
            Verb::ApplyRefused { attempt, found } => self.apply_refused(attempt, found),
            Verb::Tick => self.tick(now),
            Verb::Cancel { call, unit, reason } => {
                self.called(&call, |run| run.cancel(&call, &unit, &reason, now))
            }
            Verb::Stop { call, reason, now: at_once } => self.called(&call, |run| {
                run.expected(&call)?;
                run.stop(reason, at_once, now)
            }),
            Verb::Pause { call, reason } => self.called(&call, |run| run.pause(&call, reason)),
            Verb::Resume { call } => self.called(&call, |run| run.resume(&call)),
        }
    }

    /// Carries a client's call out once: the same key and body again is answered, not repeated.
    fn called<F>(&self, call: &Call, carry_out: F) -> Decision
    where
        F: FnOnce(&Self) -> Result<Vec<RunEvent>, Rejection>,
    {
        match self.calls.get(&call.key) {
            Some(body) if *body == call.body => {
                Decision::nothing(Reply::Done { sequence: self.seq, replayed: true })
            }
            Some(body) => Decision::refused(Rejection::KeyReused {
                key: call.key.to_string(),
                first: body.to_string(),
                now: call.body.to_string(),
            }),
            None => match carry_out(self) {
                Ok(mut events) => {
                    let record = CommandRecord { key: call.key.clone(), body: call.body };
                    events.push(RunEvent::CommandRecorded(record));
                    Decision { events, reply: Reply::Done { sequence: 0, replayed: false } }
                }
                Err(rejection) => Decision::refused(rejection),
            },
        }
    }

    fn with_sequence(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Done { replayed, .. } => Reply::Done { sequence: self.seq, replayed },
            other @ (Reply::Leased(_)
            | Reply::Declined
            | Reply::Answered(_)
            | Reply::Reconciled { .. }
            | Reply::Rejected(_)) => other,
        }
    }
}

//! Plays a run's actor: takes waiting commands, decides, writes, and only then tells anyone.

use std::collections::VecDeque;

use ganger_coordinator_core::run::{Command, Decided, Reply, Run, RunState, Verb};
use ganger_shared::actor::Actor;
use ganger_shared::ids::{RunId, WorkId, WorkerId};
use ganger_shared::limits;
use ganger_shared::link::{Answer, Lease};
use ganger_shared::rejection::Rejection;

use super::fleet::FleetMail;
use super::session::SessionMail;
use super::{CoordinatorEvent, Mail};
use crate::bug::Bug;
use crate::journal::Batch;
use crate::world::World;

/// How long a refused run leaves the journal alone.
const AFTER_REFUSAL_MS: u64 = 1_000;

/// What a run's actor is told.
#[derive(Debug)]
pub(crate) enum RunMail {
    Ask(Box<Asked>),
    Flush,
    HandOut,
    Attached { worker: WorkerId },
}

/// One command, whose it is, and who waits for the answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) by: Actor,
    pub(crate) verb: Verb,
    pub(crate) reply: ReplyTo,
}

/// Who waits for an answer.
#[derive(Debug, Clone)]
pub(crate) enum ReplyTo {
    Nobody,
    /// One of the people, by the number of the call.
    Caller(usize),
    Worker {
        conn: u64,
        lease: Lease,
        number: u32,
    },
    Fleet {
        token: u64,
        lapses_ms: u64,
    },
    Session(u64),
    Unheld(u64),
}

impl Asked {
    pub(crate) fn internal(verb: Verb) -> Self {
        Self { by: Actor::Coordinator, verb, reply: ReplyTo::Nobody }
    }
}

/// What a run's actor owns.
#[derive(Debug, Default)]
pub(crate) struct RunRoom {
    pub(crate) run: Run,
    waiting: VecDeque<Asked>,
    flush_due: bool,
    writing: Option<(Decided, Vec<ReplyTo>, bool)>,
    /// Messages that came up while a batch was being written.
    pub(super) missed: usize,
    pub(super) announced: Option<RunState>,
    refused: bool,
    alarms: u64,
}

impl RunRoom {
    pub(super) fn of(run: Run) -> Self {
        Self { run, ..Self::default() }
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }
}

impl World {
    pub(crate) fn room(&mut self, run: &RunId) -> &mut RunRoom {
        self.hub().rooms.get_mut(run).expect("a run's messages go to its actor")
    }

    pub(super) fn run_mail(&mut self, run: &RunId, mail: RunMail) {
        if !self.hub().rooms.contains_key(run) {
            return self.dropped(mail);
        }
        match mail {
            RunMail::Ask(asked) => {
                let room = self.room(run);
                room.waiting.push_back(*asked);
                if !std::mem::replace(&mut room.flush_due, true) {
                    self.post(Mail::Run(run.clone(), RunMail::Flush));
                }
            }
            RunMail::Flush => {
                self.room(run).flush_due = false;
                self.next_batch(run);
            }
            RunMail::HandOut => {
                self.room(run).refused = false;
                self.hand_out_all(run);
                self.set_run_alarm(run);
            }
            RunMail::Attached { worker } => self.hand_out_to(run, &worker),
        }
    }

    /// What an actor that is gone had in its mailbox: who waits for an answer is told to come again.
    fn dropped(&mut self, mail: RunMail) {
        if let RunMail::Ask(asked) = mail {
            match asked.reply {
                ReplyTo::Worker { conn, lease, number } => {
                    self.answer_report(conn, (&lease, number), Answer::RetryLater);
                }
                ReplyTo::Session(conn) => self.hang_up(conn),
                ReplyTo::Nobody
                | ReplyTo::Caller(_)
                | ReplyTo::Fleet { .. }
                | ReplyTo::Unheld(_) => {}
            }
        }
    }

    fn next_batch(&mut self, run: &RunId) {
        while !self.room(run).is_writing() && !self.room(run).waiting.is_empty() {
            let room = self.room(run);
            let batch = room.waiting.len().min(limits::BATCH);
            let batch = room.waiting.drain(..batch).collect();
            self.decide(run, batch);
        }
        let room = self.room(run);
        if !room.is_writing() && room.run.submitted().is_none() {
            self.run_never_was(run);
        }
    }

    fn decide(&mut self, run: &RunId, batch: Vec<Asked>) {
        let (now, mono_ms) = (self.coordinator.host.wall(self.now), self.mono_ms());
        let (mut commands, mut replies) = (Vec::new(), Vec::new());
        for Asked { by, verb, reply } in batch {
            match reply {
                ReplyTo::Fleet { token, lapses_ms } if mono_ms >= lapses_ms => {
                    self.tell_fleet(FleetMail::OfferDeclined { token });
                }
                reply @ (ReplyTo::Fleet { .. }
                | ReplyTo::Nobody
                | ReplyTo::Caller(_)
                | ReplyTo::Worker { .. }
                | ReplyTo::Session(_)
                | ReplyTo::Unheld(_)) => {
                    let verb = self.perhaps_stale(run, verb);
                    commands.push(Command { now, by, verb });
                    replies.push(reply);
                }
            }
        }
        let before = self.room(run).run.sequence();
        let decided = self.room(run).run.decide_all(commands);
        let events = decided.events.clone();
        let early = self.bug == Some(Bug::AnswersBeforeAppend);
        if early {
            for (reply, outcome) in replies.iter().cloned().zip(decided.replies.clone()) {
                self.answer_one(run, reply, outcome);
            }
        }
        self.room(run).writing = Some((decided, replies, early));
        if events.is_empty() {
            return self.written(run, true);
        }
        if self.now < self.coordinator.full_until_ms && self.chance.once_in(2) {
            self.on_coordinator(2, CoordinatorEvent::Appended(run.clone(), false));
        } else {
            self.append(Batch::Run { run: run.clone(), before, events });
        }
    }

    /// The planted mistake: a report of an attempt that is over is taken for one of the newest.
    fn perhaps_stale(&mut self, run: &RunId, verb: Verb) -> Verb {
        let (Some(Bug::StaleReportCounts), Verb::Report(mut report)) = (self.bug, verb.clone())
        else {
            return verb;
        };
        let WorkId::Attempt(id) = &report.lease.work else { return verb };
        let unit = self.room(run).run.unit(&id.unit);
        if let Some(newest) = unit.and_then(|unit| unit.attempts.last()) {
            report.lease.work = WorkId::Attempt(newest.lease.attempt.clone());
            report.lease.epoch = newest.lease.epoch;
        }
        Verb::Report(report)
    }

    pub(super) fn appended(&mut self, run: &RunId, well: bool) {
        self.written(run, well);
        self.next_batch(run);
        if let Some(room) = self.hub().rooms.get_mut(run)
            && !room.is_writing()
        {
            for _ in 0..std::mem::take(&mut room.missed) {
                self.on_coordinator(0, CoordinatorEvent::Mail(super::To::Run(run.clone())));
            }
        }
    }

    fn written(&mut self, run: &RunId, well: bool) {
        let Some((decided, replies, early)) = self.room(run).writing.take() else { return };
        if !well {
            return self.refused(run, replies);
        }
        self.announce(run);
        if !early {
            for (reply, outcome) in replies.into_iter().zip(decided.replies) {
                self.answer_one(run, reply, outcome);
            }
        }
        self.hand_out(run, &decided.events, decided.moved);
        self.set_run_alarm(run);
    }

    /// Nothing of the batch happened: everyone is told so, and the state is folded anew.
    fn refused(&mut self, run: &RunId, replies: Vec<ReplyTo>) {
        for reply in replies {
            let rejection = Rejection::Journal { reason: "the disk is full".to_owned() };
            self.answer_one(run, reply, Reply::Rejected(rejection));
        }
        let folded = self.folded(run);
        let room = self.room(run);
        room.run = folded;
        if !std::mem::replace(&mut room.refused, true) {
            room.alarms += 1;
            self.on_coordinator(AFTER_REFUSAL_MS, CoordinatorEvent::HandOut(run.clone()));
        }
    }

    /// The fold of what is in the journal.
    pub(super) fn folded(&mut self, run: &RunId) -> Run {
        let mut folded = Run::default();
        let events = self.coordinator.journal.runs.get(run).cloned().unwrap_or_default();
        for (seq, envelope) in (1..).zip(&events) {
            if let Err(error) = folded.apply(seq, envelope) {
                self.rules.broken(format!("event {seq} of {run} does not fold: {error}"));
            }
        }
        folded.settle();
        folded
    }

    fn answer_one(&mut self, run: &RunId, reply: ReplyTo, outcome: Reply) {
        match reply {
            ReplyTo::Nobody => {}
            ReplyTo::Caller(call) => self.reply_to_caller(call, run, outcome),
            ReplyTo::Worker { conn, lease, number } => {
                let answer = match outcome {
                    Reply::Answered(answer) => answer,
                    Reply::Rejected(_)
                    | Reply::Done { .. }
                    | Reply::Leased(_)
                    | Reply::Declined
                    | Reply::Reconciled { .. } => Answer::RetryLater,
                };
                self.answer_report(conn, (&lease, number), answer);
            }
            ReplyTo::Fleet { token, .. } => {
                let mail = match outcome {
                    Reply::Leased(lease) => FleetMail::OfferTaken { token, lease },
                    Reply::Declined
                    | Reply::Rejected(_)
                    | Reply::Done { .. }
                    | Reply::Answered(_)
                    | Reply::Reconciled { .. } => FleetMail::OfferDeclined { token },
                };
                self.tell_fleet(mail);
            }
            ReplyTo::Session(conn) => match outcome {
                Reply::Reconciled { keep, revoke } => {
                    self.post(Mail::Session(conn, SessionMail::Reconciled { keep, revoke }));
                }
                Reply::Rejected(_)
                | Reply::Done { .. }
                | Reply::Leased(_)
                | Reply::Declined
                | Reply::Answered(_) => self.hang_up(conn),
            },
            ReplyTo::Unheld(conn) => {
                if let Reply::Reconciled { revoke, .. } = outcome {
                    self.revoke(conn, revoke);
                }
            }
        }
    }

    pub(super) fn set_run_alarm(&mut self, run: &RunId) {
        let wall = self.coordinator.host.wall(self.now);
        let room = self.room(run);
        if room.refused {
            return;
        }
        room.alarms += 1;
        let nth = room.alarms;
        if let Some(due) = room.run.next_deadline() {
            let wait = due.since(wall).0;
            self.on_coordinator(wait, CoordinatorEvent::Alarm(run.clone(), nth));
        }
    }

    pub(super) fn run_alarm(&mut self, run: &RunId, nth: u64) {
        if self.hub().rooms.get(run).is_some_and(|room| room.alarms == nth) {
            let tick = Box::new(Asked::internal(Verb::Tick));
            self.post(Mail::Run(run.clone(), RunMail::Ask(tick)));
        }
    }
}

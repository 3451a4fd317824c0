//! Who gets a slot: plays the supervisor of a worker's attempts.
//!
//! Not here: one attempt (`attempt.rs`).

use std::collections::{BTreeMap, VecDeque};

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{Ended, Fact, Failed, Lease, StopReason, Stopped};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use ganger_worker_core::outbox::lease_of;
use ganger_worker_core::slots::{Intake, Placement, Refusal, Slots};

use super::WorkerEvent;
use super::attempt::{AttemptMail, AttemptRoom};
use super::outbox::{Order, Waits};
use crate::world::World;

/// What the attempts hear.
#[derive(Debug)]
pub(crate) enum AttemptsMail {
    Begin(Box<Assignment>),
    Stop { lease: Lease, reason: StopReason, now: bool },
    CutOff { lease_ms: DurationMs },
    Attached,
    Leave,
    Closed(Lease),
    Gone(Lease),
    Reported(Lease),
}

/// What the supervisor owns.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(crate) slots: Slots,
    pub(crate) running: BTreeMap<Lease, AttemptRoom>,
    pub(crate) waiting: BTreeMap<Lease, Box<Assignment>>,
    pub(crate) cut_off: Option<DurationMs>,
    /// The end of a lease is being written; whether its slot is to be freed after it.
    writing: Option<bool>,
    inbox: VecDeque<AttemptsMail>,
    pub(crate) leaving: bool,
}

impl Attempts {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots: Slots::new(slots as usize),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            cut_off: None,
            writing: None,
            inbox: VecDeque::new(),
            leaving: false,
        }
    }
}

impl World {
    /// While the end of a lease is being written, everything else waits.
    pub(super) fn attempts_mail(&mut self, on: usize, mail: AttemptsMail) {
        if let AttemptsMail::Reported(lease) = &mail {
            let frees = self.workers[on].process.attempts.writing.take();
            if frees == Some(true) {
                self.free(on, lease);
            }
        } else {
            self.workers[on].process.attempts.inbox.push_back(mail);
        }
        while self.workers[on].process.attempts.writing.is_none()
            && let Some(next) = self.workers[on].process.attempts.inbox.pop_front()
        {
            self.attempts_hear(on, next);
        }
    }

    fn attempts_hear(&mut self, on: usize, mail: AttemptsMail) {
        match mail {
            AttemptsMail::Begin(assignment) => self.offer_slot(on, assignment),
            AttemptsMail::Stop { lease, reason, now } => self.stop_one(on, &lease, reason, now),
            AttemptsMail::CutOff { lease_ms } => {
                self.workers[on].process.attempts.cut_off = Some(lease_ms);
                self.tell_attempts(on, || AttemptMail::CutOff { lease_ms });
            }
            AttemptsMail::Attached => {
                self.workers[on].process.attempts.cut_off = None;
                self.tell_attempts(on, || AttemptMail::Attached);
            }
            AttemptsMail::Leave => self.attempts_leave(on),
            AttemptsMail::Closed(lease) => self.free(on, &lease),
            AttemptsMail::Gone(lease) => {
                self.workers[on].process.attempts.running.remove(&lease);
                self.free(on, &lease);
                self.attempts_left(on);
            }
            AttemptsMail::Reported(_) => {}
        }
    }

    fn offer_slot(&mut self, on: usize, assignment: Box<Assignment>) {
        let lease = lease_of(&assignment);
        let older: Vec<Lease> = self.workers[on].process.attempts.running.keys().cloned().collect();
        for held in older {
            if held.run == lease.run && held.work == lease.work && held.epoch < lease.epoch {
                let stop = AttemptMail::Stop { reason: StopReason::Revoked, now: true };
                self.within_worker(on, WorkerEvent::Attempt(held, stop));
            }
        }
        match self.workers[on].process.attempts.slots.offer(&lease) {
            Placement::Begin => self.begin_attempt(on, assignment),
            Placement::Wait => {
                self.workers[on].process.attempts.waiting.insert(lease, assignment);
            }
            Placement::Refused(why) => {
                let class = match why {
                    Refusal::Leaving => FailureClass::WorkerRestarted,
                    Refusal::Crowded { .. } => FailureClass::PreflightFailed,
                };
                self.end_unbegun(on, lease, failed(Failure::new(class, why.to_string())), false);
            }
        }
    }

    fn end_unbegun(&mut self, on: usize, lease: Lease, fact: Fact, frees: bool) {
        self.workers[on].process.attempts.writing = Some(frees);
        self.order(on, Order::Report(lease, Box::new(fact), Waits::Attempts));
    }

    fn stop_one(&mut self, on: usize, lease: &Lease, reason: StopReason, now: bool) {
        if self.workers[on].process.attempts.waiting.remove(lease).is_some() {
            return self.end_unbegun(on, lease.clone(), stopped(), true);
        }
        if self.workers[on].process.attempts.running.contains_key(lease) {
            let stop = AttemptMail::Stop { reason, now };
            self.within_worker(on, WorkerEvent::Attempt(lease.clone(), stop));
        }
    }

    /// The process is asked to end: nothing begins any more, everything is ended and reported.
    fn attempts_leave(&mut self, on: usize) {
        let attempts = &mut self.workers[on].process.attempts;
        attempts.slots.close(Intake::Leaving);
        let waiting = std::mem::take(&mut attempts.waiting);
        attempts.leaving = true;
        for lease in waiting.into_keys() {
            self.workers[on].process.attempts.slots.release(&lease);
            let fact = Box::new(failed(restarted()));
            self.order(on, Order::Report(lease, fact, Waits::Attempt));
        }
        self.tell_attempts(on, || AttemptMail::Leave);
        self.attempts_left(on);
    }

    fn attempts_left(&mut self, on: usize) {
        let attempts = &self.workers[on].process.attempts;
        if attempts.leaving && attempts.running.is_empty() {
            self.on_worker(on, 5_000, WorkerEvent::Farewell);
            self.workers[on].process.link.may_leave = true;
            self.says_goodbye_if_done(on);
        }
    }

    fn free(&mut self, on: usize, lease: &Lease) {
        for next in self.workers[on].process.attempts.slots.release(lease) {
            if let Some(assignment) = self.workers[on].process.attempts.waiting.remove(&next) {
                self.begin_attempt(on, assignment);
            }
        }
    }

    fn tell_attempts(&mut self, on: usize, mail: impl Fn() -> AttemptMail) {
        let all: Vec<Lease> = self.workers[on].process.attempts.running.keys().cloned().collect();
        for lease in all {
            self.within_worker(on, WorkerEvent::Attempt(lease, mail()));
        }
    }
}

pub(super) fn restarted() -> Failure {
    Failure::new(FailureClass::WorkerRestarted, "the worker's process ended")
}

pub(super) fn failed(failure: Failure) -> Fact {
    Fact::Failed(Box::new(ended(Failed { failure, left: None, usage: Usage::default() })))
}

pub(super) fn stopped() -> Fact {
    Fact::Stopped(ended(Stopped { confirmed: true, usage: Usage::default() }))
}

fn ended<T>(end: T) -> Ended<T> {
    Ended { end, active_ms: DurationMs(0), output: None, output_truncated: false }
}

//! One lease at work: plays the actor that hosts the core and does what it asks for.
//!
//! Not here: any decision, and how long a step takes (`program.rs`).

use std::collections::VecDeque;

use ganger_shared::failure::Failure;
use ganger_shared::link::{Lease, Started, StopReason};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use ganger_worker_core::attempt::{
    self as core, Bounds, Command, Effect, Evidence, Exited, Step, Terms,
};
use ganger_worker_core::outbox::lease_of;

use super::WorkerEvent;
use super::attempts::AttemptsMail;
use super::outbox::{Order, Waits};
use super::program::Program;
use crate::world::World;

const BOUNDS: Bounds = Bounds {
    prepare_ms: DurationMs(10_000),
    start_ms: DurationMs(3_000),
    kill_ms: DurationMs(2_000),
    collect_ms: DurationMs(5_000),
};

/// What an attempt hears.
#[derive(Debug)]
pub(crate) enum AttemptMail {
    Prepared(Result<(), Failure>),
    Spawned(Result<Started, Failure>),
    Ready,
    Exited(Exited),
    Collected(Box<Evidence>),
    Discarded,
    Stop { reason: StopReason, now: bool },
    Leave,
    CutOff { lease_ms: DurationMs },
    Attached,
    Tick,
}

/// What an attempt owns.
#[derive(Debug)]
pub(crate) struct AttemptRoom {
    pub(crate) core: core::Attempt,
    pub(crate) assignment: Box<Assignment>,
    /// Which step is under way; another number means that it was given up.
    pub(crate) step: u64,
    pub(crate) program: Option<Program>,
    /// What is still to be done, once a report is durable.
    todo: VecDeque<Effect>,
    writing: bool,
    inbox: VecDeque<AttemptMail>,
    alarm: Option<u64>,
}

impl World {
    pub(super) fn begin_attempt(&mut self, on: usize, assignment: Box<Assignment>) {
        let lease = lease_of(&assignment);
        let now = self.worker_now(on);
        let (core, first) = core::Attempt::begin(Terms::of(&assignment, BOUNDS), now);
        let room = AttemptRoom {
            core,
            assignment,
            step: 0,
            program: None,
            todo: first.effects.into(),
            writing: false,
            inbox: VecDeque::new(),
            alarm: None,
        };
        self.workers[on].process.attempts.running.insert(lease.clone(), room);
        self.hand_out_effects(on, &lease);
        if let Some(lease_ms) = self.workers[on].process.attempts.cut_off {
            self.attempt_takes(on, &lease, Command::CutOff { lease_ms });
        }
        self.arm(on, &lease);
    }

    pub(super) fn attempt_room(&mut self, on: usize, lease: &Lease) -> Option<&mut AttemptRoom> {
        self.workers[on].process.attempts.running.get_mut(lease)
    }

    pub(super) fn attempt_mail(&mut self, on: usize, lease: &Lease, mail: AttemptMail) {
        let Some(room) = self.attempt_room(on, lease) else { return };
        room.inbox.push_back(mail);
        self.attempt_goes_on(on, lease);
    }

    /// A report is durable; what waited for that is done.
    pub(super) fn attempt_reported(&mut self, on: usize, lease: &Lease) {
        let Some(room) = self.attempt_room(on, lease) else { return };
        room.writing = false;
        self.hand_out_effects(on, lease);
        self.attempt_goes_on(on, lease);
    }

    fn attempt_goes_on(&mut self, on: usize, lease: &Lease) {
        while let Some(room) = self.attempt_room(on, lease)
            && !room.writing
            && let Some(mail) = room.inbox.pop_front()
        {
            self.attempt_hears(on, lease, mail);
        }
        self.arm(on, lease);
    }

    fn attempt_hears(&mut self, on: usize, lease: &Lease, mail: AttemptMail) {
        let command = match mail {
            AttemptMail::Prepared(Ok(())) => Command::Prepared,
            AttemptMail::Prepared(Err(failure)) => Command::PrepareFailed(failure),
            AttemptMail::Spawned(Ok(started)) => Command::Spawned(started),
            AttemptMail::Spawned(Err(failure)) => Command::SpawnFailed(failure),
            AttemptMail::Ready => Command::Ready,
            AttemptMail::Exited(exited) => Command::Exited(exited),
            AttemptMail::Collected(evidence) => Command::Collected(evidence),
            AttemptMail::Discarded => {
                return self
                    .within_worker(on, WorkerEvent::Attempts(AttemptsMail::Gone(lease.clone())));
            }
            AttemptMail::Stop { reason, now } => Command::Stop { reason, now },
            AttemptMail::Leave => Command::Leave,
            AttemptMail::CutOff { lease_ms } => Command::CutOff { lease_ms },
            AttemptMail::Attached => Command::Attached,
            AttemptMail::Tick => return self.attempt_ticks(on, lease),
        };
        self.attempt_takes(on, lease, command);
    }

    /// What was printed since the last look comes first.
    fn attempt_ticks(&mut self, on: usize, lease: &Lease) {
        let now_ms = self.worker_now(on).mono_ms;
        let Some(room) = self.attempt_room(on, lease) else { return };
        room.alarm = None;
        if let Some(at_ms) = room.program.as_ref().map(|program| program.heard(now_ms)) {
            self.attempt_takes(on, lease, Command::Output { at_ms });
        }
        self.attempt_takes(on, lease, Command::Tick);
    }

    fn attempt_takes(&mut self, on: usize, lease: &Lease, command: Command) {
        let now = self.worker_now(on);
        let Some(room) = self.attempt_room(on, lease) else { return };
        let Step { events, effects } = room.core.handle(now, command);
        room.todo.extend(effects);
        for event in events {
            self.note(|| format!("w{on} {} @{}: {event:?}", lease.work, lease.epoch));
        }
        self.hand_out_effects(on, lease);
    }

    fn hand_out_effects(&mut self, on: usize, lease: &Lease) {
        while let Some(room) = self.attempt_room(on, lease)
            && !room.writing
            && let Some(effect) = room.todo.pop_front()
        {
            match effect {
                Effect::Prepare => self.prepare(on, lease),
                Effect::Spawn => self.spawn(on, lease),
                Effect::Climb(rung) => self.climb(on, lease, rung),
                Effect::Abandon => self.abandon(on, lease),
                Effect::Collect(ending) => self.collect(on, lease, ending),
                Effect::Report(fact) => {
                    room.writing = true;
                    self.order(on, Order::Report(lease.clone(), fact, Waits::Attempt));
                }
                Effect::Discard { .. } => self.discard(on, lease),
            }
        }
    }

    fn arm(&mut self, on: usize, lease: &Lease) {
        let now_ms = self.worker_now(on).mono_ms;
        let Some(room) = self.attempt_room(on, lease) else { return };
        let due = room.core.next_deadline();
        if room.alarm == due {
            return;
        }
        room.alarm = due;
        if let Some(due) = due {
            let wait = due.saturating_sub(now_ms);
            self.on_worker(on, wait, WorkerEvent::Alarm(lease.clone(), due));
        }
    }

    pub(super) fn attempt_alarm(&mut self, on: usize, lease: &Lease, due: u64) {
        let now_ms = self.worker_now(on).mono_ms;
        let Some(room) = self.attempt_room(on, lease).filter(|room| room.alarm == Some(due)) else {
            return;
        };
        if now_ms < due {
            // The host slept since the alarm was set, and its timers with it.
            room.alarm = None;
            return self.arm(on, lease);
        }
        self.attempt_mail(on, lease, AttemptMail::Tick);
    }
}

//! One lease as an actor: hosts the core's state machine and does what it asks for.
//!
//! Supervises nobody; its steps are tasks that end with it. When it dies its step and its processes
//! die with it, and `Attempts` reports the lease as failed. Not here: any decision.

use std::sync::Arc;

use ganger_shared::failure::Failure;
use ganger_shared::link::{Fact, Lease, StopReason};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use ganger_worker_core::attempt::{
    self as core, Bounds, Command, Effect, Ending, Event, Evidence, Exited, Rung, Terms,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::AttemptsMessage;
use super::board::Observed;
use super::port::{ExecCommand, ExecEnd, Finish, Keep, Room, Running, Site, lease_of};
use super::steps::{Stage, Step};
use crate::outbox::Outbox;
use crate::time::Timer;

/// What an attempt hears.
pub enum AttemptMessage {
    /// The tree is made, or not.
    Prepared(Result<Room, Failure>),
    /// The program runs, or not.
    Spawned(Result<Box<Running>, Failure>),
    /// It speaks.
    Ready,
    /// It is over.
    Exited {
        /// How.
        end: Box<ExecEnd>,
        /// When, by the monotonic clock.
        at_ms: u64,
    },
    /// What it hands in is collected.
    Collected(Box<Evidence>),
    /// Its directory is gone or kept.
    Discarded,
    /// Stop it.
    Stop {
        /// Why.
        reason: StopReason,
        /// Without grace.
        now: bool,
    },
    /// The worker leaves.
    Leave,
    /// The worker lost its coordinator.
    CutOff {
        /// How long leases outlive that.
        lease_ms: DurationMs,
    },
    /// The worker has it back.
    Attached,
    /// Time has passed.
    Tick,
    /// A test wants to see what a defect of ours does.
    #[cfg(test)]
    Defect,
}

/// What an attempt is begun with.
pub struct Begin {
    /// The worker's things.
    pub site: Site,
    /// Where reports go.
    pub outbox: Outbox,
    /// What to do.
    pub assignment: Box<Assignment>,
    /// The clocks.
    pub timer: Timer,
    /// Where its progress is seen.
    pub observed: watch::Sender<Observed>,
    /// How long leases outlive the loss, where the worker is cut off already.
    pub cut_off: Option<DurationMs>,
    /// Who began it.
    pub attempts: ActorRef<AttemptsMessage>,
}

/// A tick to come; dropping it takes it back.
type Alarm = AbortOnDropHandle<Result<(), MessagingErr<AttemptMessage>>>;

/// The actor.
pub struct Attempt;

/// What it owns.
pub struct State {
    core: core::Attempt,
    lease: Lease,
    stage: Stage,
    outbox: Outbox,
    observed: watch::Sender<Observed>,
    attempts: ActorRef<AttemptsMessage>,
    room: Option<Arc<Room>>,
    running: Option<Box<Running>>,
    end: Option<Box<ExecEnd>>,
    step: Option<Step>,
    /// When the next tick is due, and the task that will say so.
    alarm: Option<(u64, Alarm)>,
}

impl Actor for Attempt {
    type Msg = AttemptMessage;
    type State = State;
    type Arguments = Begin;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        begin: Begin,
    ) -> Result<State, ActorProcessingErr> {
        let Begin { site, outbox, assignment, timer, observed, cut_off, attempts } = begin;
        let now = timer.now();
        let bounds = site.config.bounds;
        let bounds = Bounds {
            prepare_ms: bounds.prepare_ms,
            start_ms: bounds.start_ms,
            kill_ms: bounds.kill_ms,
            collect_ms: bounds.collect_ms,
        };
        let (core, first) = core::Attempt::begin(Terms::of(&assignment, bounds), now);
        let lease = lease_of(&assignment);
        let steps = Stage { site, assignment: Arc::from(assignment), timer, attempt: myself };
        let mut state = State {
            core,
            lease,
            stage: steps,
            outbox,
            observed,
            attempts,
            room: None,
            running: None,
            end: None,
            step: None,
            alarm: None,
        };
        state.hand_out(first.effects).await?;
        if let Some(lease_ms) = cut_off {
            state.take(Command::CutOff { lease_ms }).await?;
        }
        state.arm();
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: AttemptMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            AttemptMessage::Prepared(made) => state.prepared(made).await?,
            AttemptMessage::Spawned(running) => state.spawned(running).await?,
            AttemptMessage::Ready => state.take(Command::Ready).await?,
            AttemptMessage::Exited { end, at_ms } => state.exited(end, at_ms).await?,
            AttemptMessage::Collected(evidence) => {
                state.take(Command::Collected(evidence)).await?;
            }
            AttemptMessage::Discarded => myself.stop(None),
            AttemptMessage::Stop { reason, now } => {
                state.take(Command::Stop { reason, now }).await?;
            }
            AttemptMessage::Leave => state.take(Command::Leave).await?,
            AttemptMessage::CutOff { lease_ms } => state.take(Command::CutOff { lease_ms }).await?,
            AttemptMessage::Attached => state.take(Command::Attached).await?,
            AttemptMessage::Tick => state.tick().await?,
            #[cfg(test)]
            AttemptMessage::Defect => panic!("a defect"),
        }
        state.arm();
        Ok(())
    }
}

impl State {
    async fn prepared(&mut self, made: Result<Room, Failure>) -> Result<(), ActorProcessingErr> {
        match made {
            Ok(room) => {
                self.room = Some(Arc::new(room));
                self.take(Command::Prepared).await
            }
            Err(failure) => self.take(Command::PrepareFailed(failure)).await,
        }
    }

    async fn spawned(
        &mut self,
        running: Result<Box<Running>, Failure>,
    ) -> Result<(), ActorProcessingErr> {
        match running {
            Ok(running) => {
                let started = running.started.clone();
                self.running = Some(running);
                self.take(Command::Spawned(started)).await
            }
            Err(failure) => self.take(Command::SpawnFailed(failure)).await,
        }
    }

    async fn exited(&mut self, end: Box<ExecEnd>, at_ms: u64) -> Result<(), ActorProcessingErr> {
        let exited = Exited { failure: end.failure.clone(), confirmed: end.confirmed, at_ms };
        self.end = Some(end);
        self.running = None;
        self.take(Command::Exited(exited)).await
    }

    /// What was printed since the last look is on the board.
    async fn tick(&mut self) -> Result<(), ActorProcessingErr> {
        self.alarm = None;
        let at_ms = self.observed.borrow().heard_ms;
        self.take(Command::Output { at_ms }).await?;
        self.take(Command::Tick).await
    }

    async fn take(&mut self, command: Command) -> Result<(), ActorProcessingErr> {
        let step = self.core.handle(self.stage.timer.now(), command);
        for event in &step.events {
            self.log(event);
        }
        self.hand_out(step.effects).await?;
        let phase = self.core.phase_name();
        self.observed
            .send_if_modified(|observed| std::mem::replace(&mut observed.phase, phase) != phase);
        Ok(())
    }

    async fn hand_out(&mut self, effects: Vec<Effect>) -> Result<(), ActorProcessingErr> {
        for effect in effects {
            match effect {
                Effect::Prepare => self.step = Some(self.stage.prepare()),
                Effect::Spawn => self.spawn(),
                Effect::Climb(rung) => self.climb(rung).await,
                Effect::Abandon => self.abandon(),
                Effect::Collect(ending) => self.collect(ending),
                Effect::Report(fact) => self.report(*fact).await?,
                Effect::Discard { keep } => self.discard(keep),
            }
        }
        Ok(())
    }

    fn spawn(&mut self) {
        self.step = Some(self.stage.execute(self.room(), self.observed.clone()));
    }

    async fn climb(&mut self, rung: Rung) {
        let Some(running) = &self.running else { return };
        // An executor that has ended, or whose ear is full, is past asking: its tree is told.
        if rung == Rung::Interrupt && running.commands.try_send(ExecCommand::Interrupt).is_ok() {
            return;
        }
        let Some(tree) = &running.tree else {
            if rung == Rung::Kill {
                self.running = None;
            }
            return;
        };
        let climbed = match rung {
            Rung::Interrupt => tree.interrupt().await,
            Rung::Terminate => tree.terminate().await,
            Rung::Kill => tree.kill().await,
        };
        if let Err(ended) = climbed {
            tracing::debug!(work = %self.lease.work, %ended, "a rung was not needed");
        }
    }

    fn abandon(&mut self) {
        self.step = None;
        self.running = None;
    }

    fn collect(&mut self, ending: Ending) {
        self.running = None;
        let finish = Finish { ending, end: self.end.take() };
        self.step = Some(self.stage.collect(self.room(), finish));
    }

    async fn report(&mut self, fact: Fact) -> Result<(), ActorProcessingErr> {
        Ok(self.outbox.report(&self.lease, fact).await?)
    }

    /// The report is on the disk: the slot is free, whatever the directory still takes.
    fn discard(&mut self, keep: bool) {
        let _ = self.attempts.cast(AttemptsMessage::Closed(self.lease.clone()));
        let keep = if keep { Keep::Tree } else { Keep::Nothing };
        self.step = Some(self.stage.discard(keep));
    }

    fn room(&self) -> Arc<Room> {
        Arc::clone(self.room.as_ref().expect("nothing is started or collected before its room"))
    }

    /// Sets the alarm for what is due next.
    fn arm(&mut self) {
        let due = self.core.next_deadline();
        if self.alarm.as_ref().map(|(due, _)| *due) == due {
            return;
        }
        self.alarm = due.map(|due| {
            let attempt = self.stage.attempt.clone();
            let wait = self.stage.timer.until(due);
            (due, AbortOnDropHandle::new(attempt.send_after(wait, || AttemptMessage::Tick)))
        });
    }

    fn log(&self, event: &Event) {
        let (run, work, epoch) = (&self.lease.run, &self.lease.work, self.lease.epoch);
        match event {
            Event::QuietAtHalf { .. } | Event::Slept { .. } | Event::GaveUp { .. } => {
                tracing::warn!(%run, %work, %epoch, ?event, "attempt");
            }
            Event::Prepared
            | Event::Spawned { .. }
            | Event::Ready
            | Event::Halted { .. }
            | Event::Climbed { .. }
            | Event::Ended { .. }
            | Event::StopCameLate
            | Event::Closed => tracing::info!(%run, %work, %epoch, ?event, "attempt"),
        }
    }
}

//! The attempts of this worker. Policy: an attempt that dies by a defect of ours is reported as
//! failed, its processes go with it, and nobody else notices; nothing is started anew here.
//!
//! Gives out slots and keeps the board that the beats read. Not here: what an attempt decides, and
//! whether a lease may begin at all (the outbox has accepted it before it comes here).

use std::collections::BTreeMap;

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{Ended, Fact, Failed, Lease, StopReason, Stopped};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use ganger_worker_core::slots::{Intake, Placement, Refusal, Slots};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;

use crate::outbox::{Gone, Outbox, ReportError};
use crate::time::Timer;

pub mod attempt;
pub mod board;
pub mod port;
mod steps;

use attempt::{Attempt, AttemptMessage, Begin};
use board::{Board, Observed};
use port::{Site, lease_of};

/// What the attempts hear together.
pub enum AttemptsMessage {
    /// A lease was accepted: begin it.
    Begin(Box<Assignment>),
    /// Stop a lease.
    Stop {
        /// Which.
        lease: Lease,
        /// Why.
        reason: StopReason,
        /// Without grace.
        now: bool,
    },
    /// The worker lost its coordinator.
    CutOff {
        /// How long leases outlive that.
        lease_ms: DurationMs,
    },
    /// The worker has it back.
    Attached,
    /// The worker leaves: end everything, and say when it is done.
    Leave(RpcReplyPort<()>),
    /// This attempt has reported its end.
    Closed(Lease),
    /// A test wants to see what a defect of ours in this attempt does.
    #[cfg(test)]
    Defect(Lease),
}

/// What the attempts are begun with.
pub struct Arguments {
    /// The worker's things.
    pub site: Site,
    /// Where reports go.
    pub outbox: Outbox,
    /// The clocks.
    pub timer: Timer,
    /// Where progress is seen.
    pub board: watch::Sender<Board>,
}

/// The actor.
pub struct Attempts;

/// What it owns.
pub struct State {
    arguments: Arguments,
    slots: Slots,
    /// Actors, until they are gone; an ended one may still be clearing up.
    running: BTreeMap<Lease, ActorRef<AttemptMessage>>,
    waiting: BTreeMap<Lease, Box<Assignment>>,
    cut_off: Option<DurationMs>,
    leaving: Option<RpcReplyPort<()>>,
}

impl Actor for Attempts {
    type Msg = AttemptsMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<Self::Msg>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let slots = Slots::new(arguments.site.config.slots as usize);
        let (running, waiting) = (BTreeMap::new(), BTreeMap::new());
        // Until the first attach there is no lease that could end.
        Ok(State { arguments, slots, running, waiting, cut_off: None, leaving: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: AttemptsMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            AttemptsMessage::Begin(assignment) => state.offer(&myself, assignment).await?,
            AttemptsMessage::Stop { lease, reason, now } => {
                state.stop(&myself, &lease, reason, now).await?;
            }
            AttemptsMessage::CutOff { lease_ms } => state.cut_off(lease_ms),
            AttemptsMessage::Attached => state.attached(),
            AttemptsMessage::Leave(done) => state.leave(done).await?,
            AttemptsMessage::Closed(lease) => state.free(&myself, &lease).await?,
            #[cfg(test)]
            AttemptsMessage::Defect(lease) => state.running[&lease].cast(AttemptMessage::Defect)?,
        }
        state.show();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                state.gone(&myself, &cell, "it ended before its report").await?;
            }
            SupervisionEvent::ActorFailed(cell, why) => {
                state.gone(&myself, &cell, &why.to_string()).await?;
            }
        }
        state.show();
        Ok(())
    }
}

impl State {
    async fn offer(
        &mut self,
        myself: &ActorRef<AttemptsMessage>,
        assignment: Box<Assignment>,
    ) -> Result<(), Gone> {
        let lease = lease_of(&assignment);
        self.supersede(&lease);
        match self.slots.offer(&lease) {
            Placement::Begin => self.begin(myself, assignment).await,
            Placement::Wait => {
                self.waiting.insert(lease, assignment);
                Ok(())
            }
            Placement::Refused(why) => {
                let class = match why {
                    Refusal::Leaving => FailureClass::WorkerRestarted,
                    Refusal::Crowded { .. } => FailureClass::PreflightFailed,
                };
                self.report(&lease, failed(Failure::new(class, why.to_string()))).await
            }
        }
    }

    /// A newer lease of the same work: the older one is nobody's any more.
    fn supersede(&self, lease: &Lease) {
        let older = |held: &Lease| {
            held.run == lease.run && held.work == lease.work && held.epoch < lease.epoch
        };
        for (_, attempt) in self.running.iter().filter(|(held, _)| older(held)) {
            let _ = attempt.cast(AttemptMessage::Stop { reason: StopReason::Revoked, now: true });
        }
    }

    async fn begin(
        &mut self,
        myself: &ActorRef<AttemptsMessage>,
        assignment: Box<Assignment>,
    ) -> Result<(), Gone> {
        let lease = lease_of(&assignment);
        let Arguments { site, outbox, timer, board } = &self.arguments;
        let (observed, seen) = watch::channel(Observed::beginning(timer.now().mono_ms));
        let begin = Begin {
            site: site.clone(),
            outbox: outbox.clone(),
            assignment,
            timer: *timer,
            observed,
            cut_off: self.cut_off,
            attempts: myself.clone(),
        };
        match Attempt::spawn_linked(None, Attempt, begin, myself.get_cell()).await {
            Ok((attempt, _)) => {
                board.send_modify(|board| drop(board.attempts.insert(lease.clone(), seen)));
                self.running.insert(lease, attempt);
                Ok(())
            }
            Err(error) => {
                self.slots.release(&lease);
                let failure = Failure::new(FailureClass::Unknown, format!("begin it: {error}"));
                self.report(&lease, failed(failure)).await
            }
        }
    }

    async fn stop(
        &mut self,
        myself: &ActorRef<AttemptsMessage>,
        lease: &Lease,
        reason: StopReason,
        now: bool,
    ) -> Result<(), Gone> {
        if self.waiting.remove(lease).is_some() {
            self.report(lease, stopped()).await?;
            return self.free(myself, lease).await;
        }
        match self.running.get(lease) {
            Some(attempt) => {
                let _ = attempt.cast(AttemptMessage::Stop { reason, now });
                Ok(())
            }
            // It has reported its end, which answers this too.
            None => Ok(()),
        }
    }

    fn cut_off(&mut self, lease_ms: DurationMs) {
        self.cut_off = Some(lease_ms);
        self.tell_all(|| AttemptMessage::CutOff { lease_ms });
    }

    fn attached(&mut self) {
        self.cut_off = None;
        self.tell_all(|| AttemptMessage::Attached);
    }

    async fn leave(&mut self, done: RpcReplyPort<()>) -> Result<(), Gone> {
        self.slots.close(Intake::Leaving);
        // Before anything is handed back, so that it is not offered to this worker again.
        self.show();
        for (lease, _) in std::mem::take(&mut self.waiting) {
            let failure = Failure::new(FailureClass::WorkerRestarted, Refusal::Leaving.to_string());
            self.report(&lease, failed(failure)).await?;
            self.slots.release(&lease);
        }
        self.tell_all(|| AttemptMessage::Leave);
        self.leaving = Some(done);
        self.say_when_empty();
        Ok(())
    }

    /// An ended lease gives its slot to who waits for it.
    async fn free(
        &mut self,
        myself: &ActorRef<AttemptsMessage>,
        lease: &Lease,
    ) -> Result<(), Gone> {
        self.arguments.board.send_modify(|board| drop(board.attempts.remove(lease)));
        for next in self.slots.release(lease) {
            if let Some(assignment) = self.waiting.remove(&next) {
                self.begin(myself, assignment).await?;
            }
        }
        Ok(())
    }

    /// An actor is no more. One that had not reported its end died by a defect of ours.
    async fn gone(
        &mut self,
        myself: &ActorRef<AttemptsMessage>,
        cell: &ActorCell,
        why: &str,
    ) -> Result<(), Gone> {
        let found = self.running.iter().find(|(_, attempt)| attempt.get_id() == cell.get_id());
        let Some(lease) = found.map(|(lease, _)| lease.clone()) else { return Ok(()) };
        self.running.remove(&lease);
        let failure = Failure::new(FailureClass::Unknown, format!("a defect of the worker: {why}"));
        let live = self.arguments.outbox.owed().borrow().live.contains(&lease);
        if live {
            tracing::error!(run = %lease.run, work = %lease.work, why, "an attempt's actor died");
            self.report(&lease, failed(failure)).await?;
        }
        self.free(myself, &lease).await?;
        self.say_when_empty();
        Ok(())
    }

    fn say_when_empty(&mut self) {
        if self.running.is_empty()
            && let Some(done) = self.leaving.take()
        {
            // Who asked may have lost patience.
            let _ = done.send(());
        }
    }

    async fn report(&self, lease: &Lease, fact: Fact) -> Result<(), Gone> {
        match self.arguments.outbox.report(lease, fact).await {
            Ok(()) => Ok(()),
            Err(ReportError::Not(ended)) => {
                tracing::debug!(%ended, "its end was reported already");
                Ok(())
            }
            Err(ReportError::Gone(gone)) => Err(gone),
        }
    }

    fn tell_all(&self, message: impl Fn() -> AttemptMessage) {
        for attempt in self.running.values() {
            let _ = attempt.cast(message());
        }
    }

    fn show(&self) {
        let busy = u32::try_from(self.slots.busy_attempts()).unwrap_or(u32::MAX);
        let draining = self.slots.intake() != Intake::Open;
        self.arguments.board.send_if_modified(|board| {
            let changed = (board.busy, board.draining) != (busy, draining);
            (board.busy, board.draining) = (busy, draining);
            changed
        });
    }
}

/// A failure of an attempt that never worked.
pub(crate) fn failed(failure: Failure) -> Fact {
    let end = Failed { failure, left: None, usage: Usage::default() };
    Fact::Failed(Box::new(ended(end)))
}

/// The end of a lease of which nothing was ever started.
pub(crate) fn stopped() -> Fact {
    Fact::Stopped(ended(Stopped { confirmed: true, usage: Usage::default() }))
}

fn ended<T>(end: T) -> Ended<T> {
    Ended { end, active_ms: DurationMs(0), output: None, output_truncated: false }
}

#[cfg(test)]
mod tests;

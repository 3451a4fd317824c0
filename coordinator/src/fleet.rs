//! Workers and slots: hosts the fleet's core and carries its answers out.
//!
//! Nothing here waits for the journal or for a worker, so that beats are handled however slow either
//! is (P113). Policy: a session that dies ends its stream, and its worker dials again; the leases go
//! on until the clock ends them.

mod message;
mod outputs;
mod recorder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ganger_coordinator_core::fleet::{Attached, Fleet, Folded, Input, Now, Wanted};
use ganger_coordinator_core::run::{EffectId, SlotWant};
use ganger_shared::ids::{InstanceId, ProjectId, RunId, WorkerId};
use ganger_shared::limits::Limits;
use ganger_shared::link::{Beat, CoordinatorSays, Hello, Progress};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use message::{Cordon, FleetMessage, claim};

use crate::clock::Clock;
use crate::house::House;
use crate::run::RunMessage;
use crate::session::{Outbound, SessionMessage};

/// A tick this much later than it was due means that the process stood still.
const STOOD_STILL_MS: u64 = 1_000;
/// The longest wait for a tick. However far the next deadline is, a standstill is then noticed with
/// nearly its whole length, and no deadline falls into it unseen.
const TICK_MS: u64 = 1_000;

/// The actor.
pub struct FleetActor;

/// What it is started with.
pub struct Arguments {
    /// The clocks.
    pub clock: Clock,
    /// Times and bounds.
    pub limits: Limits,
}

struct RunSeat {
    actor: ActorRef<RunMessage>,
    project: ProjectId,
    priority: i32,
}

type Alarm = JoinHandle<Result<(), ractor::MessagingErr<FleetMessage>>>;

struct Stream {
    session: u64,
    actor: ActorRef<SessionMessage>,
    outbound: Outbound,
}

/// What it owns.
pub struct State {
    clock: Clock,
    core: Fleet,
    house: Option<House>,
    runs: BTreeMap<RunId, RunSeat>,
    streams: BTreeMap<WorkerId, Stream>,
    progress: BTreeMap<WorkerId, Vec<Progress>>,
    recorder: Option<recorder::Recorder>,
    alarm: Option<(u64, Alarm)>,
}

impl Actor for FleetActor {
    type Msg = FleetMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<FleetMessage>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        // Tokens of an earlier start are never used again: they begin at the time of this one.
        let first_token = arguments.clock.utc().unix_ms().unsigned_abs() << 20;
        Ok(State {
            clock: arguments.clock,
            core: Fleet::new(&arguments.limits, first_token),
            house: None,
            runs: BTreeMap::new(),
            streams: BTreeMap::new(),
            progress: BTreeMap::new(),
            recorder: None,
            alarm: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<FleetMessage>,
        message: FleetMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            FleetMessage::Begin(house) => state.begin(*house)?,
            FleetMessage::Open => state.tell(Input::Open),
            FleetMessage::Attach { hello, outbound, port } => {
                state.attach(&myself, *hello, outbound, port).await?;
            }
            FleetMessage::Detached { worker, session, goodbye } => {
                state.detached(worker, session, goodbye);
            }
            FleetMessage::Beat { worker, instance, beat, place } => {
                state.beat(worker, instance, beat);
                drop(place);
            }
            FleetMessage::Reconciled { worker, instance } => {
                state.tell(Input::Reconciled { worker, instance });
            }
            FleetMessage::RunUp { folded, project, priority, actor } => {
                state.runs.insert(folded.run.clone(), RunSeat { actor, project, priority });
                state.tell(Input::Folded(folded));
            }
            FleetMessage::RunDown { run } => state.run_down(&run),
            FleetMessage::Want { run, id, want } => state.want(run, id, *want),
            FleetMessage::Claim(claim) => state.tell(Input::ClaimHeld(claim)),
            FleetMessage::Gone { run, id } => state.effect_gone(run, id),
            FleetMessage::LeaseGone { lease } => state.tell(Input::LeaseGone(lease)),
            FleetMessage::OfferTaken { token, lease } => {
                state.tell(Input::OfferTaken { token, lease });
            }
            FleetMessage::OfferDeclined { token } => state.tell(Input::OfferDeclined { token }),
            FleetMessage::Say { worker, says } => state.say(&worker, *says),
            FleetMessage::Tick => state.tick(),
            FleetMessage::List(port) => drop(port.send(state.core.workers())),
            FleetMessage::Facts(port) => drop(port.send(state.core.facts())),
            FleetMessage::Demand(port) => drop(port.send(state.core.demand())),
            FleetMessage::Progress { run, port } => drop(port.send(state.progress_of(&run))),
            FleetMessage::Explain { run, unit, port } => {
                let waiting = state.core.explain(&run, &unit);
                drop(port.send(waiting.map(|waiting| (waiting.position, waiting.reasons))));
            }
            FleetMessage::Cordon(worker, how) => state.tell(match how {
                Cordon::Cordon => Input::Cordon(worker),
                Cordon::Drain => Input::Drain(worker),
                Cordon::Uncordon => Input::Uncordon(worker),
            }),
        }
        state.set_alarm(&myself);
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<FleetMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(recorder) = state.recorder.take() {
            recorder.finish().await;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<FleetMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                tracing::error!(%error, "a session died");
                state.session_gone(cell.get_id().pid());
            }
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                state.session_gone(cell.get_id().pid());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl State {
    /// Workers of earlier starts are remembered, so that they are listed before they are back.
    fn begin(&mut self, house: House) -> Result<(), ActorProcessingErr> {
        let now = self.now();
        recorder::replay(&house.store, |event| self.core.remember(now, event))?;
        self.recorder = Some(recorder::Recorder::start(house.store.clone(), house.clock));
        self.house = Some(house);
        Ok(())
    }

    fn now(&self) -> Now {
        Now { ms: self.clock.mono_ms(), at: self.clock.utc() }
    }

    fn tell(&mut self, input: Input) {
        let now = self.now();
        let outputs = self.core.handle(now, input);
        for output in outputs {
            self.carry_out(output);
        }
    }

    /// Nothing is taken before `Begin`; the worker dials again.
    async fn attach(
        &mut self,
        myself: &ActorRef<FleetMessage>,
        hello: Hello,
        outbound: Outbound,
        port: oneshot::Sender<Result<ActorRef<SessionMessage>, String>>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(house) = self.house.clone() else {
            drop(port.send(Err("the coordinator is starting".to_owned())));
            return Ok(());
        };
        let (worker, facts) = (hello.facts.worker.clone(), hello.facts.clone());
        let (live, finished) = (hello.live.clone(), hello.finished.clone());
        let arguments = crate::session::Arguments { house, hello, outbound: outbound.clone() };
        let (actor, _) =
            Actor::spawn_linked(None, crate::session::SessionActor, arguments, myself.get_cell())
                .await?;
        let session = actor.get_id().pid();
        let before =
            self.streams.insert(worker.clone(), Stream { session, actor: actor.clone(), outbound });
        let attached = Attached { facts, session, live, finished };
        let outputs = self.core.handle(self.now(), Input::Attached(Box::new(attached)));
        if let Some(why) = outputs::refusal(&outputs, session) {
            actor.stop(None);
            self.streams.remove(&worker);
            if let Some(stream) = before {
                self.streams.insert(worker, stream);
            }
            drop(port.send(Err(why)));
        } else {
            if let Some(stream) = before {
                stream.outbound.hang_up();
            }
            drop(port.send(Ok(actor)));
        }
        for output in outputs {
            self.carry_out(output);
        }
        Ok(())
    }

    fn detached(&mut self, worker: WorkerId, session: u64, goodbye: bool) {
        if self.streams.get(&worker).is_some_and(|stream| stream.session == session) {
            self.streams.remove(&worker);
            self.progress.remove(&worker);
        }
        self.tell(Input::Detached { worker, session, goodbye });
    }

    fn session_gone(&mut self, session: u64) {
        let worker = self
            .streams
            .iter()
            .find(|(_, stream)| stream.session == session)
            .map(|(worker, _)| worker.clone());
        if let Some(worker) = worker {
            if let Some(stream) = self.streams.get(&worker) {
                stream.outbound.hang_up();
            }
            self.detached(worker, session, false);
        }
    }

    fn beat(&mut self, worker: WorkerId, instance: InstanceId, beat: Box<Beat>) {
        if self.streams.contains_key(&worker) {
            self.progress.insert(worker.clone(), beat.live.clone());
        }
        self.tell(Input::Beat { worker, instance, beat });
    }

    fn progress_of(&self, run: &RunId) -> Vec<Progress> {
        self.progress
            .values()
            .flatten()
            .filter(|progress| progress.lease.run == *run)
            .cloned()
            .collect()
    }

    fn want(&mut self, run: RunId, id: EffectId, want: SlotWant) {
        let Some(seat) = self.runs.get(&run) else { return };
        let (project, run_priority) = (seat.project.clone(), seat.priority);
        self.tell(Input::Want(Box::new(Wanted { run, project, run_priority, id, want })));
    }

    fn effect_gone(&mut self, run: RunId, id: EffectId) {
        match id {
            EffectId::WantSlot(..) | EffectId::WantCheck(_) => self.tell(Input::Unwant { run, id }),
            EffectId::Claim(unit) => self.tell(Input::ClaimReleased { run, unit }),
            EffectId::Assign(..)
            | EffectId::Stop(..)
            | EffectId::Take(_)
            | EffectId::Merge(_)
            | EffectId::Apply(_) => {}
        }
    }

    /// A run that is over wants and holds nothing.
    fn run_down(&mut self, run: &RunId) {
        if self.runs.remove(run).is_some() {
            let nothing = Folded {
                run: run.clone(),
                wants: Vec::new(),
                claims: Vec::new(),
                leases: Vec::new(),
            };
            self.tell(Input::Folded(Box::new(nothing)));
        }
    }

    fn say(&self, worker: &WorkerId, says: CoordinatorSays) {
        if let Some(stream) = self.streams.get(worker) {
            stream.outbound.say(says);
        }
    }

    fn tick(&mut self) {
        if let Some((due, _)) = self.alarm.take() {
            let late = self.clock.mono_ms().saturating_sub(due);
            if late > STOOD_STILL_MS {
                tracing::warn!(late_ms = late, "the coordinator stood still");
                self.tell(Input::Suspended { by_ms: late });
            }
        }
        self.tell(Input::Tick);
    }

    fn set_alarm(&mut self, myself: &ActorRef<FleetMessage>) {
        let Some(due) = self.core.next_deadline() else {
            if let Some((_, alarm)) = self.alarm.take() {
                alarm.abort();
            }
            return;
        };
        if self.alarm.as_ref().is_some_and(|(at, _)| *at <= due) {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            alarm.abort();
        }
        let now = self.clock.mono_ms();
        let due = due.clamp(now, now + TICK_MS);
        let wait = std::time::Duration::from_millis(due - now);
        self.alarm = Some((due, myself.send_after(wait, || FleetMessage::Tick)));
    }
}

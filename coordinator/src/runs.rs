//! All runs: finds them, starts their actors, lists them, and makes a submit happen once.
//!
//! Policy: a run's actor that fails is started again, which folds it; one that fails three times
//! within a minute, at its fold or at anything else, is quarantined by a fact in stream `system`, and
//! every report on it is answered `retry_later` until somebody says that it may be folded again.

mod list;
mod parking;
mod quarantine;
mod reconcile;
mod submit;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use ganger_coordinator_core::fleet::Inventory;
use ganger_shared::digest::Digest;
use ganger_shared::ids::{IdempotencyKey, InstanceId, RunId, WorkerId};
use ganger_shared::link::Answer;
use ganger_shared::rejection::Rejection;
use ganger_shared::view::RunRow;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{mpsc, oneshot};

use crate::fleet::FleetMessage;
use crate::house::House;
use crate::journal::StreamName;
use crate::run::{self, Asked, ReplyTo, RunActor, RunMessage};
use crate::session::SessionHandle;

/// Runs that are over and kept at hand, because somebody asked for them lately.
const AT_HAND: usize = 64;

/// How the names of runs' streams begin.
const RUNS: &str = "run/";

/// What `Runs` is told.
pub enum RunsMessage {
    /// Everything is in place: fold what is in the journal.
    Open(Box<House>),
    /// A run stands elsewhere than before.
    Standing(Box<Standing>),
    /// Find a run by its id or the beginning of it.
    Find {
        /// What was written.
        name: String,
        /// The answer.
        port: oneshot::Sender<Result<ActorRef<RunMessage>, Rejection>>,
    },
    /// Begin a run.
    Submit {
        /// The new run's id, unless the key was used before.
        run: RunId,
        /// The submit.
        asked: Box<Asked>,
    },
    /// Give a run something to decide.
    Tell {
        /// Which.
        run: RunId,
        /// What.
        asked: Box<Asked>,
    },
    /// Compare a worker's inventory with every run.
    Reconcile {
        /// Which worker.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
        /// What is asked of which run.
        runs: Vec<Inventory>,
        /// Who waits.
        session: SessionHandle,
    },
    /// A worker is reconciled.
    Attached {
        /// Which.
        worker: WorkerId,
    },
    /// A run that is open hands out again what it owes.
    Owed {
        /// Which.
        run: RunId,
    },
    /// List runs.
    List {
        /// The answer: every run, newest first.
        port: oneshot::Sender<Vec<Listed>>,
    },
    /// The run that a submit under this key makes or made.
    Reserve {
        /// The key.
        key: IdempotencyKey,
        /// The id it gets if the key is new; absent to only ask.
        new: Option<RunId>,
        /// The answer; nothing for a new key that was only asked about.
        port: oneshot::Sender<Option<RunId>>,
    },
    /// Fold a quarantined run again.
    Release {
        /// Which.
        name: String,
        /// The answer.
        port: oneshot::Sender<Result<RunId, Rejection>>,
    },
    /// The journal takes nothing more.
    JournalFailed {
        /// Why.
        reason: String,
    },
}

/// One run of a list.
pub struct Listed {
    /// As it stood when its state last changed.
    pub row: RunRow,
    /// Whom to ask how it stands now; absent for a run that is over.
    pub live: Option<ActorRef<RunMessage>>,
}

/// How a run stands.
pub struct Standing {
    /// Which.
    pub run: RunId,
    /// As a list shows it; absent for a run without events.
    pub row: Option<Box<RunRow>>,
    /// It is not over.
    pub open: bool,
    /// The calls it carried out.
    pub calls: BTreeMap<IdempotencyKey, Digest>,
}

/// The actor.
pub struct RunsActor;

/// What it owns.
#[derive(Default)]
pub struct State {
    house: Option<House>,
    actors: BTreeMap<RunId, ActorRef<RunMessage>>,
    by_actor: BTreeMap<u64, RunId>,
    rows: BTreeMap<RunId, RunRow>,
    /// Runs of this start that are not folded yet.
    folding: std::collections::BTreeSet<RunId>,
    opened: bool,
    /// Submits by key: the run each made.
    submits: BTreeMap<IdempotencyKey, RunId>,
    /// Runs that are over and have an actor, oldest first.
    at_hand: VecDeque<RunId>,
    failures: BTreeMap<RunId, VecDeque<u64>>,
    quarantined: BTreeMap<RunId, String>,
    /// Told when the coordinator must end.
    fatal: Option<mpsc::Sender<String>>,
    /// Callers that came before every run was folded.
    parked: Vec<RunsMessage>,
}

impl Actor for RunsActor {
    type Msg = RunsMessage;
    type State = State;
    type Arguments = mpsc::Sender<String>;

    async fn pre_start(
        &self,
        _myself: ActorRef<RunsMessage>,
        fatal: mpsc::Sender<String>,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State { fatal: Some(fatal), ..State::default() })
    }

    async fn handle(
        &self,
        myself: ActorRef<RunsMessage>,
        message: RunsMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let Some(message) = state.park(message) else { return Ok(()) };
        match message {
            RunsMessage::Open(house) => state.open(&myself, *house).await?,
            RunsMessage::Standing(standing) => state.standing(*standing)?,
            RunsMessage::Find { name, port } => {
                let found = state.find(&myself, &name).await?;
                drop(port.send(found));
            }
            RunsMessage::Submit { run, asked } => state.submit(&myself, run, *asked).await?,
            RunsMessage::Tell { run, asked } => state.tell(&myself, &run, *asked).await?,
            RunsMessage::Reconcile { worker, instance, runs, session } => {
                state.reconcile(&worker, &instance, runs, &session);
            }
            RunsMessage::Attached { worker } => state.attached(&worker),
            RunsMessage::Owed { run } => state.owed(&run),
            RunsMessage::List { port } => drop(port.send(state.list())),
            RunsMessage::Reserve { key, new, port } => drop(port.send(state.reserve(key, new))),
            RunsMessage::Release { name, port } => {
                let released = state.release(&myself, &name).await?;
                drop(port.send(released));
            }
            RunsMessage::JournalFailed { reason } => state.fatal(reason),
        }
        state.unpark(&myself)
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<RunsMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => state.ended(cell.get_id()),
            SupervisionEvent::ActorFailed(cell, error) => {
                state.failed(&myself, cell.get_id(), &error.to_string()).await?;
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        // A run that was set aside may have been the last that others waited for.
        state.unpark(&myself)
    }
}

impl State {
    async fn open(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        house: House,
    ) -> Result<(), ActorProcessingErr> {
        self.read_quarantine(&house)?;
        self.remember_submits(&house)?;
        let streams = house.store.streams(RUNS);
        self.house = Some(house);
        let runs: Vec<RunId> = streams.iter().filter_map(|(name, _)| run_of(name)).collect();
        self.folding =
            runs.iter().filter(|run| !self.quarantined.contains_key(run)).cloned().collect();
        for run in runs {
            if !self.quarantined.contains_key(&run) {
                self.start(myself, &run).await?;
            }
        }
        self.open_if_folded()
    }

    /// The house; only messages that come after `Open` need it.
    fn house(&self) -> &House {
        self.house.as_ref().expect("the coordinator opens its runs before anyone can reach them")
    }

    async fn start(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        run: &RunId,
    ) -> Result<ActorRef<RunMessage>, ActorProcessingErr> {
        let arguments = run::Arguments { id: run.clone(), house: self.house().clone() };
        let (actor, _) = Actor::spawn_linked(None, RunActor, arguments, myself.get_cell()).await?;
        self.by_actor.insert(actor.get_id().pid(), run.clone());
        self.actors.insert(run.clone(), actor.clone());
        Ok(actor)
    }

    fn standing(&mut self, standing: Standing) -> Result<(), ActorProcessingErr> {
        let Standing { run, row, open, calls } = standing;
        for key in calls.into_keys() {
            self.submits.entry(key).or_insert_with(|| run.clone());
        }
        if let Some(row) = row {
            self.rows.insert(run.clone(), *row);
        }
        if !open && self.actors.contains_key(&run) {
            self.keep_at_hand(run.clone());
        }
        if self.folding.remove(&run) {
            self.open_if_folded()?;
        }
        Ok(())
    }

    /// Nothing is granted before every run is folded.
    fn open_if_folded(&mut self) -> Result<(), ActorProcessingErr> {
        if self.opened || !self.folding.is_empty() {
            return Ok(());
        }
        self.opened = true;
        self.house().fleet.cast(FleetMessage::Open)?;
        Ok(())
    }

    /// A finished run's actor stays for a while; the oldest goes.
    fn keep_at_hand(&mut self, run: RunId) {
        self.at_hand.retain(|other| *other != run);
        self.at_hand.push_back(run);
        while self.at_hand.len() > AT_HAND {
            let Some(oldest) = self.at_hand.pop_front() else { break };
            if let Some(actor) = self.actors.remove(&oldest) {
                self.by_actor.remove(&actor.get_id().pid());
                if actor.drain().is_err() {
                    tracing::debug!(run = %oldest, "its actor had ended before");
                }
            }
        }
    }

    async fn tell(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        run: &RunId,
        asked: Asked,
    ) -> Result<(), ActorProcessingErr> {
        if self.quarantined.contains_key(run) {
            self.refuse(asked, Answer::RetryLater);
            return Ok(());
        }
        match self.actor(myself, run).await? {
            Some(actor) => {
                // What is dropped says so itself: a report is answered `retry_later`, an offer lapses.
                if actor.cast(RunMessage::Ask(Box::new(asked))).is_err() {
                    tracing::debug!(%run, "its actor has just ended");
                }
            }
            None => self.refuse(asked, Answer::UnknownRun),
        }
        Ok(())
    }

    /// The run's actor: the one that lives, or a new one for a run that is over.
    async fn actor(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        run: &RunId,
    ) -> Result<Option<ActorRef<RunMessage>>, ActorProcessingErr> {
        if let Some(actor) = self.actors.get(run) {
            return Ok(Some(actor.clone()));
        }
        if !self.rows.contains_key(run) {
            return Ok(None);
        }
        self.start(myself, run).await.map(Some)
    }

    fn refuse(&self, asked: Asked, answer: Answer) {
        match asked.reply {
            ReplyTo::Worker(report) => report.answer(answer, None),
            ReplyTo::Fleet { token, .. } => {
                if self.house().fleet.cast(FleetMessage::OfferDeclined { token }).is_err() {
                    tracing::error!("the fleet is gone");
                }
            }
            ReplyTo::Nobody | ReplyTo::Caller(_) | ReplyTo::Session(_) | ReplyTo::Unheld(_) => {}
        }
    }

    /// An actor ends by itself when its run never came to be.
    fn ended(&mut self, actor: ActorId) {
        if let Some(run) = self.gone(actor) {
            self.forget_if_empty(&run);
        }
    }

    fn gone(&mut self, actor: ActorId) -> Option<RunId> {
        let run = self.by_actor.remove(&actor.pid())?;
        let newest = self.actors.get(&run).is_some_and(|other| other.get_id() == actor);
        if newest {
            self.actors.remove(&run);
        }
        newest.then_some(run)
    }

    /// Whether the coordinator is about to end: nothing is started again.
    fn ending(&self) -> bool {
        self.fatal.is_none()
    }

    fn fatal(&mut self, reason: String) {
        if let Some(fatal) = self.fatal.take() {
            tracing::error!(%reason, "the journal failed; the coordinator ends");
            // Somebody else may have said why before.
            let _ = fatal.try_send(reason);
        }
    }
}

fn run_of(stream: &StreamName) -> Option<RunId> {
    RunId::parse(stream.as_str().strip_prefix(RUNS)?).ok()
}

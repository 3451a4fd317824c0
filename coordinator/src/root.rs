//! The top of the tree of actors.
//!
//! Policy: `Fleet`, `Runs` and `Trees` hold what the others rely on, so none of them is restarted
//! alone: when one dies, the coordinator ends with its reason, and the next start folds the journal.

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{mpsc, oneshot};

use crate::fleet::{self, FleetActor, FleetMessage};
use crate::runs::{RunsActor, RunsMessage};
use crate::trees::{Mirrors, TreesActor, TreesMessage};

/// The actor.
pub struct Root;

/// What it is started with.
pub struct Arguments {
    /// For the fleet.
    pub fleet: fleet::Arguments,
    /// For the trees.
    pub mirrors: Mirrors,
    /// Told when the coordinator must end.
    pub fatal: mpsc::Sender<String>,
    /// Told once all are there.
    pub children: oneshot::Sender<Children>,
}

/// The actors below.
pub struct Children {
    /// Workers and slots.
    pub fleet: ActorRef<FleetMessage>,
    /// All runs.
    pub runs: ActorRef<RunsMessage>,
    /// Mirrors and branches.
    pub trees: ActorRef<TreesMessage>,
}

/// Nothing is asked of the root.
pub enum RootMessage {}

impl Actor for Root {
    type Msg = RootMessage;
    type State = mpsc::Sender<String>;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<RootMessage>,
        arguments: Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let Arguments { fleet, mirrors, fatal, children } = arguments;
        let cell = myself.get_cell();
        let (fleet, _) = Actor::spawn_linked(None, FleetActor, fleet, cell.clone()).await?;
        let (trees, _) = Actor::spawn_linked(None, TreesActor, mirrors, cell.clone()).await?;
        let (runs, _) = Actor::spawn_linked(None, RunsActor, fatal.clone(), cell).await?;
        drop(children.send(Children { fleet, runs, trees }));
        Ok(fatal)
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<RootMessage>,
        event: SupervisionEvent,
        fatal: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, error) => {
                // Somebody else may have said why before.
                let _ = fatal.try_send(format!("a part of the coordinator failed: {error}"));
            }
            // At the end they are asked to; nobody reads the reason then.
            SupervisionEvent::ActorTerminated(..) => {
                let _ = fatal.try_send("a part of the coordinator ended".to_owned());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

//! The coordinator's mirrors: the only writer of branches.
//!
//! Takes deliveries in, merges them, makes the commits that were journalled as intended and moves
//! the branch by compare-and-set. Each order is answered as a command to the run that owes it.
//!
//! Policy of the actor: it has no children; orders run as tasks it keeps count of, and an order that
//! is under way is not begun twice.

mod mirrors;
mod order;

use std::collections::BTreeSet;
use std::sync::Arc;

use ganger_coordinator_core::run::{Effect, EffectId};
use ganger_shared::ids::RunId;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::run::{Asked, RunMessage};

pub use mirrors::{Mirrors, TreesError};

/// Orders carried out at once.
const AT_ONCE: usize = 4;

/// What the trees are told.
pub enum TreesMessage {
    /// Carry this out and tell the run.
    Do {
        /// The run.
        run: RunId,
        /// What it owes: a `Take`, `Merge` or `Apply`.
        effect: Effect,
        /// Whom to tell.
        actor: ActorRef<RunMessage>,
    },
    /// An order ended.
    Done {
        /// The run.
        run: RunId,
        /// Which order.
        id: EffectId,
    },
}

/// The actor.
pub struct TreesActor;

/// What it owns.
pub struct State {
    mirrors: Mirrors,
    under_way: BTreeSet<(RunId, EffectId)>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Actor for TreesActor {
    type Msg = TreesMessage;
    type State = State;
    type Arguments = Mirrors;

    async fn pre_start(
        &self,
        _myself: ActorRef<TreesMessage>,
        mirrors: Mirrors,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State {
            mirrors,
            under_way: BTreeSet::new(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<TreesMessage>,
        message: TreesMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            TreesMessage::Do { run, effect, actor } => state.begin(&myself, run, effect, actor),
            TreesMessage::Done { run, id } => {
                state.under_way.remove(&(run, id));
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<TreesMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.tasks.close();
        state.tasks.wait().await;
        Ok(())
    }
}

impl State {
    fn begin(
        &mut self,
        myself: &ActorRef<TreesMessage>,
        run: RunId,
        effect: Effect,
        actor: ActorRef<RunMessage>,
    ) {
        let Some(id) = order::id(&effect) else { return };
        if !self.under_way.insert((run.clone(), id.clone())) {
            return;
        }
        let (mirrors, places, myself) =
            (self.mirrors.clone(), Arc::clone(&self.places), myself.clone());
        self.tasks.spawn(async move {
            let _place = places.acquire().await;
            let verb = order::carry_out(&mirrors, &run, &effect).await;
            // Done goes first: the run may owe the same order again at once.
            let done = TreesMessage::Done { run: run.clone(), id };
            if myself.cast(done).is_err() {
                tracing::debug!(%run, "the trees ended during an order");
            }
            if let Some(verb) = verb
                && actor.cast(RunMessage::Ask(Box::new(Asked::internal(verb)))).is_err()
            {
                tracing::debug!(%run, "the run's actor ended; the next one orders again");
            }
        });
    }
}

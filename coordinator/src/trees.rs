//! The coordinator's mirrors: the only writer of branches.
//!
//! Takes deliveries in, merges them, makes the commits that were journalled as intended and moves
//! the branch by compare-and-set. Each order is answered as a command to the run that owes it.
//!
//! Policy of the actor: it has no children; orders run as tasks it keeps count of, and an order that
//! is under way is not begun twice. One that comes to nothing, because git cannot or its task
//! panicked, is asked for again after a while, as long as its run owes it.

mod mirrors;
mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ganger_coordinator_core::run::{Effect, EffectId, Verb};
use ganger_shared::ids::RunId;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::run::Asked;
use crate::runs::RunsMessage;

pub use mirrors::{Mirrors, TreesError};

/// Orders carried out at once.
const AT_ONCE: usize = 4;
/// How long an order that came to nothing is left alone.
const AFTER_NOTHING: Duration = Duration::from_secs(30);

/// What the trees are told.
pub enum TreesMessage {
    /// Carry this out and tell the run.
    Do {
        /// The run.
        run: RunId,
        /// What it owes: a `Take`, `Merge` or `Apply`.
        effect: Effect,
        /// Whom to tell: the run's actor may be another by then.
        runs: ActorRef<RunsMessage>,
    },
    /// An order ended.
    Done {
        /// The run.
        run: RunId,
        /// Which order.
        id: EffectId,
        /// Who was told.
        runs: ActorRef<RunsMessage>,
    },
}

/// The actor.
pub struct TreesActor;

/// What it owns.
pub struct State {
    mirrors: Mirrors,
    /// What is under way, and what the run wants by now: the same unless it ordered anew meanwhile.
    under_way: BTreeMap<(RunId, EffectId), (Effect, Effect)>,
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
            under_way: BTreeMap::new(),
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
            TreesMessage::Do { run, effect, runs } => state.begin(&myself, run, effect, runs),
            TreesMessage::Done { run, id, runs } => state.done(&myself, run, id, runs),
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
        runs: ActorRef<RunsMessage>,
    ) {
        let Some(id) = order::id(&effect) else { return };
        if let Some((_, latest)) = self.under_way.get_mut(&(run.clone(), id.clone())) {
            *latest = effect;
            return;
        }
        self.under_way.insert((run.clone(), id.clone()), (effect.clone(), effect.clone()));
        let (mirrors, places, myself) =
            (self.mirrors.clone(), Arc::clone(&self.places), myself.clone());
        self.tasks.spawn(async move {
            let _place = places.acquire().await;
            let order = (run.clone(), effect);
            // A task of its own, so that its panic is seen here.
            let carried =
                tokio::spawn(async move { order::carry_out(&mirrors, &order.0, &order.1).await });
            let verb = carried.await.unwrap_or_else(|error| {
                tracing::error!(%run, %error, "an order to the trees panicked");
                None
            });
            // Done goes first: the run may owe the same order again at once.
            let done = TreesMessage::Done { run: run.clone(), id, runs: runs.clone() };
            if myself.cast(done).is_err() {
                tracing::debug!(%run, "the trees ended during an order");
            }
            tell(&runs, run, verb);
        });
    }

    fn done(
        &mut self,
        myself: &ActorRef<TreesMessage>,
        run: RunId,
        id: EffectId,
        runs: ActorRef<RunsMessage>,
    ) {
        if let Some((done, latest)) = self.under_way.remove(&(run.clone(), id))
            && done != latest
        {
            self.begin(myself, run, latest, runs);
        }
    }
}

/// Tells a run what came of its order; of one that came to nothing, only that it may order again.
fn tell(runs: &ActorRef<RunsMessage>, run: RunId, verb: Option<Verb>) {
    let Some(verb) = verb else {
        // Nobody waits for the timer: it ends with the actor it tells.
        drop(runs.send_after(AFTER_NOTHING, || RunsMessage::Owed { run }));
        return;
    };
    let asked = Box::new(Asked::internal(verb));
    if runs.cast(RunsMessage::Tell { run, asked }).is_err() {
        tracing::debug!("the runs ended; the next start orders again");
    }
}

//! A submit happens once: the key decides which run it is, before anything is written.

use ganger_coordinator_core::run::Verb;
use ganger_shared::ids::RunId;
use ractor::{ActorProcessingErr, ActorRef};

use super::{RunsMessage, State};
use crate::run::{Asked, RunMessage};

impl State {
    /// A key that was used before leads to the run it made, also while that is still being written;
    /// that run then answers with what it did, or that the body is another.
    pub(super) async fn submit(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        new: RunId,
        asked: Asked,
    ) -> Result<(), ActorProcessingErr> {
        let run = match &asked.verb {
            Verb::Submit { call, .. } => {
                self.submits.entry(call.key.clone()).or_insert_with(|| new.clone()).clone()
            }
            Verb::TakeSlot(_)
            | Verb::Report(_)
            | Verb::LeaseEnded { .. }
            | Verb::Reconcile { .. }
            | Verb::Unheld { .. }
            | Verb::Taken { .. }
            | Verb::TakeFailed { .. }
            | Verb::Merged { .. }
            | Verb::ApplyDone { .. }
            | Verb::ApplyRefused { .. }
            | Verb::Tick
            | Verb::Cancel { .. }
            | Verb::Stop { .. }
            | Verb::Pause { .. }
            | Verb::Resume { .. } => new.clone(),
        };
        let actor = match self.actor(myself, &run).await? {
            Some(actor) => actor,
            None => self.start(myself, &run).await?,
        };
        actor.cast(RunMessage::Ask(Box::new(asked)))?;
        Ok(())
    }
}

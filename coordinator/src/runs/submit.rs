//! A submit happens once: the key decides which run it is, before anything is written.

use ganger_coordinator_core::run::{Reply, Verb};
use ganger_shared::ids::RunId;
use ganger_shared::rejection::Rejection;
use ractor::{ActorProcessingErr, ActorRef};

use super::{RunsMessage, State};
use crate::run::{Asked, Outcome, ReplyTo, RunMessage};

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
        if let Some(reason) = self.quarantined.get(&run) {
            let reply = Reply::Rejected(Rejection::Quarantined {
                run: run.clone(),
                reason: reason.clone(),
            });
            if let ReplyTo::Caller(port) = asked.reply {
                drop(port.send(Outcome { run, reply }));
            }
            return Ok(());
        }
        let actor = match self.actor(myself, &run).await? {
            Some(actor) => actor,
            None => self.start(myself, &run).await?,
        };
        if actor.cast(RunMessage::Ask(Box::new(asked))).is_err() {
            tracing::debug!(%run, "its actor has just ended; the caller asks again under its key");
        }
        Ok(())
    }

    /// A run that never came to be leaves nothing behind: its submit was refused, and may be
    /// repeated under the same key.
    pub(super) fn forget_if_empty(&mut self, run: &RunId) {
        if !self.rows.contains_key(run) {
            self.submits.retain(|_, made| made != run);
        }
    }
}

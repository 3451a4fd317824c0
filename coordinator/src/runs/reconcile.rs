//! A worker's inventory, put to every run that may know something of it.

use ganger_coordinator_core::fleet::Inventory;
use ganger_coordinator_core::run::Verb;
use ganger_shared::actor::Actor;
use ganger_shared::ids::{InstanceId, RunId, WorkerId};
use ganger_shared::link::Lease;

use super::State;
use crate::run::{Asked, ReplyTo, RunMessage};
use crate::session::{Inquiry, SessionHandle};

impl State {
    /// Leases of runs that are over or unknown are to be stopped; those of a quarantined run stay
    /// counted, and nobody tells its workers anything.
    pub(super) fn reconcile(
        &mut self,
        worker: &WorkerId,
        instance: &InstanceId,
        runs: Vec<Inventory>,
        session: &SessionHandle,
    ) {
        let mut asked = 0;
        let mut unknown: Vec<Lease> = Vec::new();
        for Inventory { run, live, finished } in runs {
            let Some(actor) = self.actors.get(&run) else {
                if !self.quarantined.contains_key(&run) {
                    unknown.extend(live);
                }
                continue;
            };
            let verb = Verb::Reconcile {
                worker: worker.clone(),
                instance: instance.clone(),
                live,
                finished,
            };
            let reply = ReplyTo::Session(Inquiry::new(session.clone()));
            let ask = Asked { by: Actor::Worker(worker.to_string()), verb, reply };
            // An actor that has just died drops it, which makes the worker dial again.
            if actor.cast(RunMessage::Ask(Box::new(ask))).is_err() {
                tracing::debug!(%run, "its actor has just ended");
            }
            asked += 1;
        }
        session.expect(asked, unknown);
    }

    pub(super) fn attached(&self, worker: &WorkerId) {
        for (run, actor) in &self.actors {
            if actor.cast(RunMessage::Attached { worker: worker.clone() }).is_err() {
                tracing::debug!(%run, "its actor ended; the next one hands out everything");
            }
        }
    }

    pub(super) fn owed(&self, run: &RunId) {
        if let Some(actor) = self.actors.get(run)
            && actor.cast(RunMessage::HandOut).is_err()
        {
            tracing::debug!(%run, "its actor ended; the next one hands out everything");
        }
    }
}

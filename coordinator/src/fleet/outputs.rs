//! What the fleet's core answers, carried out.

use ganger_coordinator_core::fleet::Output;
use ganger_coordinator_core::run::Verb;
use ganger_shared::actor::Actor;

use super::{FleetMessage, State};
use crate::run::{Asked, ReplyTo, RunMessage};
use crate::runs::RunsMessage;

impl State {
    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Offer { run, offer, lapses_ms } => {
                let Some(seat) = self.runs.get(&run) else { return };
                let token = offer.token;
                let reply = ReplyTo::Fleet { token, lapses_ms };
                let by = Actor::Coordinator;
                let asked = Asked { by, verb: Verb::TakeSlot(offer), reply };
                if seat.actor.cast(RunMessage::Ask(Box::new(asked))).is_err() {
                    // A run that is set aside must not keep a slot from others.
                    tracing::debug!(%run, "its actor ended; it takes no offer");
                    self.tell_myself(FleetMessage::OfferDeclined { token });
                }
            }
            Output::LeaseEnded { lease, reason } => {
                let verb = Verb::LeaseEnded { work: lease.work, epoch: lease.epoch, reason };
                let asked = Box::new(Asked::internal(verb));
                self.tell_runs(RunsMessage::Tell { run: lease.run, asked });
            }
            Output::Unheld { worker, lease, .. } => {
                let Some(session) = self.session(&worker) else { return };
                let verb = Verb::Unheld { worker, lease: lease.clone() };
                let reply = ReplyTo::Unheld(session);
                let asked = Box::new(Asked { by: Actor::Coordinator, verb, reply });
                self.tell_runs(RunsMessage::Tell { run: lease.run, asked });
            }
            Output::Reconcile { worker, instance, runs } => {
                let Some(session) = self.session(&worker) else { return };
                self.tell_runs(RunsMessage::Reconcile { worker, instance, runs, session });
            }
            Output::Record(event) => {
                if let Some(recorder) = &self.recorder {
                    recorder.record(event);
                }
            }
            Output::Refuse { refusal, .. } => tracing::warn!(%refusal, "a worker was refused"),
            Output::Superseded { worker, session } => {
                let stream = self.streams.get(&worker);
                if let Some(stream) = stream.filter(|stream| stream.session == session) {
                    stream.outbound.hang_up();
                }
            }
            Output::StateChanged { worker } => tracing::debug!(%worker, "a worker's state changed"),
        }
    }

    fn session(
        &self,
        worker: &ganger_shared::ids::WorkerId,
    ) -> Option<crate::session::SessionHandle> {
        let stream = self.streams.get(worker)?;
        Some(crate::session::SessionHandle::new(stream.actor.clone(), stream.outbound.clone()))
    }

    /// Through the mailbox: what follows of one output must not grow on the stack of another.
    fn tell_myself(&self, message: FleetMessage) {
        if let Some(house) = &self.house
            && house.fleet.cast(message).is_err()
        {
            tracing::debug!("the fleet is ending");
        }
    }

    fn tell_runs(&self, message: RunsMessage) {
        if let Some(house) = &self.house
            && house.runs.cast(message).is_err()
        {
            tracing::error!("the runs are gone");
        }
    }
}

/// Why this stream is not taken, if it is not.
pub(super) fn refusal(outputs: &[Output], stream: u64) -> Option<String> {
    outputs.iter().find_map(|output| match output {
        Output::Refuse { session, refusal } if *session == stream => Some(refusal.to_string()),
        Output::Refuse { .. }
        | Output::Offer { .. }
        | Output::LeaseEnded { .. }
        | Output::Unheld { .. }
        | Output::Reconcile { .. }
        | Output::Record(_)
        | Output::Superseded { .. }
        | Output::StateChanged { .. } => None,
    })
}

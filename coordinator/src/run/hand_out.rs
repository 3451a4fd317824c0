//! Telling the world what a run owes it, and what it does not owe any more.

use ganger_coordinator_core::fleet::{Folded, HeldClaim, HeldLease, Wanted};
use ganger_coordinator_core::run::{Effect, EffectId, Reply};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{UnitId, WorkId, WorkerId};
use ganger_shared::link::{CoordinatorSays, Lease};
use ganger_shared::rejection::Rejection;
use ganger_shared::view::Explanation;
use ganger_telemetry::{SpanKey, context};
use ractor::ActorRef;

use super::{RunMessage, State};
use crate::fleet::{self, FleetMessage};
use crate::runs::{RunsMessage, Standing};
use crate::trees::TreesMessage;

impl State {
    /// Everything, after a start: receivers know what they were told before by its id.
    pub(super) fn hand_out_all(&self, myself: &ActorRef<RunMessage>) {
        if self.run.state().terminal() || self.run.submitted().is_none() {
            return;
        }
        self.register(myself);
        let owed: Vec<EffectId> = self.run.owed().keys().cloned().collect();
        for id in owed {
            match id {
                // The fleet was told of these by `register`.
                EffectId::WantSlot(..) | EffectId::WantCheck(_) | EffectId::Claim(_) => {}
                EffectId::Assign(..)
                | EffectId::Stop(..)
                | EffectId::Take(_)
                | EffectId::Merge(_)
                | EffectId::Apply(_) => self.hand_out_one(id),
            }
        }
    }

    /// What came or went in one batch.
    pub(super) fn hand_out(
        &self,
        myself: &ActorRef<RunMessage>,
        events: &[Envelope<RunEvent>],
        moved: Vec<EffectId>,
    ) {
        let new = events.iter().any(|envelope| matches!(envelope.event, RunEvent::RunSubmitted(_)));
        if new {
            self.hand_out_all(myself);
            return;
        }
        for envelope in events {
            if let Some((work, epoch)) = ended(&envelope.event) {
                let run = self.id.clone();
                self.tell_fleet(FleetMessage::LeaseGone { lease: Lease { run, work, epoch } });
            }
        }
        for id in moved {
            self.hand_out_one(id);
        }
        if self.run.state().terminal() {
            self.tell_fleet(FleetMessage::RunDown { run: self.id.clone() });
        }
    }

    /// What is owed to one worker, which has just come back.
    pub(super) fn hand_out_to(&self, worker: &WorkerId) {
        for effect in self.run.owed().values() {
            match effect {
                Effect::Assign { worker: to, work, .. } if to == worker => {
                    self.assign(worker, work);
                }
                Effect::Stop { worker: to, .. } if to == worker => self.stop(effect),
                Effect::Assign { .. }
                | Effect::Stop { .. }
                | Effect::WantSlot(_)
                | Effect::Claim { .. }
                | Effect::Take { .. }
                | Effect::Merge { .. }
                | Effect::Apply { .. } => {}
            }
        }
    }

    /// Tells the fleet all that the run wants and holds; offers to it from before are void.
    fn register(&self, myself: &ActorRef<RunMessage>) {
        let Some(head) = self.run.submitted() else { return };
        let mut folded = Folded {
            run: self.id.clone(),
            wants: Vec::new(),
            claims: Vec::new(),
            leases: Vec::new(),
        };
        for (id, effect) in self.run.owed() {
            match effect {
                Effect::WantSlot(want) => folded.wants.push(Wanted {
                    run: self.id.clone(),
                    project: head.project.clone(),
                    run_priority: head.priority,
                    id: id.clone(),
                    want: want.clone(),
                }),
                Effect::Claim { unit, repository, files } => folded.claims.push(HeldClaim {
                    run: self.id.clone(),
                    unit: unit.clone(),
                    repository: repository.clone(),
                    files: files.clone(),
                }),
                Effect::Assign { .. }
                | Effect::Stop { .. }
                | Effect::Take { .. }
                | Effect::Merge { .. }
                | Effect::Apply { .. } => {}
            }
        }
        folded.leases.extend(self.run.live().iter().map(|(work, live)| HeldLease {
            lease: Lease { run: self.id.clone(), work: work.clone(), epoch: live.epoch },
            project: head.project.clone(),
            worker: live.worker.clone(),
            instance: live.instance.clone(),
        }));
        self.tell_fleet(FleetMessage::RunUp {
            folded: Box::new(folded),
            project: head.project.clone(),
            priority: head.priority,
            actor: myself.clone(),
        });
    }

    fn hand_out_one(&self, id: EffectId) {
        let run = self.id.clone();
        let Some(effect) = self.run.owed().get(&id).cloned() else {
            self.tell_fleet(FleetMessage::Gone { run, id });
            return;
        };
        match &effect {
            Effect::WantSlot(want) => {
                self.tell_fleet(FleetMessage::Want { run, id, want: Box::new(want.clone()) });
            }
            Effect::Claim { unit, repository, files } => {
                let (unit, repository, files) = (unit.clone(), repository.clone(), files.clone());
                self.tell_fleet(fleet::claim(run, unit, (repository, files)));
            }
            Effect::Assign { worker, work, .. } => self.assign(worker, work),
            Effect::Stop { .. } => self.stop(&effect),
            Effect::Take { .. } | Effect::Merge { .. } | Effect::Apply { .. } => {
                let order = TreesMessage::Do { run, effect, runs: self.house.runs.clone() };
                if self.house.trees.cast(order).is_err() {
                    tracing::error!(run = %self.id, "the trees are gone");
                }
            }
        }
    }

    fn assign(&self, worker: &WorkerId, work: &WorkId) {
        let Some(mut assignment) = self.run.assignment(work) else {
            tracing::error!(run = %self.id, %work, "a lease without an assignment");
            return;
        };
        let key = match work {
            WorkId::Attempt(id) => SpanKey::Attempt(id.to_string()),
            WorkId::Check(id) => crate::trace::check_key(id),
        };
        assignment.traceparent = context::traceparent(self.id.as_str(), &key);
        let says = CoordinatorSays::Assign(Box::new(assignment));
        self.tell_fleet(FleetMessage::Say { worker: worker.clone(), says: Box::new(says) });
    }

    fn stop(&self, effect: &Effect) {
        let Effect::Stop { worker, work, epoch, reason, now } = effect else { return };
        let lease = Lease { run: self.id.clone(), work: work.clone(), epoch: *epoch };
        let says = CoordinatorSays::Stop { lease, reason: *reason, now: *now };
        self.tell_fleet(FleetMessage::Say { worker: worker.clone(), says: Box::new(says) });
    }

    pub(super) fn answer_offer(&self, token: u64, outcome: Reply) {
        let message = match outcome {
            Reply::Leased(lease) => FleetMessage::OfferTaken { token, lease },
            Reply::Declined
            | Reply::Rejected(_)
            | Reply::Done { .. }
            | Reply::Answered(_)
            | Reply::Reconciled { .. } => FleetMessage::OfferDeclined { token },
        };
        self.tell_fleet(message);
    }

    /// Tells `Runs` how the run looks in a list, when it stands elsewhere than before; of a run that
    /// is over also late facts, because nobody is asked for its row any more.
    pub(super) fn announce(&mut self) {
        let over = self.run.state().terminal();
        if !over && self.announced.as_ref() == Some(self.run.state()) {
            return;
        }
        self.announced = Some(self.run.state().clone());
        let row = self.run.row().map(Box::new);
        let open = !over;
        let calls = self.run.calls().map(|(key, body)| (key.clone(), *body)).collect();
        let message =
            RunsMessage::Standing(Box::new(Standing { run: self.id.clone(), row, open, calls }));
        if self.house.runs.cast(message).is_err() {
            tracing::debug!(run = %self.id, "nobody lists runs any more");
        }
    }

    pub(super) fn explain(&self, unit: &str) -> Result<Explanation, Rejection> {
        let (_, view) = self.run.find_view(unit)?;
        let mut reasons: Vec<String> = view.reason.clone().into_iter().collect();
        if let Some(gate) = &view.gate {
            reasons.push(format!("its gate is {gate}"));
        }
        let id: UnitId = view.id;
        Ok(Explanation { unit: id, state: view.state, position: None, reasons })
    }

    fn tell_fleet(&self, message: FleetMessage) {
        if self.house.fleet.cast(message).is_err() {
            tracing::error!(run = %self.id, "the fleet is gone");
        }
    }
}

/// The lease an event ends.
fn ended(event: &RunEvent) -> Option<(WorkId, ganger_shared::ids::Epoch)> {
    match event {
        RunEvent::AttemptDelivered { attempt, epoch, .. }
        | RunEvent::AttemptFailed { attempt, epoch, .. }
        | RunEvent::AttemptCancelled { attempt, epoch, .. }
        | RunEvent::AttemptLost { attempt, epoch, .. } => {
            Some((WorkId::Attempt(attempt.clone()), *epoch))
        }
        RunEvent::CheckMeasured { check, epoch, .. } | RunEvent::CheckLost { check, epoch, .. } => {
            Some((WorkId::Check(check.clone()), *epoch))
        }
        RunEvent::RunSubmitted(_)
        | RunEvent::TaskPlanned { .. }
        | RunEvent::UnitPlanned { .. }
        | RunEvent::RevisionAccepted { .. }
        | RunEvent::CommandRecorded(_)
        | RunEvent::AttemptLeased(_)
        | RunEvent::AttemptAccepted { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::AttemptStopping { .. }
        | RunEvent::DeliveryTaken { .. }
        | RunEvent::LateResult { .. }
        | RunEvent::RetryScheduled { .. }
        | RunEvent::UnitFailed { .. }
        | RunEvent::CheckLeased(_)
        | RunEvent::VerdictGiven(_)
        | RunEvent::MergePrepared { .. }
        | RunEvent::IntegrationConflicted { .. }
        | RunEvent::ApplyIntended { .. }
        | RunEvent::Applied { .. }
        | RunEvent::UnitCancelled { .. }
        | RunEvent::UnitStopping { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed
        | RunEvent::RunHeld { .. }
        | RunEvent::RunReleased
        | RunEvent::RunBudgetLimited { .. }
        | RunEvent::RunStopping { .. }
        | RunEvent::RunAborted
        | RunEvent::RunCompleted { .. } => None,
    }
}

//! Plays how a run's actor tells the world what is owed to it, and what is not owed any more.

use ganger_coordinator_core::fleet::{Folded, HeldClaim, HeldLease, Wanted};
use ganger_coordinator_core::run::{Effect, EffectId};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{Epoch, RunId, WorkId, WorkerId};
use ganger_shared::link::{CoordinatorSays, Lease};

use super::Mail;
use super::fleet::FleetMail;
use super::runs::RunsMail;
use crate::bug::Bug;
use crate::world::World;

impl World {
    pub(super) fn hand_out_all(&mut self, run: &RunId) {
        let state = &self.room(run).run;
        if state.state().terminal() || state.submitted().is_none() {
            return;
        }
        let owed: Vec<EffectId> = state.owed().keys().cloned().collect();
        self.register(run);
        if self.bug == Some(Bug::NothingIsOwed) {
            return;
        }
        for id in owed {
            match id {
                EffectId::WantSlot(..) | EffectId::WantCheck(_) | EffectId::Claim(_) => {}
                EffectId::Assign(..)
                | EffectId::Stop(..)
                | EffectId::Take(_)
                | EffectId::Merge(_)
                | EffectId::Apply(_) => self.hand_out_one(run, id),
            }
        }
    }

    pub(super) fn hand_out(
        &mut self,
        run: &RunId,
        events: &[Envelope<RunEvent>],
        moved: Vec<EffectId>,
    ) {
        if events.iter().any(|envelope| matches!(envelope.event, RunEvent::RunSubmitted(_))) {
            return self.hand_out_all(run);
        }
        for envelope in events {
            if let Some((work, epoch)) = ended(&envelope.event) {
                let lease = Lease { run: run.clone(), work, epoch };
                self.tell_fleet(FleetMail::LeaseGone { lease });
            }
        }
        for id in moved {
            self.hand_out_one(run, id);
        }
        if self.room(run).run.state().terminal() {
            self.tell_fleet(FleetMail::RunDown { run: run.clone() });
        }
    }

    /// What is owed to one worker, which has just come back.
    pub(super) fn hand_out_to(&mut self, run: &RunId, to: &WorkerId) {
        let owed: Vec<Effect> = self.room(run).run.owed().values().cloned().collect();
        for effect in owed {
            match &effect {
                Effect::Assign { worker, work, .. } if worker == to => {
                    self.assign(run, worker, work);
                }
                Effect::Stop { worker, .. } if worker == to => self.stop(run, &effect),
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

    fn register(&mut self, run: &RunId) {
        let state = &self.room(run).run;
        let Some(head) = state.submitted() else { return };
        let (project, priority) = (head.project.clone(), head.priority);
        let mut folded = Folded { run: run.clone(), wants: vec![], claims: vec![], leases: vec![] };
        for (id, effect) in state.owed() {
            match effect {
                Effect::WantSlot(want) => folded.wants.push(Wanted {
                    run: run.clone(),
                    project: project.clone(),
                    run_priority: priority,
                    id: id.clone(),
                    want: want.clone(),
                }),
                Effect::Claim { unit, repository, files } => folded.claims.push(HeldClaim {
                    run: run.clone(),
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
        folded.leases.extend(state.live().iter().map(|(work, live)| HeldLease {
            lease: Lease { run: run.clone(), work: work.clone(), epoch: live.epoch },
            project: project.clone(),
            worker: live.worker.clone(),
            instance: live.instance.clone(),
        }));
        self.tell_fleet(FleetMail::RunUp { folded: Box::new(folded), project, priority });
    }

    fn hand_out_one(&mut self, run: &RunId, id: EffectId) {
        let Some(effect) = self.room(run).run.owed().get(&id).cloned() else {
            return self.tell_fleet(FleetMail::Gone { run: run.clone(), id });
        };
        let run_id = run.clone();
        match &effect {
            Effect::WantSlot(want) => {
                self.tell_fleet(FleetMail::Want { run: run_id, id, want: Box::new(want.clone()) });
            }
            Effect::Claim { unit, repository, files } => {
                let (unit, repository, files) = (unit.clone(), repository.clone(), files.clone());
                let claim = HeldClaim { run: run_id, unit, repository, files };
                self.tell_fleet(FleetMail::Claim(Box::new(claim)));
            }
            Effect::Assign { worker, work, .. } => self.assign(run, worker, work),
            Effect::Stop { .. } => self.stop(run, &effect),
            Effect::Take { .. } | Effect::Merge { .. } | Effect::Apply { .. } => {
                self.order_trees(run, id, effect);
            }
        }
    }

    fn assign(&mut self, run: &RunId, worker: &WorkerId, work: &WorkId) {
        let Some(assignment) = self.room(run).run.assignment(work) else {
            return self.rules.broken(format!("{work} of {run} is leased and has no assignment"));
        };
        let says = Box::new(CoordinatorSays::Assign(Box::new(assignment)));
        self.tell_fleet(FleetMail::Say { worker: worker.clone(), says });
    }

    fn stop(&mut self, run: &RunId, effect: &Effect) {
        let Effect::Stop { worker, work, epoch, reason, now } = effect else { return };
        let lease = Lease { run: run.clone(), work: work.clone(), epoch: *epoch };
        let says = Box::new(CoordinatorSays::Stop { lease, reason: *reason, now: *now });
        self.tell_fleet(FleetMail::Say { worker: worker.clone(), says });
    }

    /// Tells `Runs` where the run stands, when that is elsewhere than before.
    pub(super) fn announce(&mut self, run: &RunId) {
        let room = self.room(run);
        let state = room.run.state().clone();
        if !state.terminal() && room.announced.as_ref() == Some(&state) {
            return;
        }
        room.announced = Some(state);
        let known = room.run.submitted().is_some();
        let calls = room.run.calls().map(|(key, _)| key.clone()).collect();
        self.post(Mail::Runs(RunsMail::Standing { run: run.clone(), known, calls }));
    }
}

/// The lease an event ends.
fn ended(event: &RunEvent) -> Option<(WorkId, Epoch)> {
    if let RunEvent::AttemptDelivered { attempt, epoch, .. }
    | RunEvent::AttemptFailed { attempt, epoch, .. }
    | RunEvent::AttemptCancelled { attempt, epoch, .. }
    | RunEvent::AttemptLost { attempt, epoch, .. } = event
    {
        return Some((WorkId::Attempt(attempt.clone()), *epoch));
    }
    if let RunEvent::CheckMeasured { check, epoch, .. } | RunEvent::CheckLost { check, epoch, .. } =
        event
    {
        return Some((WorkId::Check(check.clone()), *epoch));
    }
    None
}

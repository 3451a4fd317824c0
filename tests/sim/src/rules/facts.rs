//! What must hold of every event in the journal, and between it and what workers said.

use ganger_coordinator_core::run::{Integration, Phase, Run, Unit, UnitState};
use ganger_shared::delivery::{CheckResult, Outcome};
use ganger_shared::event::{AttemptLease, Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, Epoch, RunId, Subject, WorkId};
use ganger_shared::ledger::Dimension;
use ganger_shared::link::{Fact, Lease};
use ganger_shared::time::DurationMs;
use ganger_shared::verdict::{Judgement, Verdict};

use super::Rules;

impl Rules {
    pub(super) fn fact(&mut self, was: &Run, is: &Run, envelope: &Envelope<RunEvent>) {
        let Some(id) = is.submitted().map(|head| head.run.clone()) else {
            return self.broken("a run begins with something else than its submit".to_owned());
        };
        if envelope.at < self.times.last_of(&id) {
            self.broken(format!("{id}: time goes back at {:?}", envelope.event));
        }
        self.times.saw(&id, envelope.at);
        self.of_event(&id, was, is, &envelope.event);
        self.final_stays(&id, was, is);
        self.counts(&id, is);
        self.accepted_stays(&id, is);
    }

    fn of_event(&mut self, id: &RunId, was: &Run, is: &Run, event: &RunEvent) {
        match event {
            RunEvent::CommandRecorded(record) => {
                let before = self.calls.insert(record.key.clone(), id.clone());
                if before.is_some() {
                    self.broken(format!("call {} was carried out twice", record.key));
                }
            }
            RunEvent::AttemptLeased(lease) => self.attempt_leased(id, was, lease),
            RunEvent::CheckLeased(lease) => {
                self.fenced(id, &WorkId::Check(lease.check.clone()), lease.epoch);
            }
            RunEvent::VerdictGiven(verdict) => self.judged(id, is, verdict),
            RunEvent::Applied { attempt, .. } => {
                if !self.applied.insert((id.clone(), attempt.clone())) {
                    self.broken(format!("{attempt} of {id} was applied twice"));
                }
            }
            RunEvent::CheckMeasured { check, epoch, result } => {
                self.measured(id, (check, *epoch), result);
            }
            RunEvent::RunCompleted { .. } => self.completed(id, is),
            RunEvent::AttemptAccepted { .. }
            | RunEvent::AttemptStarted { .. }
            | RunEvent::AttemptDelivered { .. }
            | RunEvent::AttemptFailed { .. }
            | RunEvent::LateResult { .. } => self.told_of(id, event),
            RunEvent::RunSubmitted(_)
            | RunEvent::TaskPlanned { .. }
            | RunEvent::UnitPlanned { .. }
            | RunEvent::RevisionAccepted { .. }
            | RunEvent::AttemptStopping { .. }
            | RunEvent::DeliveryTaken { .. }
            | RunEvent::AttemptCancelled { .. }
            | RunEvent::AttemptLost { .. }
            | RunEvent::RetryScheduled { .. }
            | RunEvent::UnitFailed { .. }
            | RunEvent::CheckLost { .. }
            | RunEvent::MergePrepared { .. }
            | RunEvent::IntegrationConflicted { .. }
            | RunEvent::ApplyIntended { .. }
            | RunEvent::UnitCancelled { .. }
            | RunEvent::UnitStopping { .. }
            | RunEvent::RunPaused { .. }
            | RunEvent::RunResumed
            | RunEvent::RunHeld { .. }
            | RunEvent::RunReleased
            | RunEvent::RunBudgetLimited { .. }
            | RunEvent::RunStopping { .. }
            | RunEvent::RunAborted => {}
        }
    }

    /// What is recorded of an attempt was told by its worker.
    fn told_of(&mut self, id: &RunId, event: &RunEvent) {
        if let RunEvent::AttemptAccepted { attempt, epoch } = event {
            self.was_said(id, attempt_at(attempt, *epoch), |fact| *fact == Fact::Accepted);
        } else if let RunEvent::AttemptStarted { attempt, epoch, started } = event {
            let started = Fact::Started(started.clone());
            self.was_said(id, attempt_at(attempt, *epoch), |fact| *fact == started);
        } else if let RunEvent::AttemptDelivered { attempt, epoch, ended } = event {
            let delivered = Fact::Delivered(ended.clone());
            self.was_said(id, attempt_at(attempt, *epoch), |fact| *fact == delivered);
        } else if let RunEvent::AttemptFailed { attempt, epoch, ended } = event {
            let active_ms = ended.active_ms;
            self.was_said(id, attempt_at(attempt, *epoch), |fact| lasted(fact, active_ms));
        } else if let RunEvent::LateResult { attempt, epoch, active_ms, .. } = event {
            self.was_said(id, attempt_at(attempt, *epoch), |fact| lasted(fact, *active_ms));
        }
    }

    /// Claimed before anything runs, one at a time, within the budget, under a fence never used.
    fn attempt_leased(&mut self, id: &RunId, was: &Run, lease: &AttemptLease) {
        let attempt = &lease.attempt;
        if was.account(Dimension::Attempts).left() == 0 {
            self.broken(format!("{attempt} of {id} is leased past the budget"));
        }
        let same = |work: &WorkId| matches!(work, WorkId::Attempt(of) if of.unit == attempt.unit);
        if was.live().keys().any(same) {
            self.broken(format!("{attempt} of {id} is leased beside another"));
        }
        self.fenced(id, &WorkId::Attempt(attempt.clone()), lease.epoch);
        // The run's own state is put back only after its batch; what counts is durable by now.
        self.folded.insert(id.clone(), was.clone());
        self.may_start(id, &attempt.unit);
        self.folded.remove(id);
    }

    fn fenced(&mut self, id: &RunId, work: &WorkId, epoch: Epoch) {
        let last = self.epochs.insert((id.clone(), work.clone()), epoch);
        if last.is_some_and(|last| last >= epoch) {
            self.broken(format!("{work} of {id} is leased again under fence {epoch}"));
        }
    }

    /// One delivery of a unit is accepted, ever.
    fn judged(&mut self, id: &RunId, is: &Run, verdict: &Verdict) {
        let attempt = &verdict.attempt;
        let unit = is.unit(&attempt.unit);
        let tried =
            unit.and_then(|unit| unit.attempts.iter().find(|a| a.lease.attempt == *attempt));
        let Some(delivery) = tried.and_then(|attempt| attempt.delivery()) else {
            return self.broken(format!("{attempt} of {id} is judged and has handed in nothing"));
        };
        if verdict.verdict == Judgement::Accept {
            if delivery.tree.is_some() {
                self.proven(id, is, attempt);
            }
            let key = (id.clone(), attempt.unit.clone());
            let before = self.accepted.insert(key, (attempt.clone(), delivery.clone()));
            if before.is_some() {
                self.broken(format!("two deliveries of {} of {id} are accepted", attempt.unit));
            }
        }
    }

    /// Nothing about leased work is recorded that its worker did not say about this very lease.
    fn was_said(&mut self, id: &RunId, (work, epoch): (WorkId, Epoch), is: impl Fn(&Fact) -> bool) {
        let lease = Lease { run: id.clone(), work, epoch };
        let from = (lease.clone(), 0);
        let mut said = self.reports.range(from..).take_while(|((of, _), _)| *of == lease);
        if !said.any(|(_, fact)| is(fact)) {
            let what = format!("{} @{epoch} of {id}", lease.work);
            self.broken(format!("{what} never reported what is recorded of it"));
        }
    }

    /// A check passes or fails only by what a worker measured on the wanted tree.
    fn measured(&mut self, id: &RunId, (check, epoch): (&CheckId, Epoch), result: &CheckResult) {
        if result.outcome == Outcome::NotMeasured {
            return;
        }
        let work = WorkId::Check(check.clone());
        self.was_said(id, (work, epoch), |fact| match fact {
            Fact::Measured(said) => said.end == *result,
            Fact::Accepted
            | Fact::Started(_)
            | Fact::Delivered(_)
            | Fact::Failed(_)
            | Fact::Stopped(_) => false,
        });
        if result.outcome == Outcome::Pass {
            self.passed.insert((id.clone(), check.clone()));
        }
    }

    /// Every check that people require of a unit has passed on this attempt's tree.
    fn proven(&mut self, id: &RunId, is: &Run, attempt: &AttemptId) {
        let plan = self.plan(is);
        let unit = plan.and_then(|plan| plan.units.iter().find(|unit| unit.id == attempt.unit));
        let required = unit.map(|unit| unit.checks.iter().filter(|check| check.required()));
        let missing = required.into_iter().flatten().find(|check| {
            let of = |(run, passed): &(RunId, CheckId)| {
                let subject = Subject::Attempt(attempt.clone());
                run == id && passed.check == check.name && passed.subject == subject
            };
            !self.passed.iter().any(of)
        });
        if let Some(check) = missing.map(|check| check.name.clone()) {
            self.broken(format!("{attempt} of {id} is accepted and {check} has not passed"));
        }
    }

    fn completed(&mut self, id: &RunId, is: &Run) {
        let open = is.units().iter().map(|unit| unit.spec.id.clone());
        let open = open.filter(|unit| !self.integrated(id, unit)).find(|unit| {
            is.unit(unit).is_none_or(|unit| !matches!(unit.state, UnitState::Skipped { .. }))
        });
        if let Some(unit) = open {
            self.broken(format!("{id} is completed without {unit}"));
        }
    }

    /// Terminal states are final, of runs and of units.
    fn final_stays(&mut self, id: &RunId, was: &Run, is: &Run) {
        if was.state().terminal() && was.state() != is.state() {
            self.broken(format!("{id} was {:?} and is {:?}", was.state(), is.state()));
        }
        let changed = was.units().iter().zip(is.units()).find(|(was, is)| !may_become(was, is));
        if let Some((was, is)) = changed {
            let unit = &was.spec.id;
            self.broken(format!("{unit} of {id} was {:?} and is {:?}", was.state, is.state));
        }
    }

    /// Counts are exact; what is metered goes over by no more than what live attempts said too much.
    fn counts(&mut self, id: &RunId, is: &Run) {
        let account = is.account(Dimension::Attempts);
        let attempts = || is.units().iter().flat_map(|unit| &unit.attempts);
        let count = attempts().count() as u64;
        if account.settled != count || account.limit.is_some_and(|limit| count > limit) {
            self.broken(format!("{id} counts {account:?} attempts and has {count}"));
        }
        let (mut settled, mut over) = (0, 0);
        for attempt in attempts() {
            let allotted = attempt.lease.allotted_ms.0;
            let used = match &attempt.phase {
                Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => {
                    continue;
                }
                Phase::Delivered { ended, .. } => ended.active_ms.0,
                Phase::Failed { ended } => ended.active_ms.0,
                Phase::Cancelled { active_ms, .. } | Phase::Lost { active_ms, .. } => {
                    active_ms.map_or(allotted, |used| used.0)
                }
            };
            settled += used;
            over += used.saturating_sub(allotted);
        }
        let active = is.account(Dimension::ActiveMs);
        if active.settled != settled || active.overrun() > over {
            self.broken(format!(
                "{id} books {active:?}, its attempts used {settled}, {over} too much"
            ));
        }
    }

    fn accepted_stays(&mut self, id: &RunId, is: &Run) {
        let changed = self.accepted.iter().filter(|((run, _), _)| run == id).find(
            |((_, unit), (attempt, kept))| {
                let tries = is.unit(unit).map(|unit| unit.attempts.as_slice()).unwrap_or_default();
                let now = tries.iter().find(|a| a.lease.attempt == *attempt);
                now.and_then(|attempt| attempt.delivery()) != Some(kept)
            },
        );
        if let Some(((_, unit), _)) = changed {
            let unit = unit.clone();
            self.broken(format!("the accepted delivery of {unit} of {id} was changed"));
        }
    }
}

fn attempt_at(attempt: &AttemptId, epoch: Epoch) -> (WorkId, Epoch) {
    (WorkId::Attempt(attempt.clone()), epoch)
}

/// Whether this is an end after so long at work. A delivery that is not taken is a failure too, and
/// so is a stop that nobody asked for.
fn lasted(fact: &Fact, active_ms: DurationMs) -> bool {
    match fact {
        Fact::Delivered(said) => said.active_ms == active_ms,
        Fact::Failed(said) => said.active_ms == active_ms,
        Fact::Stopped(said) => said.active_ms == active_ms,
        Fact::Accepted | Fact::Started(_) | Fact::Measured(_) => false,
    }
}

/// What a unit's state may change to.
fn may_become(was: &Unit, is: &Unit) -> bool {
    match (&was.state, &is.state) {
        (was, is) if was == is => true,
        (
            UnitState::Accepted { attempt: one, integration: Integration::Pending },
            UnitState::Accepted { attempt: other, .. },
        ) => one == other,
        (UnitState::Failed { .. }, is) => {
            matches!(is, UnitState::Delivered { .. } | UnitState::Cancelled { .. })
        }
        (
            UnitState::Accepted { .. } | UnitState::Cancelled { .. } | UnitState::Skipped { .. },
            _,
        ) => false,
        (
            UnitState::Pending
            | UnitState::Ready { .. }
            | UnitState::Running
            | UnitState::Delivered { .. }
            | UnitState::Stopping { .. },
            _,
        ) => true,
    }
}

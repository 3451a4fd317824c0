//! What follows by itself, within the batch that caused it: acceptance by policy, the next commit,
//! and where the run as a whole stands. Only units an event touched are looked at.

use ganger_shared::actor::Actor;
use ganger_shared::delivery::Outcome;
use ganger_shared::event::{Conflict, Envelope, HoldReason, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, CommitId, Subject, TreeId};
use ganger_shared::plan::Accept;
use ganger_shared::time::Timestamp;

use crate::globs;
use crate::run::effect::{Effect, EffectId};
use crate::run::state::{Applying, Run, RunState};
use crate::run::unit::{Gate, Measurement, Phase, UnitState};

const MS_PER_SEC: i64 = 1_000;

impl Run {
    pub(super) fn consequences(&mut self, events: &mut Vec<Envelope<RunEvent>>, now: Timestamp) {
        while let Some((by, event)) = self.next_consequence(now) {
            self.record(events, by, now, event);
        }
    }

    fn next_consequence(&mut self, now: Timestamp) -> Option<(Actor, RunEvent)> {
        while let Some(ix) = self.dirty.pop_first() {
            if let Some(verdict) = self.acceptance(ix, now) {
                let by = verdict.actor.clone();
                return Some((by, RunEvent::VerdictGiven(Box::new(verdict))));
            }
        }
        let event = self.integration(now).or_else(|| self.standing())?;
        Some((Actor::Coordinator, event))
    }

    fn acceptance(&self, ix: usize, now: Timestamp) -> Option<ganger_shared::verdict::Verdict> {
        let UnitState::Delivered { attempt: at } = self.units[ix].state else { return None };
        let Phase::Delivered { taken: true, .. } = self.units[ix].attempts[at].phase else {
            return None;
        };
        let auto = self.units[ix].spec.accept != Some(Accept::Judge);
        let open = self.attempt_gate(ix, at) == Some(Gate::Open);
        if self.closing() || !auto || !open || self.unproven(ix, at) {
            return None;
        }
        self.policy_verdict(ix, at, now)
    }

    /// Whether something was written and no fact speaks for it: a policy has nothing to judge by.
    fn unproven(&self, ix: usize, at: usize) -> bool {
        let attempt = &self.units[ix].attempts[at];
        let subject = Subject::Attempt(attempt.lease.attempt.clone());
        let measurement = self.measured.get(&(attempt.lease.attempt.unit.clone(), subject));
        let proven = measurement.is_some_and(|m| m.checks.iter().any(|check| check.required));
        self.writes(attempt) && !proven
    }

    /// The next step of putting the first accepted delivery on the branch.
    fn integration(&self, now: Timestamp) -> Option<RunEvent> {
        let id = self.queue.front()?;
        match &self.applying {
            None if self.checks_wanted() => {
                let (ix, at) = self.attempt(id)?;
                let tree = self.units[ix].attempts[at].delivery()?.tree.as_ref()?;
                (Some(&tree.base) == self.tip.as_ref())
                    .then(|| intend(id, &tree.base, &tree.tree, now))
            }
            Some(Applying::Measuring { parent, tree }) => {
                let subject = Subject::Merge(id.clone());
                let measurement = self.measured.get(&(id.unit.clone(), subject));
                match measurement.map_or(Gate::Open, Measurement::gate) {
                    Gate::Open => self.checks_wanted().then(|| intend(id, parent, tree, now)),
                    Gate::Measuring => None,
                    Gate::Closed | Gate::Held => {
                        let conflict = Conflict::Checks { failed: self.not_passed(id) };
                        Some(RunEvent::IntegrationConflicted { attempt: id.clone(), conflict })
                    }
                }
            }
            None | Some(Applying::Merging { .. } | Applying::Committing { .. }) => None,
        }
    }

    fn not_passed(&self, id: &AttemptId) -> Vec<CheckId> {
        let key = (id.unit.clone(), Subject::Merge(id.clone()));
        let checks = self.measured.get(&key).map(|m| m.checks.as_slice()).unwrap_or_default();
        checks
            .iter()
            .filter(|check| check.required)
            .filter(|check| check.result.as_ref().is_some_and(|r| r.outcome != Outcome::Pass))
            .map(|check| check.id.clone())
            .collect()
    }

    /// Where the run stands, if that is another place than before.
    fn standing(&self) -> Option<RunEvent> {
        match &self.state {
            RunState::Stopping { now, .. } => {
                let committing = matches!(self.applying, Some(Applying::Committing { .. }));
                let over = self.live.is_empty() && (*now || !committing);
                over.then_some(RunEvent::RunAborted)
            }
            RunState::Active => self.at_rest().then(|| self.rest()).flatten(),
            RunState::Held { reason } => self.rest_again(&RunEvent::RunHeld { reason: *reason }),
            RunState::BudgetLimited { dimension } => {
                self.rest_again(&RunEvent::RunBudgetLimited { dimension: *dimension })
            }
            RunState::Submitting
            | RunState::Paused { .. }
            | RunState::Completed
            | RunState::Aborted => None,
        }
    }

    /// A run at rest is released by whatever lets it go on, or rests for another reason.
    fn rest_again(&self, same: &RunEvent) -> Option<RunEvent> {
        if !self.at_rest() {
            return Some(RunEvent::RunReleased);
        }
        self.rest().filter(|event| event != same)
    }

    /// Whether nothing runs and nothing can start.
    fn at_rest(&self) -> bool {
        self.live.is_empty()
            && self.tally.taking == 0
            && self.tally.measuring == 0
            && self.queue.is_empty()
            && self.applying.is_none()
            && !self.startable()
    }

    /// Whether a ready unit may be granted a slot; asked only while nothing is at work.
    fn startable(&self) -> bool {
        self.exhausted().is_none() && self.ready.iter().any(|ix| !self.behind_a_claim(*ix))
    }

    /// Whether the unit's files are kept for another unit of this run, which then waits for a person.
    /// While nothing is at work no effect comes after the claims.
    fn behind_a_claim(&self, ix: usize) -> bool {
        let Some((_, files)) = self.claim(ix) else { return false };
        let owed = self.owed.iter().rev();
        let claims = owed.take_while(|(id, _)| matches!(id, EffectId::Claim(_)));
        claims.map(|(_, effect)| effect).any(|effect| match effect {
            Effect::Claim { unit, files: held, .. } => {
                *unit != self.units[ix].spec.id && globs::overlap(&files, held)
            }
            Effect::WantSlot(_)
            | Effect::Assign { .. }
            | Effect::Stop { .. }
            | Effect::Take { .. }
            | Effect::Merge { .. }
            | Effect::Apply { .. } => false,
        })
    }

    fn rest(&self) -> Option<RunEvent> {
        if self.all_done() {
            return match self.final_gate() {
                Gate::Open => Some(RunEvent::RunCompleted { tip: self.tip.clone() }),
                Gate::Measuring => None,
                Gate::Closed | Gate::Held => Some(RunEvent::RunHeld { reason: HoldReason::Gate }),
            };
        }
        if self.tally.ready > 0
            && let Some(dimension) = self.exhausted()
        {
            return Some(RunEvent::RunBudgetLimited { dimension });
        }
        let reason = if self.tally.failed > 0 { HoldReason::UnitFailed } else { HoldReason::Gate };
        Some(RunEvent::RunHeld { reason })
    }

    /// The gate over every check of the final tree.
    fn final_gate(&self) -> Gate {
        let Some(tree) = &self.tip_tree else { return Gate::Open };
        let subject = Subject::Final(tree.clone());
        let gates = self
            .units
            .iter()
            .filter_map(|unit| self.measured.get(&(unit.spec.id.clone(), subject.clone())))
            .map(Measurement::gate);
        gates.fold(Gate::Open, |all, one| match (all, one) {
            (Gate::Closed, _) | (_, Gate::Closed) => Gate::Closed,
            (Gate::Measuring, _) | (_, Gate::Measuring) => Gate::Measuring,
            (Gate::Held, _) | (_, Gate::Held) => Gate::Held,
            (Gate::Open, Gate::Open) => Gate::Open,
        })
    }
}

fn intend(id: &AttemptId, parent: &CommitId, tree: &TreeId, now: Timestamp) -> RunEvent {
    RunEvent::ApplyIntended {
        attempt: id.clone(),
        parent: parent.clone(),
        tree: tree.clone(),
        time_unix: now.unix_ms() / MS_PER_SEC,
    }
}

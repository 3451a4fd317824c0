//! What people are shown of a run: derived from the state, never stored.

use std::collections::BTreeMap;

use ganger_shared::delivery::Outcome;
use ganger_shared::digest::Digest;
use ganger_shared::event::{HoldReason, Submitted};
use ganger_shared::failure::Failure;
use ganger_shared::ids::{RunId, Subject, UnitId};
use ganger_shared::plan::{DeliveryMode, Kind};
use ganger_shared::rejection::Rejection;
use ganger_shared::view::{AttemptView, CheckView, RunRow, RunView, UnitView};

use super::state::{Run, RunState};
use super::unit::{Attempt, Gate, Integration, Measurement, Measuring, Phase, Unit, UnitState};

/// How far back a `blocked` unit's path to what blocks it is shown.
const PATH_MAX: usize = 32;

/// A run's trace, as 32 hex digits: the first 16 bytes of SHA-256 over `ganger/trace/` and its id.
pub fn trace_id(run: &RunId) -> String {
    let digest = Digest::of(format!("ganger/trace/{run}").as_bytes()).to_string();
    digest[..32].to_owned()
}

/// The bare word for a hold.
fn hold_word(reason: HoldReason) -> &'static str {
    match reason {
        HoldReason::UnitFailed => "unit_failed",
        HoldReason::Gate => "gate",
        HoldReason::Safeguard => "safeguard",
    }
}

impl Run {
    /// The run's id. Only a run that was submitted is ever asked.
    pub fn id(&self) -> RunId {
        self.head.as_ref().map(|head| head.run.clone()).expect("a run is submitted first of all")
    }

    /// The run as a list shows it; `None` before it was submitted.
    pub fn row(&self) -> Option<RunRow> {
        let head = self.head.as_deref()?;
        Some(RunRow {
            id: head.run.clone(),
            name: head.name.clone(),
            project: head.project.clone(),
            labels: head.labels.clone(),
            state: self.state.word().to_owned(),
            reason: self.reason(),
            counts: self.counts(),
            submitted_at: self.submitted_at,
            ended_at: self.ended_at,
            sequence: self.seq,
            trace_id: trace_id(&head.run),
        })
    }

    /// The run, whole; `None` before it was submitted.
    pub fn view(&self) -> Option<RunView> {
        let head = self.head.as_deref()?;
        Some(RunView {
            row: self.row()?,
            goal: head.goal.clone(),
            contract_hash: head.contract_hash,
            plan: head.plan.clone(),
            revision: self.revision,
            repository: head.repository.as_ref().map(|repository| repository.shown.clone()),
            repository_id: head.repository.as_ref().map(|repository| repository.id.to_string()),
            base: head.repository.as_ref().map(|repository| repository.base.clone()),
            branch: branch(head),
            tip: self.tip.clone(),
            delivery: delivery_word(head.delivery).to_owned(),
            ledger: self.ledger.clone(),
            units: (0..self.units.len()).map(|ix| self.unit_view(ix)).collect(),
            final_checks: self.final_checks(),
        })
    }

    fn reason(&self) -> Option<String> {
        match &self.state {
            RunState::Paused { reason } | RunState::Stopping { reason, .. } => Some(reason.clone()),
            RunState::Held { reason } => Some(hold_word(*reason).to_owned()),
            RunState::BudgetLimited { dimension } => Some(dimension.to_string()),
            RunState::Submitting | RunState::Active | RunState::Completed | RunState::Aborted => {
                None
            }
        }
    }

    fn counts(&self) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        for unit in &self.units {
            *counts.entry(unit.state.word().to_owned()).or_default() += 1;
        }
        counts
    }

    fn final_checks(&self) -> Vec<CheckView> {
        self.measured
            .iter()
            .filter(|((_, subject), _)| matches!(subject, Subject::Final(_)))
            .flat_map(|(_, measurement)| check_views(measurement))
            .collect()
    }

    /// One unit, by the name a person wrote.
    pub fn find_view(&self, name: &str) -> Result<(usize, UnitView), Rejection> {
        let ix = self.find_unit(name)?;
        Ok((ix, self.unit_view(ix)))
    }

    /// One unit.
    pub fn unit_view(&self, ix: usize) -> UnitView {
        let unit = &self.units[ix];
        let (state, reason) = self.unit_state(ix);
        let integration = match &unit.state {
            UnitState::Accepted { integration, .. } => Some(integration),
            UnitState::Pending
            | UnitState::Ready { .. }
            | UnitState::Running
            | UnitState::Delivered { .. }
            | UnitState::Failed { .. }
            | UnitState::Stopping { .. }
            | UnitState::Cancelled { .. }
            | UnitState::Skipped { .. } => None,
        };
        UnitView {
            id: unit.spec.id.clone(),
            task: unit.spec.task.clone(),
            kind: kind_word(unit.spec.kind).to_owned(),
            after: unit.spec.after.clone(),
            state,
            reason,
            integration: integration.and_then(integration_word).map(str::to_owned),
            conflict: integration.and_then(|integration| match integration {
                Integration::Conflict { conflict } => Some(conflict.clone()),
                Integration::NotNeeded | Integration::Pending | Integration::Done { .. } => None,
            }),
            commit: integration.and_then(|integration| match integration {
                Integration::Done { commit } => Some(commit.clone()),
                Integration::NotNeeded | Integration::Pending | Integration::Conflict { .. } => {
                    None
                }
            }),
            gate: self.unit_gate(ix).map(str::to_owned),
            waiting_for: None,
            sequence: unit.seq,
            losses: unit.losses,
            attempts: unit
                .attempts
                .iter()
                .map(|attempt| self.attempt_view(unit, attempt))
                .collect(),
        }
    }

    fn unit_state(&self, ix: usize) -> (String, Option<String>) {
        let unit = &self.units[ix];
        let word = unit.state.word().to_owned();
        match &unit.state {
            UnitState::Pending => match self.blocked_by(ix) {
                Some(path) => ("blocked".to_owned(), Some(path)),
                None => (word, None),
            },
            UnitState::Failed { failure } => {
                (word, Some(format!("{}: {}", failure.class, failure.message)))
            }
            UnitState::Stopping { reason }
            | UnitState::Skipped { reason }
            | UnitState::Cancelled { reason, .. } => (word, Some(reason.clone())),
            UnitState::Ready { .. }
            | UnitState::Running
            | UnitState::Delivered { .. }
            | UnitState::Accepted { .. } => (word, None),
        }
    }

    /// The path from a pending unit to a dependency that cannot be met as things stand.
    fn blocked_by(&self, ix: usize) -> Option<String> {
        let mut path: Vec<UnitId> = Vec::new();
        let mut at = ix;
        while path.len() < PATH_MAX {
            path.push(self.units[at].spec.id.clone());
            let after = &self.units[at].spec.after;
            let open = after.iter().filter_map(|id| self.unit_ix(id));
            let mut open = open.filter(|on| !self.units[*on].state.done());
            let next = open.find(|on| self.stands_still(*on))?;
            at = next;
            if self.units[at].state != UnitState::Pending {
                let end = &self.units[at];
                path.push(end.spec.id.clone());
                let names: Vec<&str> = path.iter().map(UnitId::as_str).collect();
                return Some(format!("{} is {}", names.join(" -> "), end.state.word()));
            }
        }
        None
    }

    fn stands_still(&self, ix: usize) -> bool {
        match &self.units[ix].state {
            UnitState::Failed { .. } | UnitState::Cancelled { .. } => true,
            UnitState::Accepted { integration, .. } => {
                matches!(integration, Integration::Conflict { .. })
            }
            UnitState::Delivered { attempt } => {
                matches!(self.attempt_gate(ix, *attempt), Some(Gate::Closed | Gate::Held))
            }
            UnitState::Pending => self.blocked_by(ix).is_some(),
            UnitState::Ready { .. }
            | UnitState::Running
            | UnitState::Stopping { .. }
            | UnitState::Skipped { .. } => false,
        }
    }

    fn unit_gate(&self, ix: usize) -> Option<&'static str> {
        let (UnitState::Delivered { attempt } | UnitState::Accepted { attempt, .. }) =
            &self.units[ix].state
        else {
            return None;
        };
        match self.attempt_gate(ix, *attempt)? {
            Gate::Measuring | Gate::Held => Some("held"),
            Gate::Open => Some("open"),
            Gate::Closed => Some("closed"),
        }
    }

    fn attempt_view(&self, unit: &Unit, attempt: &Attempt) -> AttemptView {
        let id = attempt.lease.attempt.clone();
        let subjects = [Subject::Attempt(id.clone()), Subject::Merge(id.clone())];
        let measured = subjects
            .into_iter()
            .filter_map(|subject| self.measured.get(&(unit.spec.id.clone(), subject)));
        let end = End::of(&attempt.phase);
        AttemptView {
            id,
            epoch: attempt.lease.epoch,
            state: phase_word(&attempt.phase).to_owned(),
            worker: attempt.lease.worker.clone(),
            base: attempt.lease.base.clone(),
            leased_at: attempt.leased_at,
            started_at: attempt.started.as_ref().map(|(at, _)| *at),
            ended_at: attempt.ended_at,
            active_ms: end.active_ms,
            delivery: end.delivery,
            failure: end.failure,
            output: end.output,
            checks: measured.flat_map(check_views).collect(),
            verdicts: attempt.verdicts.clone(),
            progress: None,
        }
    }
}

/// What a phase knows of an attempt's end.
#[derive(Default)]
struct End {
    active_ms: Option<ganger_shared::time::DurationMs>,
    delivery: Option<ganger_shared::delivery::Delivery>,
    failure: Option<Failure>,
    output: Option<ganger_shared::digest::ArtifactRef>,
}

impl End {
    fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => {
                Self::default()
            }
            Phase::Delivered { ended, .. } => Self {
                active_ms: Some(ended.active_ms),
                delivery: Some(ended.end.clone()),
                failure: None,
                output: ended.output.clone(),
            },
            Phase::Failed { ended } => Self {
                active_ms: Some(ended.active_ms),
                delivery: ended.end.left.clone(),
                failure: Some(ended.end.failure.clone()),
                output: ended.output.clone(),
            },
            Phase::Cancelled { ended, late, active_ms, .. } => Self {
                active_ms: *active_ms,
                delivery: late.as_deref().cloned(),
                failure: None,
                output: ended.as_ref().and_then(|ended| ended.output.clone()),
            },
            Phase::Lost { late, active_ms, .. } => Self {
                active_ms: *active_ms,
                delivery: late.as_deref().cloned(),
                failure: None,
                output: None,
            },
        }
    }
}

/// The name of a run's branch.
fn branch(head: &Submitted) -> Option<String> {
    head.repository.as_ref().map(|_| format!("ganger/{}", head.run))
}

fn check_views(measurement: &Measurement) -> Vec<CheckView> {
    measurement.checks.iter().map(|check| check_view(measurement, check)).collect()
}

fn check_view(measurement: &Measurement, check: &Measuring) -> CheckView {
    let state = match check.result.as_ref().map(|result| result.outcome) {
        Some(Outcome::Pass) => "pass",
        Some(Outcome::Fail) => "fail",
        Some(Outcome::NotMeasured) => "not_measured",
        None if check.lease.as_ref().is_some_and(|lease| lease.check == check.id) => "leased",
        None => "wanted",
    };
    CheckView {
        id: check.id.clone(),
        required: check.required,
        state: state.to_owned(),
        worker: check.lease.as_ref().map(|lease| lease.worker.clone()),
        place: check.lease.as_ref().map(|lease| lease.place),
        tree: measurement.tree.clone(),
        result: check.result.clone(),
    }
}

fn phase_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Leased => "leased",
        Phase::Preparing => "preparing",
        Phase::Running => "running",
        Phase::Stopping { .. } => "stopping",
        Phase::Delivered { .. } => "delivered",
        Phase::Failed { .. } => "failed",
        Phase::Cancelled { .. } => "cancelled",
        Phase::Lost { .. } => "lost",
    }
}

fn integration_word(integration: &Integration) -> Option<&'static str> {
    match integration {
        Integration::NotNeeded => None,
        Integration::Pending => Some("pending"),
        Integration::Done { .. } => Some("done"),
        Integration::Conflict { .. } => Some("conflict"),
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Agent => "agent",
        Kind::Command => "command",
        Kind::Write => "write",
        Kind::Review => "review",
        Kind::Verify => "verify",
        Kind::Gate => "gate",
        Kind::Question => "question",
        Kind::Loop => "loop",
        Kind::Fork => "fork",
        Kind::Join => "join",
    }
}

fn delivery_word(mode: DeliveryMode) -> &'static str {
    match mode {
        DeliveryMode::Hold => "hold",
        DeliveryMode::Branch => "branch",
        DeliveryMode::Push => "push",
        DeliveryMode::Pr => "pr",
        DeliveryMode::Merge => "merge",
    }
}

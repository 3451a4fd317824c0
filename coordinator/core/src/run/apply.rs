//! The fold: what each event makes of the state, and of what is owed.
//!
//! Nothing is decided here and nothing is refused: an event that does not fit is a broken journal.

#![expect(clippy::unnecessary_wraps, reason = "one form for every event: it folds or does not fit")]

mod attempt;
mod measure;
mod owed;
mod plan;
mod standing;

use ganger_shared::actor::Actor;
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, UnitId};
use thiserror::Error;

use super::state::{Run, RunState};

/// An event that cannot have happened in this state: the journal is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FoldError {
    /// The run was never submitted.
    #[error("the first event of a run is not RunSubmitted")]
    NotSubmitted,
    /// No such unit.
    #[error("no unit `{0}` was planned")]
    NoUnit(UnitId),
    /// No such attempt.
    #[error("no attempt `{0}` was leased")]
    NoAttempt(AttemptId),
    /// No such measuring.
    #[error("check `{0}` is not wanted")]
    NoCheck(CheckId),
    /// The attempt has no delivery with a tree.
    #[error("attempt `{0}` has handed in no tree")]
    NoTree(AttemptId),
}

/// What stood before an event, to see what it changed beyond the unit it is about.
struct Before {
    grants: bool,
    checks: bool,
    done: bool,
}

impl Run {
    /// Folds one event; `seq` is its place in the run's stream.
    pub fn apply(&mut self, seq: u64, envelope: &Envelope<RunEvent>) -> Result<(), FoldError> {
        if self.head.is_none() && !matches!(envelope.event, RunEvent::RunSubmitted(_)) {
            return Err(FoldError::NotSubmitted);
        }
        let before = Before {
            grants: self.grants_wanted(),
            checks: self.checks_wanted(),
            done: self.all_done(),
        };
        self.seq = seq;
        self.at = envelope.at;
        self.touch(&envelope.event);
        self.apply_event(&envelope.event, &envelope.by)?;
        self.sync_after(&before);
        Ok(())
    }

    /// Remembers the event as the last that touched the unit or the run. That a call was carried
    /// out touches neither: what it did is in the events beside it.
    fn touch(&mut self, event: &RunEvent) {
        if let RunEvent::CommandRecorded(_) = event {
            return;
        }
        match event.unit().map(|unit| self.unit_ix(&unit)) {
            Some(Some(ix)) => self.units[ix].seq = self.seq,
            Some(None) => {}
            None => self.touched = self.seq,
        }
    }

    fn apply_event(&mut self, event: &RunEvent, by: &Actor) -> Result<(), FoldError> {
        use RunEvent as E;
        match event {
            E::RunSubmitted(submitted) => self.on_submitted(submitted),
            E::TaskPlanned { task, .. } => self.on_task_planned(task),
            E::UnitPlanned { unit, .. } => self.on_unit_planned(unit),
            E::RevisionAccepted { revision, units } => self.on_revision(*revision, *units),
            E::CommandRecorded(record) => self.on_call(record),
            E::AttemptLeased(lease) => self.on_attempt_leased(lease),
            E::AttemptAccepted { attempt, .. } => self.on_accepted(attempt),
            E::AttemptStarted { attempt, started, .. } => self.on_started(attempt, started),
            E::AttemptStopping { attempt, reason, until, .. } => {
                self.on_attempt_stopping(attempt, *reason, *until)
            }
            E::AttemptDelivered { attempt, ended, .. } => self.on_delivered(attempt, ended),
            E::DeliveryTaken { attempt } => self.on_taken(attempt),
            E::AttemptFailed { attempt, ended, .. } => self.on_failed(attempt, ended),
            E::AttemptCancelled { attempt, ended, .. } => {
                self.on_attempt_cancelled(attempt, ended.as_ref())
            }
            E::AttemptLost { attempt, reason, .. } => self.on_lost(attempt, *reason),
            E::LateResult { attempt, active_ms, delivery, adopted, .. } => {
                self.on_late(attempt, *active_ms, delivery.as_deref(), *adopted)
            }
            E::RetryScheduled { unit, not_before, .. } => self.on_retry(unit, *not_before),
            E::UnitFailed { unit, failure } => self.on_unit_failed(unit, failure),
            E::CheckLeased(lease) => self.on_check_leased(lease),
            E::CheckMeasured { check, result, .. } => self.on_measured(check, result),
            E::CheckLost { check, .. } => self.on_check_lost(check),
            E::VerdictGiven(verdict) => self.on_verdict(verdict),
            E::MergePrepared { attempt, parent, tree, commit } => {
                self.on_merged(attempt, parent, tree, commit)
            }
            E::IntegrationConflicted { attempt, conflict } => self.on_conflict(attempt, conflict),
            E::ApplyIntended { attempt, parent, tree, time_unix } => {
                self.on_apply_intended(attempt, parent, tree, *time_unix)
            }
            E::Applied { attempt, commit } => self.on_applied(attempt, commit),
            E::UnitCancelled { unit, confirmed, reason } => {
                self.on_unit_cancelled(unit, *confirmed, reason)
            }
            E::UnitStopping { unit, reason } => self.on_unit_stopping(unit, reason),
            E::RunPaused { reason } => self.stand(RunState::Paused { reason: reason.clone() }),
            E::RunResumed | E::RunReleased => self.stand(RunState::Active),
            E::RunHeld { reason } => self.stand(RunState::Held { reason: *reason }),
            E::RunBudgetLimited { dimension } => {
                self.stand(RunState::BudgetLimited { dimension: *dimension })
            }
            E::RunStopping { reason, now } => self.on_run_stopping(reason, *now, by),
            E::RunAborted => self.on_aborted(),
            E::RunCompleted { tip } => self.on_completed(tip.as_ref()),
        }
    }
}

//! The fold: what each event makes of the state, and of what is owed.
//!
//! Nothing is decided here and nothing is refused: an event that does not fit is a broken journal.

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

impl Run {
    /// Folds one event; `seq` is its place in the run's stream.
    pub fn apply(&mut self, seq: u64, envelope: &Envelope<RunEvent>) -> Result<(), FoldError> {
        if self.head.is_none() && !matches!(envelope.event, RunEvent::RunSubmitted(_)) {
            return Err(FoldError::NotSubmitted);
        }
        let grants_before = self.grants_wanted();
        let checks_before = self.checks_wanted();
        self.seq = seq;
        self.at = envelope.at;
        match envelope.event.unit().map(|unit| self.unit_ix(&unit)) {
            Some(Some(ix)) => self.units[ix].seq = seq,
            Some(None) => {}
            None => self.touched = seq,
        }
        self.apply_event(&envelope.event, &envelope.by)?;
        self.sync_after(grants_before, checks_before);
        Ok(())
    }

    fn apply_event(&mut self, event: &RunEvent, by: &Actor) -> Result<(), FoldError> {
        match event {
            RunEvent::RunSubmitted(submitted) => self.on_submitted(submitted),
            RunEvent::TaskPlanned { task, .. } => self.tasks.push(task.clone()),
            RunEvent::UnitPlanned { unit, .. } => self.on_unit_planned(unit),
            RunEvent::RevisionAccepted { revision, units } => {
                self.on_revision(*revision, *units)?;
            }
            RunEvent::CommandRecorded(record) => {
                self.calls.insert(record.key.clone(), record.body);
            }
            RunEvent::AttemptLeased(lease) => self.on_attempt_leased(lease)?,
            RunEvent::AttemptAccepted { attempt, epoch } => self.on_accepted(attempt, *epoch)?,
            RunEvent::AttemptStarted { attempt, epoch, started } => {
                self.on_started(attempt, *epoch, started)?;
            }
            RunEvent::AttemptStopping { attempt, epoch, reason, .. } => {
                self.on_attempt_stopping(attempt, *epoch, *reason)?;
            }
            RunEvent::AttemptDelivered { attempt, ended, .. } => {
                self.on_delivered(attempt, ended)?;
            }
            RunEvent::DeliveryTaken { attempt } => self.on_taken(attempt)?,
            RunEvent::AttemptFailed { attempt, ended, .. } => self.on_failed(attempt, ended)?,
            RunEvent::AttemptCancelled { attempt, ended, .. } => {
                self.on_attempt_cancelled(attempt, ended.as_ref())?;
            }
            RunEvent::AttemptLost { attempt, reason, .. } => self.on_lost(attempt, *reason)?,
            RunEvent::LateResult { attempt, active_ms, delivery, adopted, .. } => {
                self.on_late(attempt, *active_ms, delivery.as_deref(), *adopted)?;
            }
            RunEvent::RetryScheduled { unit, not_before, .. } => {
                self.on_retry(unit, *not_before)?;
            }
            RunEvent::UnitFailed { unit, failure } => self.on_unit_failed(unit, failure)?,
            RunEvent::CheckLeased(lease) => self.on_check_leased(lease)?,
            RunEvent::CheckMeasured { check, result, .. } => self.on_measured(check, result)?,
            RunEvent::CheckLost { check, .. } => self.on_check_lost(check)?,
            RunEvent::VerdictGiven(verdict) => self.on_verdict(verdict)?,
            RunEvent::MergePrepared { attempt, parent, tree, commit } => {
                self.on_merged(attempt, parent, tree, commit)?;
            }
            RunEvent::IntegrationConflicted { attempt, conflict } => {
                self.on_conflict(attempt, conflict)?;
            }
            RunEvent::ApplyIntended { attempt, parent, tree, time_unix } => {
                self.on_apply_intended(attempt, parent, tree, *time_unix)?;
            }
            RunEvent::Applied { attempt, commit } => self.on_applied(attempt, commit)?,
            RunEvent::UnitCancelled { unit, confirmed, reason } => {
                self.on_unit_cancelled(unit, *confirmed, reason)?;
            }
            RunEvent::UnitStopping { unit, reason } => self.on_unit_stopping(unit, reason)?,
            RunEvent::RunPaused { reason } => {
                self.state = RunState::Paused { reason: reason.clone() };
            }
            RunEvent::RunResumed | RunEvent::RunReleased => self.state = RunState::Active,
            RunEvent::RunHeld { reason } => self.state = RunState::Held { reason: *reason },
            RunEvent::RunBudgetLimited { dimension } => {
                self.state = RunState::BudgetLimited { dimension: *dimension };
            }
            RunEvent::RunStopping { reason, now } => {
                self.on_run_stopping(reason, *now, by);
            }
            RunEvent::RunAborted => self.on_aborted(),
            RunEvent::RunCompleted { tip } => {
                self.state = RunState::Completed;
                self.ended_at = Some(self.at);
                self.tip.clone_from(tip);
                self.forget_owed();
            }
        }
        Ok(())
    }
}

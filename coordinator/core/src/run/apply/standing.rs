//! Where units and the run stand: the only place that changes a unit's state.

use ganger_shared::actor::Actor;
use ganger_shared::event::Conflict;
use ganger_shared::failure::Failure;
use ganger_shared::ids::{AttemptId, CommitId, Subject, TreeId, UnitId};
use ganger_shared::time::Timestamp;
use ganger_shared::verdict::{Judgement, Verdict};

use super::FoldError;
use super::plan::no_unit;
use crate::run::effect::EffectId;
use crate::run::state::{Applying, Run, RunState};
use crate::run::unit::{Integration, Phase, UnitState};

impl Run {
    /// Moves a unit to another state, with everything that follows from that alone.
    pub(super) fn set_state(&mut self, ix: usize, state: UnitState) {
        let was = std::mem::replace(&mut self.units[ix].state, state);
        self.count(&was, false);
        let is = self.units[ix].state.clone();
        self.count(&is, true);
        if is.done() && !was.done() {
            for dependant in self.units[ix].dependants.clone() {
                self.units[dependant].open -= 1;
                self.ready_if_open(dependant);
            }
        }
        if matches!(is, UnitState::Ready { .. }) {
            self.ready.insert(ix);
        } else {
            self.ready.remove(&ix);
        }
        self.sync_want(ix);
        self.sync_claim(ix);
        self.dirty.insert(ix);
    }

    fn count(&mut self, state: &UnitState, up: bool) {
        let tally = &mut self.tally;
        let counter = match state {
            UnitState::Ready { .. } => &mut tally.ready,
            UnitState::Failed { .. } | UnitState::Cancelled { .. } => &mut tally.failed,
            state if state.done() => &mut tally.done,
            UnitState::Pending
            | UnitState::Running
            | UnitState::Delivered { .. }
            | UnitState::Accepted { .. }
            | UnitState::Stopping { .. }
            | UnitState::Skipped { .. } => return,
        };
        if up {
            *counter += 1;
        } else {
            *counter -= 1;
        }
    }

    pub(super) fn ready_if_open(&mut self, ix: usize) {
        let may_start = self.units[ix].open == 0 && !self.state.terminal();
        if may_start && self.units[ix].state == UnitState::Pending {
            self.units[ix].ready_at.get_or_insert(self.at);
            self.set_state(ix, UnitState::Ready { since: self.at, not_before: self.at });
        }
    }

    pub(super) fn on_retry(&mut self, unit: &UnitId, at: Timestamp) -> Result<(), FoldError> {
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
        let state = if self.units[ix].open == 0 {
            UnitState::Ready { since: self.at, not_before: at }
        } else {
            UnitState::Pending
        };
        self.set_state(ix, state);
        Ok(())
    }

    pub(super) fn on_unit_failed(
        &mut self,
        unit: &UnitId,
        failure: &Failure,
    ) -> Result<(), FoldError> {
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
        self.set_state(ix, UnitState::Failed { failure: failure.clone() });
        Ok(())
    }

    pub(super) fn on_unit_cancelled(
        &mut self,
        unit: &UnitId,
        confirmed: bool,
        reason: &str,
    ) -> Result<(), FoldError> {
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
        self.withdraw_checks(ix);
        self.set_state(ix, UnitState::Cancelled { confirmed, reason: reason.to_owned() });
        Ok(())
    }

    pub(super) fn on_unit_stopping(&mut self, unit: &UnitId, why: &str) -> Result<(), FoldError> {
        let ix = self.unit_ix(unit).ok_or_else(|| no_unit(unit))?;
        self.set_state(ix, UnitState::Stopping { reason: why.to_owned() });
        Ok(())
    }

    pub(super) fn on_verdict(&mut self, verdict: &Verdict) -> Result<(), FoldError> {
        let id = &verdict.attempt;
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        self.units[ix].attempts[at].verdicts.push(verdict.clone());
        if verdict.verdict != Judgement::Accept {
            return Ok(());
        }
        let changes = self.writes(&self.units[ix].attempts[at]);
        let integration = if changes { Integration::Pending } else { Integration::NotNeeded };
        if changes {
            self.queue.push_back(id.clone());
        }
        self.set_state(ix, UnitState::Accepted { attempt: at, integration });
        Ok(())
    }

    pub(super) fn on_merged(
        &mut self,
        id: &AttemptId,
        parent: &CommitId,
        tree: &TreeId,
        commit: &CommitId,
    ) -> Result<(), FoldError> {
        self.drop_merge(id);
        self.applying = Some(Applying::Measuring { parent: parent.clone(), tree: tree.clone() });
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        let known = self.units[ix].attempts[at]
            .delivery()
            .and_then(|delivery| delivery.tree.as_ref())
            .is_some_and(|delivered| delivered.tree == *tree);
        if !known {
            self.begin_measuring(ix, at, &Subject::Merge(id.clone()), (tree, commit, parent));
        }
        Ok(())
    }

    pub(super) fn on_conflict(
        &mut self,
        id: &AttemptId,
        conflict: &Conflict,
    ) -> Result<(), FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        self.leave_queue(id);
        let integration = Integration::Conflict { conflict: conflict.clone() };
        self.set_state(ix, UnitState::Accepted { attempt: at, integration });
        Ok(())
    }

    pub(super) fn on_applied(
        &mut self,
        id: &AttemptId,
        commit: &CommitId,
    ) -> Result<(), FoldError> {
        let (ix, at) = self.attempt(id).ok_or_else(|| FoldError::NoAttempt(id.clone()))?;
        if let Some(Applying::Committing { tree }) = &self.applying {
            self.tip_tree = Some(tree.clone());
        }
        self.tip = Some(commit.clone());
        self.leave_queue(id);
        let integration = Integration::Done { commit: commit.clone() };
        self.set_state(ix, UnitState::Accepted { attempt: at, integration });
        Ok(())
    }

    /// Nothing new begins: no check, no merge. A commit that is being made is still waited for,
    /// unless there is to be no grace.
    pub(super) fn on_run_stopping(
        &mut self,
        reason: &str,
        now: bool,
        by: &Actor,
    ) -> Result<(), FoldError> {
        self.state = RunState::Stopping { reason: format!("{reason} ({by})"), now };
        for ix in 0..self.units.len() {
            self.withdraw_checks(ix);
        }
        match self.applying {
            Some(Applying::Merging { .. } | Applying::Measuring { .. }) => {
                if let Some(id) = self.queue.front().cloned() {
                    self.drop_owed(&EffectId::Merge(id));
                }
                self.applying = None;
            }
            Some(Applying::Committing { .. }) | None => {}
        }
        Ok(())
    }

    pub(super) fn stand(&mut self, state: RunState) -> Result<(), FoldError> {
        self.state = state;
        Ok(())
    }

    pub(super) fn on_completed(&mut self, tip: Option<&CommitId>) -> Result<(), FoldError> {
        self.state = RunState::Completed;
        self.ended_at = Some(self.at);
        self.tip = tip.cloned();
        self.forget_owed();
        Ok(())
    }

    pub(super) fn on_aborted(&mut self) -> Result<(), FoldError> {
        self.state = RunState::Aborted;
        self.ended_at = Some(self.at);
        for ix in 0..self.units.len() {
            let ends = match &self.units[ix].state {
                UnitState::Pending
                | UnitState::Ready { .. }
                | UnitState::Running
                | UnitState::Delivered { .. }
                | UnitState::Stopping { .. } => true,
                UnitState::Accepted { .. }
                | UnitState::Failed { .. }
                | UnitState::Cancelled { .. }
                | UnitState::Skipped { .. } => false,
            };
            if ends {
                self.set_state(ix, UnitState::Skipped { reason: "the run was stopped".to_owned() });
            }
        }
        self.forget_owed();
        Ok(())
    }

    /// Whether something late may still stand in for a rerun: nothing newer was leased.
    pub(in crate::run) fn adoptable(&self, ix: usize, at: usize) -> bool {
        let unit = &self.units[ix];
        let newest = unit.attempts.len() == at + 1;
        let lost = matches!(unit.attempts[at].phase, Phase::Lost { late: None, .. });
        let waits = match &unit.state {
            UnitState::Ready { .. } | UnitState::Failed { .. } => true,
            UnitState::Pending
            | UnitState::Running
            | UnitState::Delivered { .. }
            | UnitState::Accepted { .. }
            | UnitState::Stopping { .. }
            | UnitState::Cancelled { .. }
            | UnitState::Skipped { .. } => false,
        };
        newest && lost && waits && !self.closing()
    }
}

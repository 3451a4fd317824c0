//! Submission and plan revisions.

use ganger_shared::event::{CommandRecord, Submitted};
use ganger_shared::ids::UnitId;
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::limits;
use ganger_shared::plan;

use super::FoldError;
use crate::run::state::{Run, RunState};
use crate::run::unit::{Unit, UnitState};

impl Run {
    pub(super) fn on_submitted(&mut self, submitted: &Submitted) -> Result<(), FoldError> {
        let budgets = &submitted.budgets;
        let limits = [
            (Dimension::Units, Some(u64::from(budgets.units.unwrap_or(limits::UNITS)))),
            (Dimension::Attempts, budgets.attempts.map(u64::from)),
            (Dimension::ActiveMs, budgets.active.map(|active| active.0.0)),
        ];
        for (dimension, limit) in limits {
            self.ledger.insert(dimension, Account { limit, ..Account::default() });
        }
        self.tip = submitted.repository.as_ref().map(|repository| repository.base.clone());
        self.submitted_at = self.at;
        self.head = Some(Box::new(submitted.clone()));
        Ok(())
    }

    pub(super) fn on_task_planned(&mut self, task: &plan::Task) -> Result<(), FoldError> {
        self.tasks.push(task.clone());
        Ok(())
    }

    pub(super) fn on_call(&mut self, record: &CommandRecord) -> Result<(), FoldError> {
        self.calls.insert(record.key.clone(), record.body);
        Ok(())
    }

    pub(super) fn on_unit_planned(&mut self, unit: &plan::Unit) -> Result<(), FoldError> {
        self.index.insert(unit.id.clone(), self.units.len());
        self.units.push(Unit {
            spec: unit.clone(),
            state: UnitState::Pending,
            open: 0,
            ready_at: None,
            dependants: Vec::new(),
            attempts: Vec::new(),
            epochs: std::collections::BTreeMap::new(),
            losses: 0,
            failures: 0,
            transients: 0,
            seq: self.seq,
        });
        Ok(())
    }

    /// The revision is whole: wires the units it added, the last `added`, into the graph.
    pub(super) fn on_revision(&mut self, revision: u32, added: u32) -> Result<(), FoldError> {
        self.revision = revision;
        self.state = RunState::Active;
        let first = self.units.len() - added as usize;
        for ix in first..self.units.len() {
            let after = self.units[ix].spec.after.clone();
            for dependency in &after {
                let on = self.unit_ix(dependency).ok_or_else(|| no_unit(dependency))?;
                self.units[on].dependants.push(ix);
                if !self.units[on].state.done() {
                    self.units[ix].open += 1;
                }
            }
        }
        self.ledger.entry(Dimension::Units).or_default().settle(0, u64::from(added));
        for ix in first..self.units.len() {
            self.ready_if_open(ix);
            self.dirty.insert(ix);
        }
        Ok(())
    }
}

pub(super) fn no_unit(unit: &UnitId) -> FoldError {
    FoldError::NoUnit(unit.clone())
}

//! A worker's facts about a check.

use ganger_shared::actor::Actor;
use ganger_shared::delivery::{CheckResult, NotMeasured, Outcome};
use ganger_shared::event::{LossReason, RunEvent};
use ganger_shared::failure::FailureClass;
use ganger_shared::ids::{CheckId, Epoch, TreeId};
use ganger_shared::limits;
use ganger_shared::link::{Answer, Fact};

use super::report::foreign;
use crate::run::state::Run;
use crate::run::unit::UnitState;

impl Run {
    pub(super) fn check_report(
        &self,
        id: &CheckId,
        epoch: Epoch,
        by: &Actor,
        fact: Fact,
    ) -> (Vec<RunEvent>, Answer) {
        let stale = (Vec::new(), Answer::Stale);
        let Some(measuring) = self.measuring(id) else { return stale };
        let Some(lease) = measuring.lease.as_ref().filter(|_| measuring.id == *id) else {
            return stale;
        };
        if lease.check != *id || lease.epoch != epoch || foreign(by, &lease.worker) {
            return stale;
        }
        if measuring.result.is_some() {
            return (Vec::new(), Answer::Recorded);
        }
        let Some(tree) = self.tree_of(id) else { return (Vec::new(), Answer::Stale) };
        let check = id.clone();
        match fact {
            Fact::Accepted | Fact::Started(_) => (Vec::new(), Answer::Recorded),
            Fact::Measured(ended) => {
                let result = Box::new(trusted(ended.end, &tree));
                (vec![RunEvent::CheckMeasured { check, epoch, result }], Answer::Recorded)
            }
            // The checker was cut off, it did not fail: measured again like any lost lease.
            Fact::Failed(ended) if ended.end.failure.class == FailureClass::WorkerRestarted => {
                (self.check_lost(id, epoch, LossReason::InstanceReplaced), Answer::Recorded)
            }
            Fact::Failed(ended) => {
                let message = format!("{}: {}", ended.end.failure.class, ended.end.failure.message);
                (self.unmeasurable(id, epoch, message), Answer::Recorded)
            }
            // Nobody asked for it, so it is still to be measured.
            Fact::Stopped(_) if !self.unwanted(id) => {
                (self.check_lost(id, epoch, LossReason::NotHeld), Answer::Recorded)
            }
            Fact::Stopped(_) => {
                let result = Box::new(not_measured(NotMeasured::Withdrawn, tree, None));
                (vec![RunEvent::CheckMeasured { check, epoch, result }], Answer::Recorded)
            }
            Fact::Delivered(_) => (Vec::new(), Answer::Stale),
        }
    }

    pub(super) fn check_lost(
        &self,
        id: &CheckId,
        epoch: Epoch,
        reason: LossReason,
    ) -> Vec<RunEvent> {
        let lost = RunEvent::CheckLost { check: id.clone(), epoch, reason };
        if id.n <= limits::CHECK_RERUNS && !self.unwanted(id) {
            return vec![lost];
        }
        self.unmeasurable(id, epoch, format!("its lease was lost {} times", id.n))
    }

    /// A measuring whose worker should long have ended it.
    pub(super) fn check_overdue(&self, id: &CheckId, epoch: Epoch) -> Vec<RunEvent> {
        let Some(tree) = self.tree_of(id) else { return Vec::new() };
        let why = if self.unwanted(id) { NotMeasured::Withdrawn } else { NotMeasured::Timeout };
        let message = "it ran longer than it may and its worker did not end it".to_owned();
        let result = Box::new(not_measured(why, tree, Some(message)));
        vec![RunEvent::CheckMeasured { check: id.clone(), epoch, result }]
    }

    /// The checker's own failure is never a verdict on what it should have measured.
    fn unmeasurable(&self, id: &CheckId, epoch: Epoch, message: String) -> Vec<RunEvent> {
        let Some(tree) = self.tree_of(id) else { return Vec::new() };
        let unwanted = self.unwanted(id);
        let why = if unwanted { NotMeasured::Withdrawn } else { NotMeasured::HarnessDefect };
        let result = Box::new(not_measured(why, tree, Some(message)));
        vec![RunEvent::CheckMeasured { check: id.clone(), epoch, result }]
    }

    /// Whether nobody needs to know any more: the run is being stopped, or the unit is cancelled.
    fn unwanted(&self, id: &CheckId) -> bool {
        let unit = self.unit_ix(&id.unit).map(|ix| &self.units[ix].state);
        self.closing() || matches!(unit, Some(UnitState::Cancelled { .. }))
    }

    fn tree_of(&self, id: &CheckId) -> Option<TreeId> {
        let measurement = self.measured.get(&(id.unit.clone(), id.subject.clone()))?;
        Some(measurement.tree.clone())
    }
}

/// A result counts only for the tree that was to be measured, and `pass` only with its evidence.
fn trusted(result: CheckResult, wanted: &TreeId) -> CheckResult {
    if result.tree != *wanted {
        let message = format!("tree {} was measured, {wanted} was wanted", result.tree);
        return not_measured(NotMeasured::HarnessDefect, wanted.clone(), Some(message));
    }
    let shown = result.evidence.as_ref().is_some_and(|evidence| evidence.pass);
    if result.outcome == Outcome::Pass && !shown {
        let message = "reported as passed without evidence that it did".to_owned();
        return not_measured(NotMeasured::HarnessDefect, wanted.clone(), Some(message));
    }
    result
}

fn not_measured(why: NotMeasured, tree: TreeId, message: Option<String>) -> CheckResult {
    CheckResult {
        outcome: Outcome::NotMeasured,
        not_measured: Some(why),
        evidence: None,
        tree,
        message,
    }
}

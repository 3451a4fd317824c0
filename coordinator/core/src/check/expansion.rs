//! Rule: the order of tasks may become dependencies of units without becoming too many of them.
//!
//! Two tasks of *n* units each stand for *n*² dependencies, so a small text may ask for more than
//! any memory holds; they are counted before one is made.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::ids::TaskId;
use ganger_shared::plan::PlanFile;
use ganger_shared::problem::{Code, Problem};

use super::Draft;

/// The most dependencies that the order of tasks may stand for.
const DEPENDENCIES_MAX: usize = 1_000_000;

/// The problem, if there are too many.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    if fits(draft.plan) {
        return Vec::new();
    }
    let message =
        format!("the order of tasks stands for too many dependencies, at most {DEPENDENCIES_MAX}");
    let fix = "put a unit between the tasks that all of the later ones come after";
    vec![Problem::error(Code::Limit, "tasks", message).with_fix(fix)]
}

/// Whether there are few enough to make them.
pub(super) fn fits(plan: &PlanFile) -> bool {
    let mut members: BTreeMap<&TaskId, usize> = BTreeMap::new();
    for task in plan.units.iter().filter_map(|unit| unit.task.as_ref()) {
        *members.entry(task).or_default() += 1;
    }
    let after: BTreeMap<&TaskId, &[TaskId]> =
        plan.tasks.iter().map(|task| (&task.id, task.after.as_slice())).collect();
    let mut left = DEPENDENCIES_MAX;
    for task in &plan.tasks {
        let mut before = 0_usize;
        let mut seen = BTreeSet::from([&task.id]);
        let mut waiting: Vec<&TaskId> = task.after.iter().collect();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            match members.get(id) {
                Some(units) => before += units,
                // A task without units hands on what comes before itself.
                None => waiting.extend(after.get(id).copied().unwrap_or_default()),
            }
        }
        let own = members.get(&task.id).copied().unwrap_or(0).max(1);
        let cost = before.saturating_mul(own).saturating_add(seen.len());
        match left.checked_sub(cost) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    true
}

//! Rule: every number of a plan has an upper end, and none is zero where something must happen.
//!
//! Not here: what the run as a whole may spend (`budgets`), and the ranges the schema itself has.

use ganger_shared::limits::{self, Limits};
use ganger_shared::plan::{Length, Retry, path};
use ganger_shared::problem::{Code, Problem};
use ganger_shared::time::DurationMs;

use super::Draft;
use super::sites::{self, Site};

/// The most checks of one unit.
pub(super) const CHECKS_MAX: usize = 32;

/// The longest any command may take or any pause may last; an agent has its own, lower cap.
const LENGTH_MAX: DurationMs = DurationMs::from_mins(24 * 60);

/// Everything that is too long, too many or nothing.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    let defaults = &plan.defaults;
    let mut found = Vec::new();
    found.extend(length("defaults.timeout".to_owned(), defaults.timeout));
    found.extend(length("defaults.silence".to_owned(), defaults.silence));
    found.extend(retry("defaults.retry", defaults.retry.as_ref()));
    for site in sites::all(plan) {
        found.extend(of_unit(&site));
    }
    for (index, task) in plan.tasks.iter().enumerate() {
        let bytes = serde_json::to_vec(task).map_or(usize::MAX, |json| json.len());
        found.extend(too_large(&path::item("tasks", index), &format!("task `{}`", task.id), bytes));
    }
    let head = (&plan.labels, &plan.goal, &plan.contract, draft.context.attachments);
    let bytes = serde_json::to_vec(&head).map_or(usize::MAX, |json| json.len());
    found.extend(too_large("", "goal, labels, contract and names of files", bytes));
    found
}

/// The problem, if there are more tasks than units are allowed.
pub(super) fn tasks(draft: &Draft<'_>) -> Vec<Problem> {
    let (tasks, max) = (draft.plan.tasks.len(), draft.context.limits.units_max);
    let problem = too_many(tasks, draft.context.limits)
        .then(|| Problem::error(Code::Limit, "tasks", format!("{tasks} tasks, at most {max}")));
    problem.into_iter().collect()
}

/// Whether these are more than the operator allows units.
pub(super) fn too_many(count: usize, limits: &Limits) -> bool {
    !u32::try_from(count).is_ok_and(|count| count <= limits.units_max)
}

fn of_unit(site: &Site<'_>) -> Vec<Problem> {
    let unit = site.unit;
    let mut found = Vec::new();
    found.extend(length(site.key("timeout"), unit.timeout));
    found.extend(length(site.key("silence"), unit.silence));
    found.extend(retry(&site.key("retry"), unit.retry.as_ref()));
    for (index, check) in unit.checks.iter().enumerate() {
        found.extend(length(path::key(&site.item("checks", index), "timeout"), check.timeout));
    }
    let checks = unit.checks.len();
    if checks > CHECKS_MAX {
        let message = format!("{checks} checks, at most {CHECKS_MAX}");
        let problem = Problem::error(Code::Limit, site.key("checks"), message);
        found.push(problem.with_fix("let one command measure several facts, or split the unit"));
    }
    found
}

fn retry(at: &str, retry: Option<&Retry>) -> Vec<Problem> {
    // No pause at all is a way to retry, so only its upper end counts.
    let delay = retry.and_then(|retry| retry.delay);
    let within = retry.and_then(|retry| retry.within);
    too_long(path::key(at, "delay"), delay)
        .into_iter()
        .chain(zero(path::key(at, "within"), within))
        .collect()
}

fn length(place: String, length: Option<Length>) -> Option<Problem> {
    zero(place.clone(), length).or_else(|| too_long(place, length))
}

fn zero(place: String, length: Option<Length>) -> Option<Problem> {
    length.filter(|length| length.0 == DurationMs::default()).map(|_| {
        let message = "no time at all: nothing can be done in it";
        Problem::error(Code::BadValue, place, message).with_fix("write a length such as `30m`")
    })
}

fn too_long(place: String, length: Option<Length>) -> Option<Problem> {
    length.filter(|length| length.0 > LENGTH_MAX).map(|length| {
        let message = format!("{length} is too long, at most {LENGTH_MAX}");
        Problem::error(Code::Limit, place, message)
    })
}

/// What one event of the journal must hold.
fn too_large(place: &str, what: &str, bytes: usize) -> Option<Problem> {
    let max = limits::UNIT_BYTES;
    (bytes > max).then(|| {
        let message = format!("{what}: {bytes} bytes, at most {max}");
        let fix = "put long texts into files of the repository";
        Problem::error(Code::Limit, place, message).with_fix(fix)
    })
}

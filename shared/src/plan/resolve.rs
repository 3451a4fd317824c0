//! Units as they are run: defaults applied, groupings turned into dependencies.
//!
//! What comes out is what the journal stores. Nothing here judges the graph.

use std::collections::{BTreeMap, BTreeSet};

use super::{Accept, Kind, Length, Mode, OnCheckFailure, PlanFile, Retry, Task, Unit, path};
use crate::ids::{TaskId, UnitId};
use crate::limits;
use crate::problem::{Code, Problem};
use crate::time::DurationMs;

/// The files of a unit that does not say which it writes.
pub const EVERYTHING: &str = "**";

/// Every unit with nothing left open, and what its author should know about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The units, in the order of the plan.
    pub units: Vec<Unit>,
    /// Warnings about what was filled in, and errors about what is too large.
    pub problems: Vec<Problem>,
}

impl PlanFile {
    /// Every unit with defaults applied and the order of tasks as dependencies.
    pub fn resolved_units(&self) -> Resolved {
        let before = units_before(&self.tasks, &self.units);
        let units: Vec<Unit> =
            self.units.iter().map(|unit| resolved(self, unit, &before)).collect();
        let problems = units
            .iter()
            .enumerate()
            .flat_map(|(index, unit)| problems(self, index, unit))
            .collect();
        Resolved { units, problems }
    }
}

impl Unit {
    /// How long an attempt may take.
    pub fn timeout(&self) -> DurationMs {
        self.timeout.map_or(limits::ATTEMPT_TIMEOUT, |length| length.0)
    }

    /// How long an attempt may be without output.
    pub fn silence(&self) -> DurationMs {
        self.silence.map_or(limits::SILENCE, |length| length.0)
    }

    /// Attempts in all, the first included: one unless a retry is declared.
    pub fn attempts_max(&self) -> u32 {
        let retry = self.retry.as_ref();
        retry.map_or(1, |retry| retry.attempts.unwrap_or(limits::ATTEMPTS_PER_UNIT))
    }

    /// Pause before the next attempt.
    pub fn retry_delay(&self) -> DurationMs {
        let delay = self.retry.as_ref().and_then(|retry| retry.delay);
        delay.map_or(limits::RETRY_DELAY, |length| length.0)
    }

    /// Which files it may write.
    pub fn files(&self) -> Vec<&str> {
        match &self.files {
            Some(files) => files.iter().map(String::as_str).collect(),
            None => vec![EVERYTHING],
        }
    }
}

impl super::Check {
    /// How long it may take.
    pub fn timeout(&self) -> DurationMs {
        self.timeout.map_or(limits::CHECK_TIMEOUT, |length| length.0)
    }
}

fn resolved(plan: &PlanFile, unit: &Unit, before: &BTreeMap<TaskId, Vec<UnitId>>) -> Unit {
    let defaults = &plan.defaults;
    let mut unit = unit.clone();
    let from_task = unit.task.as_ref().and_then(|task| before.get(task));
    let own: BTreeSet<UnitId> = unit.after.iter().cloned().collect();
    let added = from_task.into_iter().flatten().filter(|id| !own.contains(*id)).cloned();
    unit.after.extend(added);
    if needs_agent(unit.kind) && unit.agent.is_none() {
        unit.agent.clone_from(&defaults.agent);
    }
    if writes_tree(unit.kind) && unit.files.is_none() {
        unit.files = Some(vec![EVERYTHING.to_owned()]);
    }
    unit.timeout = unit.timeout.or(defaults.timeout);
    unit.timeout = Some(Length(unit.timeout()));
    unit.silence = unit.silence.or(defaults.silence);
    unit.silence = Some(Length(unit.silence()));
    unit.retry = retry(unit.retry.as_ref(), defaults.retry.as_ref());
    unit.accept = unit.accept.or(Some(match plan.mode() {
        Mode::Supervised => Accept::Judge,
        Mode::Autonomous => Accept::Auto,
    }));
    unit.on_check_failure = unit.on_check_failure.or(Some(OnCheckFailure::Hold));
    unit.on_disconnect = Some(unit.on_disconnect());
    unit.effects = Some(unit.effects());
    unit.priority = Some(unit.priority());
    for check in &mut unit.checks {
        check.timeout = Some(Length(check.timeout()));
        check.required = Some(check.required());
        check.expect_exit = Some(check.expect_exit());
    }
    unit
}

fn needs_agent(kind: Kind) -> bool {
    matches!(kind, Kind::Agent | Kind::Write | Kind::Review | Kind::Verify)
}

fn writes_tree(kind: Kind) -> bool {
    matches!(kind, Kind::Agent | Kind::Command)
}

/// What is declared by the unit or the defaults; nothing where neither declares a retry, for then
/// there is none.
fn retry(own: Option<&Retry>, default: Option<&Retry>) -> Option<Retry> {
    let declared =
        |take: fn(&Retry) -> Option<Length>| own.and_then(take).or_else(|| default.and_then(take));
    own.or(default)?;
    Some(Retry {
        attempts: own
            .and_then(|retry| retry.attempts)
            .or_else(|| default?.attempts)
            .or(Some(limits::ATTEMPTS_PER_UNIT)),
        delay: declared(|retry| retry.delay).or(Some(Length(limits::RETRY_DELAY))),
        within: declared(|retry| retry.within),
    })
}

/// The units that come before all units of a task, for each task.
///
/// A task without units hands on what comes before itself.
fn units_before(tasks: &[Task], units: &[Unit]) -> BTreeMap<TaskId, Vec<UnitId>> {
    let mut members: BTreeMap<&TaskId, Vec<&UnitId>> = BTreeMap::new();
    for unit in units {
        if let Some(task) = &unit.task {
            members.entry(task).or_default().push(&unit.id);
        }
    }
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    tasks
        .iter()
        .map(|task| {
            let mut before = Vec::new();
            let mut seen = BTreeSet::from([&task.id]);
            let mut waiting: Vec<&TaskId> = task.after.iter().rev().collect();
            while let Some(id) = waiting.pop() {
                if !seen.insert(id) {
                    continue;
                }
                match (members.get(id), by_id.get(id)) {
                    (Some(units), _) => before.extend(units.iter().map(|unit| (*unit).clone())),
                    (None, Some(empty)) => waiting.extend(empty.after.iter().rev()),
                    (None, None) => {}
                }
            }
            (task.id.clone(), before)
        })
        .collect()
}

fn problems(plan: &PlanFile, index: usize, unit: &Unit) -> Vec<Problem> {
    let mut found = Vec::new();
    let written = &plan.units[index];
    if plan.repository.is_some() && writes_tree(unit.kind) && written.files.is_none() {
        let message =
            format!("unit `{}` may write every file, so it never runs beside others", unit.id);
        let problem = Problem::warning(Code::Advice, path::unit_key(index, "files"), message);
        found.push(problem.with_fix("say which with `files: [ … ]`"));
    }
    if needs_agent(unit.kind) && unit.timeout() > limits::ATTEMPT_TIMEOUT_CAP {
        let at = if written.timeout.is_some() {
            path::unit_key(index, "timeout")
        } else {
            "defaults.timeout".to_owned()
        };
        let max = limits::ATTEMPT_TIMEOUT_CAP;
        let message = format!("{} is more than an agent may take ({max})", unit.timeout());
        found.push(Problem::error(Code::Limit, at, message).with_fix(format!("write `{max}`")));
    }
    let bytes = serde_json::to_vec(unit).map_or(usize::MAX, |json| json.len());
    if bytes > limits::UNIT_BYTES {
        let max = limits::UNIT_BYTES;
        let message = format!("unit `{}` has {bytes} bytes, and {max} are allowed", unit.id);
        let problem = Problem::error(Code::Limit, path::unit(index), message);
        found.push(problem.with_fix("put long texts into files of the repository"));
    }
    found
}

#[cfg(test)]
mod tests;

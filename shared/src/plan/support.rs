//! What of the schema is not built yet: one table, of which every finished part removes a row.
//!
//! A plan that uses such a key is refused by name, because a key that is silently ignored is a
//! promise that is silently broken.

use serde_json::Value;

use super::{Agent, Mode, PlanFile, path};
use crate::problem::{Code, Problem};

/// Agents that have an executor.
pub const AGENTS: &[&str] = &["scripted"];

/// A key that is not built, or is only for some of its words.
struct Row {
    /// The key; `[]` stands for every item of a list.
    key: &'static str,
    /// The words that are not built; nothing for the key as a whole.
    words: Option<&'static [&'static str]>,
    /// What would happen if it were built.
    what: &'static str,
    /// The way out.
    fix: &'static str,
}

const fn row(key: &'static str, what: &'static str) -> Row {
    Row { key, words: None, what, fix: "remove it" }
}

const fn words(
    key: &'static str,
    words: &'static [&'static str],
    what: &'static str,
    fix: &'static str,
) -> Row {
    Row { key, words: Some(words), what, fix }
}

const SUPERVISED: &str = "judgement by a person or another agent";
const USE_AUTONOMOUS: &str = "write `mode: autonomous`";

const ROWS: &[Row] = &[
    words("mode", &["supervised"], SUPERVISED, USE_AUTONOMOUS),
    words("dispatch", &["on_command"], "starting units by command", "write `dispatch: auto`"),
    row("budgets.tokens", "a limit on tokens"),
    row("budgets.usd", "a limit on money"),
    row("budgets.calls", "a limit on calls"),
    row("contract.profile", "profiles"),
    row("contract.acceptance", "coverage by reviews"),
    row("contract.protect", "protected files"),
    row("contract.risk", "risky files"),
    row("defaults.agent.tier", "tiers of models"),
    row("defaults.agent.model", "choice of the model"),
    row("defaults.retry.within", "a time limit over all attempts"),
    row("tasks[].gate", "gates between tasks"),
    row("tasks[].fan_out", "a limit on units of one task running at once"),
    row("tasks[].race", "racing several candidates"),
    words(
        "units[].kind",
        &["write", "review", "verify", "gate", "question", "loop", "fork", "join"],
        "units of this kind",
        "use `agent` or `command`, or remove the unit",
    ),
    row("units[].of", "units that read another's delivery"),
    row("units[].fixes", "units that repair another"),
    row("units[].replaces", "units that stand in for another"),
    row("units[].secrets", "secrets"),
    row("units[].inputs", "inputs from other units"),
    row("units[].outputs", "outputs to other units"),
    row("units[].clearance", "classes of inputs"),
    row("units[].validate", "rules inside the attempt"),
    row("units[].exit", "exit conditions"),
    row("units[].gate", "gates over judgements"),
    row("units[].race", "racing several candidates"),
    row("units[].agent.tier", "tiers of models"),
    row("units[].agent.model", "choice of the model"),
    row("units[].when", "predicates"),
    row("units[].run_on", "units outside the graph"),
    words("units[].accept", &["judge"], SUPERVISED, "write `accept: auto`"),
    row("units[].on_check_failure.continue", "going on after a failed check"),
    row("units[].parallel", "units that run alone"),
    row("units[].retry.within", "a time limit over all attempts"),
    row("units[].loop", "loops"),
    row("units[].fork", "forks"),
    row("units[].join", "joins"),
    row("units[].question", "questions"),
    row("units[].hooks", "commands before and after an attempt"),
    row("insert", "units added by themselves"),
    words(
        "delivery.mode",
        &["push", "pr", "merge"],
        "delivery past the branch",
        "write `hold` or `branch`",
    ),
];

/// Everything the plan uses that is not built yet.
pub fn unsupported(plan: &PlanFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if plan.mode() == Mode::Supervised && plan.mode.is_none() {
        let message =
            format!("mode `supervised` is the default, and {SUPERVISED} is not built yet");
        problems.push(not_yet("mode".to_owned(), message, USE_AUTONOMOUS));
    }
    let value = serde_json::to_value(plan).expect("a plan has only text keys");
    for row in ROWS {
        let keys: Vec<&str> = row.key.split('.').collect();
        find(&value, &keys, String::new(), &mut |place, found| {
            problems.extend(row.used(place, found));
        });
    }
    problems.extend(agents(plan).filter_map(|(place, agent)| unknown_agent(place, agent)));
    problems
}

fn not_yet(place: String, message: String, fix: &str) -> Problem {
    Problem::error(Code::NotSupportedYet, place, message).with_fix(fix)
}

impl Row {
    fn used(&self, place: String, found: &Value) -> Option<Problem> {
        let Row { words, what, fix, .. } = self;
        let message = match words {
            None => format!("{what}: not built yet"),
            Some(words) => {
                let word = found.as_str().filter(|word| words.contains(word))?;
                format!("`{word}`: {what}: not built yet")
            }
        };
        Some(not_yet(place, message, fix))
    }
}

/// Calls `each` with every value at `keys` below `value`.
fn find(value: &Value, keys: &[&str], at: String, each: &mut dyn FnMut(String, &Value)) {
    let Some((key, rest)) = keys.split_first() else { return each(at, value) };
    let (key, every) = key.strip_suffix("[]").map_or((*key, false), |key| (key, true));
    let Some(child) = value.get(key) else { return };
    let below = path::key(&at, key);
    if !every {
        return find(child, rest, below, each);
    }
    for (index, item) in child.as_array().into_iter().flatten().enumerate() {
        find(item, rest, path::item(&below, index), each);
    }
}

fn agents(plan: &PlanFile) -> impl Iterator<Item = (String, &Agent)> {
    let own =
        plan.units.iter().enumerate().filter_map(|(index, unit)| {
            Some((path::unit_key(index, "agent"), unit.agent.as_ref()?))
        });
    let default = plan.defaults.agent.as_ref().map(|agent| ("defaults.agent".to_owned(), agent));
    default.into_iter().chain(own)
}

fn unknown_agent(place: String, agent: &Agent) -> Option<Problem> {
    if AGENTS.contains(&agent.name.as_str()) {
        return None;
    }
    let shown = super::walk::shown(&agent.name);
    let message = format!("agent `{shown}` has no executor yet");
    let fix = format!("use {}", AGENTS.join(", "));
    Some(not_yet(place, message, &fix))
}

#[cfg(test)]
mod tests;

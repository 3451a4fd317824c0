//! Rule: every agent is one that somebody could run (P047).
//!
//! An agent that is known and only not attached right now is a warning: workers come and go, and a
//! unit waits for one. Not here: which worker takes it (`fleet`).

use std::collections::BTreeSet;

use ganger_shared::nearest::did_you_mean;
use ganger_shared::plan;
use ganger_shared::plan::support::AGENTS;
use ganger_shared::problem::{Code, Problem};

use super::{Draft, shown, sites};

/// Agents the format is made for; without an executor they are not built yet, which is another
/// thing than unknown.
const FORESEEN: [&str; 3] = ["acp", "claude", "codex"];

/// Every agent nobody knows, and every one nobody offers now.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let offered = draft.context.agents.unwrap_or_default();
    let known: Vec<&str> =
        AGENTS.iter().copied().chain(offered.iter().map(String::as_str)).collect();
    let mut found = Vec::new();
    for (place, agent) in sites::agents(draft.plan) {
        let name = agent.name.as_str();
        if !known.contains(&name) {
            if !FORESEEN.contains(&name) {
                found.push(unknown(place, name, &known));
            }
        } else if draft.context.agents.is_some() && !offered.iter().any(|offer| offer == name) {
            let message = format!("no live worker offers agent `{name}` now");
            let fix = "start one that does, or its units wait";
            found.push(Problem::warning(Code::Advice, place, message).with_fix(fix));
        }
    }
    found
}

/// What the plan uses that is not built yet, without the agents that are not known at all.
pub(super) fn unsupported(draft: &Draft<'_>, found: &[Problem]) -> Vec<Problem> {
    let unknown: BTreeSet<&str> = found
        .iter()
        .filter(|problem| problem.code == Code::UnknownAgent)
        .map(|problem| problem.path.as_str())
        .collect();
    let mut problems = plan::unsupported(draft.plan);
    problems.retain(|problem| !unknown.contains(problem.path.as_str()));
    problems
}

fn unknown(place: String, name: &str, known: &[&str]) -> Problem {
    let near = did_you_mean(name, known.iter().copied());
    let fix = if near.is_empty() { format!("known: {}", listed(known)) } else { near };
    let message = format!("no agent is called `{}`", shown(name));
    Problem::error(Code::UnknownAgent, place, message).with_fix(fix)
}

fn listed(known: &[&str]) -> String {
    let mut names: Vec<String> = known.iter().map(|name| shown(name)).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

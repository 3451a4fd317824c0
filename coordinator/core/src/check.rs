//! Everything that is wrong with a plan, said at once: the reader's problems and those of the whole.
//!
//! A rule is one file with one function from the plan to problems; all rules run, none stops at the
//! first problem, and none sees another's. What a single key may hold is the reader's
//! (`ganger_shared::plan`); whether a taken plan may be submitted *now* is decided in `run`.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::limits::Limits;
use ganger_shared::plan::{self, PlanFile, Reading};
use ganger_shared::problem::{Code, Problem};
use ganger_shared::text::cut_bytes;

mod agents;
pub mod attachments;
mod bounds;
mod budgets;
mod circuits;
pub mod contract;
mod cycles;
mod evidence;
mod expansion;
mod globs;
mod graph;
mod names;
mod overlaps;
mod sites;
mod tree;
mod twice;
mod words;

/// Most problems of one answer.
pub const PROBLEMS_MAX: usize = 200;

/// Longest part of a plan's text that is repeated in a message.
const SHOWN_BYTES: usize = 80;

/// What a plan is held against besides itself.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Names of agents that live workers offer; nothing where no worker is known, and then only
    /// the built-in names are.
    pub agents: Option<&'a [String]>,
    /// What the operator allows.
    pub limits: &'a Limits,
    /// The files that came with the plan, by the path it names them with.
    pub attachments: &'a BTreeMap<String, ArtifactRef>,
}

/// A plan that may be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The plan as written.
    pub plan: PlanFile,
    /// Its units with nothing left open: defaults filled in, the order of tasks as dependencies.
    pub units: Vec<plan::Unit>,
    /// Its tasks.
    pub tasks: Vec<plan::Task>,
    /// What its author should look at.
    pub warnings: Vec<Problem>,
    /// What the run is frozen by; see `contract`.
    pub contract_hash: Digest,
}

/// A plan on its way through the rules.
struct Draft<'a> {
    plan: &'a PlanFile,
    reading: &'a Reading,
    context: &'a Context<'a>,
}

/// One way in which a plan may be wrong.
type Rule = fn(&Draft<'_>) -> Vec<Problem>;

const RULES: [Rule; 14] = [
    twice::problems,
    names::problems,
    agents::problems,
    attachments::problems,
    words::problems,
    globs::problems,
    tree::problems,
    evidence::cannot_fail,
    evidence::no_evidence,
    bounds::problems,
    budgets::problems,
    expansion::problems,
    cycles::problems,
    overlaps::warnings,
];

/// Reads a plan and holds it against every rule; refuses it with every problem and warning there
/// is, in the order of the text.
///
/// Only a plan with more units or tasks than the operator allows is held against no further rule:
/// the work would have no bound, and it must be split anyway.
pub fn check_text(text: &str, context: &Context<'_>) -> Result<Checked, Vec<Problem>> {
    let mut reading = plan::read_all(text, context.limits);
    let Some(plan) = reading.plan.take() else {
        return Err(reading.problems);
    };
    let draft = Draft { plan: &plan, reading: &reading, context };
    let mut found = bounds::tasks(&draft);
    let mut units = Vec::new();
    if found.is_empty() && !bounds::too_many(plan.units.len(), context.limits) {
        found.extend(RULES.iter().flat_map(|rule| rule(&draft)));
        found.extend(agents::unsupported(&draft, &found));
        if expansion::fits(&plan) {
            let resolved = plan.resolved_units();
            found.extend(resolved.problems);
            units = resolved.units;
        }
    }
    let problems = bounded(draft.placed(found));
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    Ok(Checked {
        contract_hash: contract::hash(&plan, &units),
        tasks: plan.tasks.clone(),
        plan,
        units,
        warnings: problems,
    })
}

impl Draft<'_> {
    /// What the rules found beside what the reader found, each with its place in the text.
    ///
    /// A fault hides what follows from it at the very same place, and only there.
    fn placed(&self, mut found: Vec<Problem>) -> Vec<Problem> {
        let read = &self.reading.problems;
        let broken: BTreeSet<&str> = read
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| problem.path.as_str())
            .collect();
        found.retain(|problem| !broken.contains(problem.path.as_str()));
        found.extend(read.iter().cloned());
        self.reading.spans.placed(found)
    }
}

/// Errors go before warnings when there are too many of both.
fn bounded(problems: Vec<Problem>) -> Vec<Problem> {
    if problems.len() <= PROBLEMS_MAX {
        return problems;
    }
    let (mut kept, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(Problem::is_error);
    let refused = !kept.is_empty();
    kept.extend(warnings);
    kept.truncate(PROBLEMS_MAX);
    let message = format!("more than {PROBLEMS_MAX} problems; the rest is not shown");
    kept.push(if refused {
        Problem::error(Code::Limit, "", message)
    } else {
        Problem::warning(Code::Limit, "", message)
    });
    kept
}

/// A text of the plan as it may be shown: short, and without control characters.
fn shown(text: &str) -> String {
    cut_bytes(text.escape_debug().to_string(), SHOWN_BYTES)
}

#[cfg(test)]
mod tests;

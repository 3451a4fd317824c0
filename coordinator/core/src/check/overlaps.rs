//! Warning: units without an order that may write the same files, and so never run at once.
//!
//! Only advice: the claims in `fleet` keep them apart whatever is said here. A unit that does not
//! say its files is left out, because the resolver warns of it already.

use std::collections::BTreeMap;

use ganger_shared::plan::{Kind, path};
use ganger_shared::problem::{Code, Problem};

use super::Draft;
use super::graph::Graph;
use crate::globs::Patterns;

/// The most units whose files are compared.
const UNITS_MAX: usize = 512;

/// What all comparisons may cost: the sum of products of the lengths of the patterns.
const COST_MAX: usize = 20_000_000;

/// The most names in one warning.
const NAMES_MAX: usize = 4;

/// A unit that says which files it writes.
struct Writer<'a> {
    number: usize,
    files: &'a [String],
}

/// One warning for each unit that shares files with an earlier one of the plan.
pub(super) fn warnings(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    if plan.repository.is_none() || plan.units.len() > UNITS_MAX || plan.tasks.len() > UNITS_MAX {
        return Vec::new();
    }
    let writers: Vec<Writer<'_>> = plan
        .units
        .iter()
        .enumerate()
        .filter(|(_, unit)| matches!(unit.kind, Kind::Agent | Kind::Command))
        .filter_map(|(number, unit)| Some(Writer { number, files: unit.files.as_deref()? }))
        .collect();
    let Some(shared) = shared(&writers) else {
        let message = "too many file patterns to say which units share files";
        return vec![Problem::warning(Code::Advice, "units", message)];
    };
    let graph = Graph::new(plan, true);
    let after: Vec<Vec<bool>> =
        writers.iter().map(|writer| reached(&graph, writer.number)).collect();
    let mut found = Vec::new();
    for (b, others) in shared {
        let number = writers[b].number;
        let unordered = others
            .into_iter()
            .filter(|a| !after[*a][number] && !after[b][writers[*a].number])
            .map(|a| format!("`{}`", plan.units[writers[a].number].id))
            .collect::<Vec<_>>();
        if !unordered.is_empty() {
            let message = format!(
                "unit `{}` may write files of {}, so they run one after another",
                plan.units[number].id,
                listed(&unordered)
            );
            let problem = Problem::warning(Code::Advice, path::unit_key(number, "files"), message);
            found.push(problem.with_fix("narrow `files`, or say which is first with `after`"));
        }
    }
    found
}

/// For each writer the earlier ones it shares files with; nothing if that would cost too much.
fn shared(writers: &[Writer<'_>]) -> Option<BTreeMap<usize, Vec<usize>>> {
    let bytes = |writer: &Writer<'_>| writer.files.iter().map(String::len).sum::<usize>();
    let all: usize = writers.iter().map(bytes).sum();
    if all.saturating_mul(all) > COST_MAX {
        return None;
    }
    let patterns: Vec<Patterns> =
        writers.iter().map(|writer| Patterns::new(writer.files)).collect();
    let mut shared: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for b in 0..patterns.len() {
        for a in 0..b {
            if patterns[a].overlap(&patterns[b]) {
                shared.entry(b).or_default().push(a);
            }
        }
    }
    Some(shared)
}

fn reached(graph: &Graph<'_>, from: usize) -> Vec<bool> {
    let mut seen = vec![false; graph.later.len()];
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for next in &graph.later[node] {
            if !std::mem::replace(&mut seen[*next], true) {
                open.push(*next);
            }
        }
    }
    seen
}

fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

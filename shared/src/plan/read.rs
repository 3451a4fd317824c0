//! Reading a plan: text in, typed plan or all problems out.

use std::collections::BTreeMap;

use super::tree::{self, Place};
use super::walk::Walk;
use super::{PlanFile, kinds, path, schema};
use crate::limits::Limits;
use crate::problem::{Code, Problem};

/// Values a plan may have at least, whatever its allowed size; above, one for eight bytes.
const NODES_MIN: u64 = 250_000;

/// Where each path of a plan stands in the text it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spans(BTreeMap<String, Place>);

impl Spans {
    /// Line and column of a path, both from 1: of the path itself, else of what it lies in.
    pub fn at(&self, path: &str) -> Option<(u32, u32)> {
        let mut path = path;
        loop {
            if let Some(place) = self.0.get(path) {
                return Some(*place);
            }
            path = path::parent(path)?;
        }
    }

    /// The problems with line and column, in the order of the text.
    pub fn placed(&self, problems: Vec<Problem>) -> Vec<Problem> {
        let mut placed: Vec<Problem> = problems
            .into_iter()
            .map(|problem| {
                if problem.line.is_some() {
                    problem
                } else {
                    let place = self.at(&problem.path);
                    problem.at(place)
                }
            })
            .collect();
        placed.sort_by_key(|problem| (problem.line, problem.column));
        placed
    }
}

/// What was read of a plan, good or bad.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The plan without the keys that are wrong; nothing if too little is left of it. Only to find
    /// further problems in: it is *the* plan only if no problem is an error.
    pub plan: Option<PlanFile>,
    /// Where each path stands.
    pub spans: Spans,
    /// Every problem found, in the order of the text.
    pub problems: Vec<Problem>,
}

impl Reading {
    /// Whether nothing at or below `path` was wrong, so that what is missing there is really missing.
    pub fn intact(&self, path: &str) -> bool {
        !self.problems.iter().any(|problem| problem.is_error() && path::within(&problem.path, path))
    }
}

/// Reads a plan, or says everything that is wrong with it.
pub fn read(text: &str, limits: &Limits) -> Result<(PlanFile, Spans), Vec<Problem>> {
    let Reading { plan, spans, problems } = read_all(text, limits);
    match plan {
        Some(plan) if !problems.iter().any(Problem::is_error) => Ok((plan, spans)),
        Some(_) | None => Err(problems),
    }
}

/// Reads as much of a plan as there is, with everything that is wrong with it.
pub fn read_all(text: &str, limits: &Limits) -> Reading {
    let nothing =
        |problem| Reading { plan: None, spans: Spans::default(), problems: vec![problem] };
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if bytes > limits.plan_bytes {
        return nothing(too_large(bytes, limits.plan_bytes));
    }
    let nodes_max = usize::try_from(NODES_MIN.max(limits.plan_bytes / 8)).unwrap_or(usize::MAX);
    let root = match tree::parse(text, nodes_max) {
        Ok(root) => root,
        Err(problem) => return nothing(problem),
    };
    let schema = schema::schema();
    let mut walk = Walk::new(&schema);
    walk.spans.insert(String::new(), root.place);
    let value = walk.value(&root, &schema, "");
    let Walk { mut problems, spans, .. } = walk;
    let plan = value.and_then(|value| match serde_json::from_value::<PlanFile>(value) {
        Ok(plan) => Some(plan),
        // Only if the schema allows what the types refuse; then the types' own words must do.
        Err(error) => {
            problems.push(Problem::error(Code::BadValue, "", error.to_string()));
            None
        }
    });
    let spans = Spans(spans);
    let further = plan.iter().flat_map(|plan| further(plan, limits));
    problems.extend(further);
    Reading { plan, problems: spans.placed(problems), spans }
}

fn further(plan: &PlanFile, limits: &Limits) -> Vec<Problem> {
    let mut problems = kinds::problems(plan);
    let units = u64::try_from(plan.units.len()).unwrap_or(u64::MAX);
    if units > u64::from(limits.units_max) {
        let message = format!("{units} units, and {} are allowed", limits.units_max);
        problems.push(
            Problem::error(Code::Limit, "units", message)
                .with_fix("split the plan, or ask the operator for more"),
        );
    }
    problems
}

fn too_large(bytes: u64, max: u64) -> Problem {
    let message = format!("the plan has {bytes} bytes, and {max} are allowed");
    Problem::error(Code::Limit, "", message)
        .with_fix("split the plan, or ask the operator for a larger plan limit")
}

#[cfg(test)]
mod tests;

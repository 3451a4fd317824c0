//! Which keys a kind of unit must have, and which it has no use for (R206).

use super::{Agent, Kind, PlanFile, Unit, path};
use crate::problem::{Code, Problem};

const WITH_AGENT: &[Kind] = &[Kind::Agent, Kind::Write, Kind::Review, Kind::Verify];

/// A key, whether a unit has it, and the kinds that must or may have it.
struct Rule {
    key: &'static str,
    present: fn(&Unit) -> bool,
    must: &'static [Kind],
    may: &'static [Kind],
}

const RULES: [Rule; 7] = [
    Rule {
        key: "objective",
        present: |unit| unit.objective.is_some(),
        must: &[Kind::Agent, Kind::Write],
        may: &[
            Kind::Command,
            Kind::Review,
            Kind::Verify,
            Kind::Gate,
            Kind::Question,
            Kind::Loop,
            Kind::Fork,
            Kind::Join,
        ],
    },
    Rule { key: "run", present: |unit| unit.run.is_some(), must: &[Kind::Command], may: &[] },
    Rule {
        key: "of",
        present: |unit| unit.of.is_some(),
        must: &[Kind::Review, Kind::Verify],
        may: &[],
    },
    Rule {
        key: "question",
        present: |unit| unit.question.is_some(),
        must: &[Kind::Question],
        may: &[],
    },
    Rule { key: "loop", present: |unit| unit.r#loop.is_some(), must: &[Kind::Loop], may: &[] },
    Rule { key: "fork", present: |unit| unit.fork.is_some(), must: &[Kind::Fork], may: WITH_AGENT },
    Rule { key: "join", present: |unit| unit.join.is_some(), must: &[Kind::Join], may: &[] },
];

/// Every unit that lacks what its kind needs, or has what its kind has no use for.
pub fn problems(plan: &PlanFile) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, unit) in plan.units.iter().enumerate() {
        let at = path::unit(index);
        found.extend(RULES.iter().filter_map(|rule| rule.broken(unit, &at)));
        found.extend(agent(plan, unit, &at));
        found.extend(shapes(unit, &at));
    }
    found
}

impl Rule {
    fn broken(&self, unit: &Unit, at: &str) -> Option<Problem> {
        let there = (self.present)(unit);
        let place = path::key(at, self.key);
        let kind = unit.kind.as_str();
        if !there && self.must.contains(&unit.kind) {
            let message = format!("unit `{}` is of kind {kind} and needs `{}`", unit.id, self.key);
            return Some(Problem::error(Code::MissingKey, place, message));
        }
        if there && !self.must.contains(&unit.kind) && !self.may.contains(&unit.kind) {
            let message = format!("a unit of kind {kind} has no use for `{}`", self.key);
            return Some(Problem::error(Code::Conflict, place, message).with_fix("remove it"));
        }
        None
    }
}

fn agent(plan: &PlanFile, unit: &Unit, at: &str) -> Option<Problem> {
    let place = path::key(at, "agent");
    if !WITH_AGENT.contains(&unit.kind) {
        let message = format!("a unit of kind {} has no use for `agent`", unit.kind.as_str());
        return unit
            .agent
            .as_ref()
            .map(|_| Problem::error(Code::Conflict, place, message).with_fix("remove it"));
    }
    match unit.agent.as_ref().or(plan.defaults.agent.as_ref()) {
        None if unit.race.is_some() => None,
        None => {
            let message = format!("unit `{}` has no agent", unit.id);
            let fix = "add `agent`, or `defaults: { agent: … }`";
            Some(Problem::error(Code::MissingKey, place, message).with_fix(fix))
        }
        Some(agent) => script(agent, &place),
    }
}

fn script(agent: &Agent, place: &str) -> Option<Problem> {
    match (agent.name == "scripted", &agent.script) {
        (true, None) => {
            let message = "agent `scripted` needs a `script`";
            let fix = "write `agent: { name: scripted, script: FILE }`";
            Some(Problem::error(Code::MissingKey, place, message).with_fix(fix))
        }
        (false, Some(_)) => {
            let message = format!("agent `{}` has no use for `script`", agent.name);
            let problem = Problem::error(Code::Conflict, path::key(place, "script"), message);
            Some(problem.with_fix("remove it"))
        }
        (true, Some(_)) | (false, None) => None,
    }
}

fn shapes(unit: &Unit, at: &str) -> Vec<Problem> {
    let pairs = [
        unit.r#loop.as_ref().map(|looped| {
            ("loop", ["until", "condition"], looped.until.is_some(), looped.condition.is_some())
        }),
        unit.fork.as_ref().map(|fork| {
            ("fork", ["branches", "from"], !fork.branches.is_empty(), fork.from.is_some())
        }),
    ];
    pairs
        .into_iter()
        .flatten()
        .filter(|(_, _, first, second)| first == second)
        .map(|(key, [one, other], _, _)| {
            let message = format!("exactly one of `{one}` and `{other}` must be there");
            Problem::error(Code::Conflict, path::key(at, key), message)
        })
        .collect()
}

//! Rule: every name of a unit, task or port leads to one, and to one of the kind that is meant
//! (R002, P047).

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::ids::{TaskId, UnitId};
use ganger_shared::nearest::did_you_mean;
use ganger_shared::plan::{Gate, Kind, PortRef, Unit, path};
use ganger_shared::problem::{Code, Problem};

use super::Draft;
use super::sites::{self, Site};

/// The most unknown names for which a nearest one is looked for: each is compared with every name.
const GUESSES_MAX: usize = 100;

/// The names there are, and what leads nowhere.
struct Names<'a> {
    units: BTreeMap<&'a UnitId, &'a Unit>,
    tasks: BTreeSet<&'a TaskId>,
    /// Names that may still be compared with all others.
    guesses: usize,
    found: Vec<Problem>,
}

/// Every name that leads nowhere.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    let mut names = Names {
        units: plan.units.iter().map(|unit| (&unit.id, unit)).collect(),
        tasks: plan.tasks.iter().map(|task| &task.id).collect(),
        guesses: GUESSES_MAX,
        found: Vec::new(),
    };
    // One broken task takes the whole list out of the reading; then no task is known to be missing.
    let tasks_known = draft.reading.intact("tasks");
    for (index, task) in plan.tasks.iter().enumerate() {
        let at = path::item("tasks", index);
        for (nth, id) in task.after.iter().enumerate() {
            names.task(id, path::item(&path::key(&at, "after"), nth));
        }
        names.gate(task.gate.as_ref(), &path::key(&at, "gate"));
    }
    for site in sites::all(plan) {
        names.of_unit(&site);
        if let Some(task) = site.unit.task.as_ref().filter(|_| tasks_known) {
            names.task(task, site.key("task"));
        }
    }
    for (index, insert) in plan.insert.iter().enumerate() {
        if let Some(id) = &insert.trigger.unit {
            let trigger = path::key(&path::item("insert", index), "trigger");
            names.unit(id, path::key(&trigger, "unit"));
        }
    }
    names.found
}

impl Names<'_> {
    fn of_unit(&mut self, site: &Site<'_>) {
        let unit = site.unit;
        for (nth, id) in unit.after.iter().enumerate() {
            self.unit(id, site.item("after", nth));
        }
        let single = [("of", &unit.of), ("fixes", &unit.fixes), ("replaces", &unit.replaces)];
        for (key, id) in single {
            if let Some(id) = id {
                self.unit(id, site.key(key));
            }
        }
        self.gate(unit.gate.as_ref(), &site.key("gate"));
        for (nth, input) in unit.inputs.iter().enumerate() {
            self.port(&input.from, path::key(&site.item("inputs", nth), "from"));
        }
        if let Some(from) = unit.fork.as_ref().and_then(|fork| fork.from.as_ref()) {
            self.port(from, path::key(&site.key("fork"), "from"));
        }
        if let Some(join) = &unit.join {
            self.unit_of_kind(&join.of, Kind::Fork, path::key(&site.key("join"), "of"));
        }
        if let Some(repeated) = &unit.r#loop {
            let at = site.key("loop");
            for (nth, id) in repeated.body.iter().enumerate() {
                self.unit(id, path::item(&path::key(&at, "body"), nth));
            }
            if let Some(condition) = &repeated.condition {
                self.unit(&condition.unit, path::key(&path::key(&at, "condition"), "unit"));
            }
        }
    }

    fn gate(&mut self, gate: Option<&Gate>, at: &str) {
        let Some(Gate { reviews, verifies }) = gate else { return };
        for (key, kind, ids) in
            [("reviews", Kind::Review, reviews), ("verifies", Kind::Verify, verifies)]
        {
            for (nth, id) in ids.iter().enumerate() {
                self.unit_of_kind(id, kind, path::item(&path::key(at, key), nth));
            }
        }
    }

    fn unit(&mut self, id: &UnitId, place: String) {
        if !self.units.contains_key(id) {
            let near = self.near(id.as_str(), |names| names.units.keys().map(|unit| unit.as_str()));
            self.unknown(format!("no unit is called `{id}`"), near, place);
        }
    }

    fn unit_of_kind(&mut self, id: &UnitId, kind: Kind, place: String) {
        let Some(unit) = self.units.get(id) else { return self.unit(id, place) };
        let fits = unit.kind == kind || (kind == Kind::Fork && unit.fork.is_some());
        if !fits {
            let (is, wanted) = (unit.kind.as_str(), kind.as_str());
            let message =
                format!("unit `{id}` is of kind {is}, and one of kind {wanted} is wanted here");
            self.found.push(Problem::error(Code::Conflict, place, message));
        }
    }

    fn task(&mut self, id: &TaskId, place: String) {
        if !self.tasks.contains(&id) {
            let near = self.near(id.as_str(), |names| names.tasks.iter().map(|task| task.as_str()));
            self.unknown(format!("no task is called `{id}`"), near, place);
        }
    }

    fn port(&mut self, port: &PortRef, place: String) {
        let Some(unit) = self.units.get(&port.unit).copied() else {
            return self.unit(&port.unit, place);
        };
        let name = port.port.as_str();
        let ports = || unit.outputs.iter().map(|output| output.port.as_str());
        if !ports().any(|known| known == name) {
            let near = self.near(name, |_| ports());
            let message = format!("unit `{}` has no output `{name}`", port.unit);
            self.unknown(message, near, place);
        }
    }

    fn unknown(&mut self, message: String, near: String, place: String) {
        self.found.push(Problem::error(Code::UnknownName, place, message).with_fix(near));
    }

    /// The name that was probably meant, as long as there are guesses left.
    fn near<'s, I>(&'s mut self, name: &str, known: impl FnOnce(&'s Self) -> I) -> String
    where
        I: Iterator<Item = &'s str>,
    {
        let Some(left) = self.guesses.checked_sub(1) else { return String::new() };
        self.guesses = left;
        did_you_mean(name, known(self))
    }
}

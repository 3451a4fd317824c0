//! Rule: no two things of one kind have the same name (R002).

use std::collections::BTreeMap;
use std::fmt::Display;

use ganger_shared::plan::path;
use ganger_shared::problem::{Code, Problem};

use super::Draft;
use super::sites;

/// Every name that is there already.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    let mut found = twice("unit", sites::all(plan).map(|site| (site.key("id"), &site.unit.id)));
    let tasks = plan.tasks.iter().enumerate();
    found.extend(twice(
        "task",
        tasks.map(|(index, task)| (path::key(&path::item("tasks", index), "id"), &task.id)),
    ));
    for site in sites::all(plan) {
        let unit = site.unit;
        let below = |list: &str, index, key| path::key(&site.item(list, index), key);
        let checks = unit.checks.iter().enumerate();
        found.extend(twice(
            "check",
            checks.map(|(index, check)| (below("checks", index, "name"), &check.name)),
        ));
        let outputs = unit.outputs.iter().enumerate();
        found.extend(twice(
            "output",
            outputs.map(|(index, output)| (below("outputs", index, "port"), &output.port)),
        ));
        let after = unit.after.iter().enumerate();
        found.extend(twice("dependency", after.map(|(index, id)| (site.item("after", index), id))));
    }
    found
}

fn twice<'a, T: Ord + Display + 'a>(
    what: &str,
    names: impl Iterator<Item = (String, &'a T)>,
) -> Vec<Problem> {
    let mut first: BTreeMap<&T, String> = BTreeMap::new();
    let mut found = Vec::new();
    for (place, name) in names {
        let Some(earlier) = first.get(name) else {
            first.insert(name, place);
            continue;
        };
        let message = format!("{what} `{name}` is there already, at {earlier}");
        let fix = if what == "dependency" { "remove one of them" } else { "rename one of them" };
        found.push(Problem::error(Code::Duplicate, place, message).with_fix(fix));
    }
    found
}

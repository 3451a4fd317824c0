//! Where units stand in a plan: those that are planned, and those an insertion rule would add.
//!
//! Not here: anything about what they hold.

use ganger_shared::plan::{Agent, PlanFile, Race, Unit, path};

/// A unit and its place.
pub(super) struct Site<'a> {
    /// Its path.
    pub path: String,
    /// The unit.
    pub unit: &'a Unit,
}

impl Site<'_> {
    /// The path of one of its keys.
    pub(super) fn key(&self, name: &str) -> String {
        path::key(&self.path, name)
    }

    /// The path of an item of a list of it.
    pub(super) fn item(&self, name: &str, index: usize) -> String {
        path::item(&self.key(name), index)
    }
}

/// The planned units.
pub(super) fn planned(plan: &PlanFile) -> impl Iterator<Item = Site<'_>> {
    plan.units.iter().enumerate().map(|(index, unit)| Site { path: path::unit(index), unit })
}

/// The planned units, then those of insertion rules.
pub(super) fn all(plan: &PlanFile) -> impl Iterator<Item = Site<'_>> {
    let inserted = plan.insert.iter().enumerate().map(|(index, insert)| Site {
        path: path::key(&path::item("insert", index), "unit"),
        unit: &insert.unit,
    });
    planned(plan).chain(inserted)
}

/// Every agent the plan names, with its place.
pub(super) fn agents(plan: &PlanFile) -> Vec<(String, &Agent)> {
    let mut found = Vec::new();
    if let Some(agent) = &plan.defaults.agent {
        found.push(("defaults.agent".to_owned(), agent));
    }
    for (index, task) in plan.tasks.iter().enumerate() {
        found.extend(lanes(&path::item("tasks", index), task.race.as_ref()));
    }
    for site in all(plan) {
        found.extend(site.unit.agent.as_ref().map(|agent| (site.key("agent"), agent)));
        found.extend(lanes(&site.path, site.unit.race.as_ref()));
    }
    found
}

fn lanes<'a>(at: &str, race: Option<&'a Race>) -> Vec<(String, &'a Agent)> {
    let lanes = path::key(&path::key(at, "race"), "lanes");
    race.iter()
        .flat_map(|race| &race.lanes)
        .enumerate()
        .map(|(index, lane)| (path::key(&path::item(&lanes, index), "agent"), &lane.agent))
        .collect()
}

//! Plans for the tests, written as JSON so that no text needs quoting, and what views say of them.
//!
//! Tests that are about the text of a plan write it out themselves.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ganger_harness::{Cluster, Repository};
use serde_json::{Value, json};

/// A plan without a repository: units get an empty directory.
pub fn plan(units: &[Value]) -> Value {
    json!({
        "version": 1,
        "name": "end-to-end",
        "goal": "Prove it.",
        "mode": "autonomous",
        "defaults": { "retry": { "attempts": 1 } },
        "units": units,
    })
}

/// A plan over the repository in the directory `user` beside it, delivered as a branch.
pub fn on_repository(units: &[Value]) -> Value {
    let more = json!({
        "repository": { "url": "./user", "base": "main" },
        "delivery": { "mode": "branch" },
    });
    with(plan(units), more)
}

/// A command unit.
pub fn command(id: &str, run: &str) -> Value {
    json!({ "id": id, "kind": "command", "objective": format!("Do {id}."), "run": run })
}

/// A command unit that writes its own name into this one file, and a check of that.
pub fn writes(id: &str, file: &str) -> Value {
    writes_after(id, file, "true")
}

/// The same, once another command has succeeded.
pub fn writes_after(id: &str, file: &str, first: &str) -> Value {
    let run = format!("{first} && mkdir -p \"$(dirname {file})\" && echo {id} >> {file}");
    let checks = json!([{ "name": "written", "run": format!("grep -qx {id} {file}") }]);
    with(command(id, &run), json!({ "files": [file], "checks": checks }))
}

/// A unit of the scripted agent; `script` lies beside the plan.
pub fn scripted(id: &str, script: &str) -> Value {
    let agent = json!({ "name": "scripted", "script": script });
    json!({ "id": id, "kind": "agent", "objective": format!("Do {id}."), "agent": agent })
}

/// The same with more keys, or others.
pub fn with(mut value: Value, more: Value) -> Value {
    if let (Some(into), Value::Object(more)) = (value.as_object_mut(), more) {
        into.extend(more);
    }
    value
}

/// The same after these units.
pub fn after(unit: Value, after: &[&str]) -> Value {
    with(unit, json!({ "after": after }))
}

/// Writes a plan into the test's directory.
pub fn write(cluster: &Cluster, plan: &Value) -> PathBuf {
    cluster.write("plan.yaml", &plan.to_string())
}

/// Writes a plan and submits it.
pub fn submit(cluster: &Cluster, plan: &Value) -> String {
    cluster.submit(&write(cluster, plan))
}

/// The repository the plans of `on_repository` name.
pub fn user_repository(cluster: &Cluster) -> Repository {
    Repository::make(&cluster.path("user"), &[("README.md", "hello\n"), ("src/a.txt", "a\n")])
}

/// The state of every unit.
pub fn states(run: &Value) -> BTreeMap<String, String> {
    let units = run["units"].as_array().expect("a run has units");
    let word = |unit: &Value, key: &str| unit[key].as_str().unwrap_or_default().to_owned();
    units.iter().map(|unit| (word(unit, "id"), word(unit, "state"))).collect()
}

/// The same, from what a test expects.
pub fn expected(states: &[(&str, &str)]) -> BTreeMap<String, String> {
    states.iter().map(|(id, state)| ((*id).to_owned(), (*state).to_owned())).collect()
}

/// Every attempt of a run as `(id, epoch, worker)`.
pub fn attempts(run: &Value) -> Vec<(String, u64, String)> {
    let units = run["units"].as_array().expect("a run has units");
    let all = units.iter().flat_map(|unit| unit["attempts"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|attempt| {
        let epoch = attempt["epoch"].as_u64().expect("an attempt has an epoch");
        (text(&attempt["id"]), epoch, text(&attempt["worker"]))
    })
    .collect()
}

/// The states of one unit's attempts, oldest first.
pub fn attempt_states(run: &Value, unit: &str) -> Vec<String> {
    let attempts = ganger_harness::unit(run, unit)["attempts"].as_array();
    let states = attempts.into_iter().flatten().map(|attempt| attempt["state"].as_str());
    states.map(|state| state.unwrap_or_default().to_owned()).collect()
}

/// Whether a run is in this state.
pub fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |run| run["state"] == state
}

/// The same with these units in these states.
pub fn has(states: &[(&str, &str)]) -> impl Fn(&Value) -> bool {
    let wanted = expected(states);
    move |run| {
        let found = self::states(run);
        wanted.iter().all(|(unit, state)| found.get(unit) == Some(state))
    }
}

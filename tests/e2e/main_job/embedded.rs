//! Everything on one machine: `ganger up`, and `ganger run` with nothing to speak to.

use ganger_harness::{Cluster, RollCall, until};
use serde_json::Value;

use crate::binary;
use crate::plans::{command, plan, with, write};

fn workers(cluster: &Cluster) -> usize {
    let said = cluster.alone(&["get", "workers", "-o", "json"]);
    let json: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
    json["workers"]
        .as_array()
        .map_or(0, |workers| workers.iter().filter(|worker| worker["state"] == "live").count())
}

/// Waits for the address first: a command that finds none opens the store itself.
fn serves(cluster: &Cluster) {
    until("it says its address", || cluster.path("state/ganger/endpoint").is_file());
    until("two workers are attached", || workers(cluster) == 2);
}

fn quick(cluster: &Cluster) {
    let text = "coordinator: { limits: { beat: 100ms, lease: 1s, grace: 500ms } }\n";
    cluster.write("config/ganger/config.yaml", text);
}

fn the_run(cluster: &Cluster) -> Value {
    let list = cluster.alone(&["get", "runs", "-o", "json"]).expect(0).json();
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(1), "{list:#}");
    list["runs"][0].clone()
}

/// R057: `up` serves every command of this user without a flag, and leaves no process when it ends.
#[test]
fn up_serves_commands_without_a_flag_and_leaves_nothing() {
    let cluster = Cluster::new(binary());
    quick(&cluster);
    let mut calls = RollCall::open();
    let mut up = cluster.start_alone("up", &["up", "--listen", "127.0.0.1:0"]);
    serves(&cluster);
    let held =
        command("held", &format!("setsid {} & {}", calls.holds("child"), calls.holds("held")));
    let path = write(&cluster, &plan(&[held])).display().to_string();
    cluster.alone(&["submit", &path]).expect(0);
    calls.wait_for("held", 1);
    calls.wait_for("child", 1);
    // A second one on the same directory is told whose it is.
    let second = cluster.alone(&["up", "--listen", "127.0.0.1:0"]);
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains(&up.pid().to_string()), "{second:#?}");
    assert!(up.terminate().success(), "{}", up.log());
    calls.wait_until_gone("held");
    calls.wait_until_gone("child");
}

/// R170, P011: what a killed `up` was doing goes on with the next one, by new attempts; the workers it
/// had do not outlive it.
#[test]
fn the_next_up_goes_on_where_a_killed_one_was() {
    let cluster = Cluster::new(binary());
    quick(&cluster);
    let mut calls = RollCall::open();
    let mut up = cluster.start_alone("up", &["up", "--listen", "127.0.0.1:0"]);
    serves(&cluster);
    let path = write(&cluster, &plan(&[command("one", &calls.holds("one"))])).display().to_string();
    cluster.alone(&["submit", &path]).expect(0);
    calls.wait_for("one", 1);
    up.kill();
    until("its workers end with it", || calls.present().is_empty());
    let _again = cluster.start_alone("again", &["up", "--listen", "127.0.0.1:0"]);
    calls.wait_for("one", 2);
    calls.let_go("one");
    until("the run completes", || the_run(&cluster)["state"] == "completed");
    assert_eq!(calls.names().len(), 2);
}

/// R216: an embedded run that fails says so by its code and in one object; with nothing running after it,
/// its state directory still answers.
#[test]
fn an_embedded_run_that_fails_says_so_and_can_be_looked_at_later() {
    let cluster = Cluster::new(binary());
    let bad = with(
        command("bad", "echo no luck; exit 9"),
        serde_json::json!({ "retry": { "attempts": 1 } }),
    );
    let path = write(&cluster, &plan(&[bad])).display().to_string();
    let said = cluster.alone(&["run", &path, "-o", "json"]).expect(1);
    let run = said.json()["run"].clone();
    assert_eq!((&run["state"], &run["reason"]), (&"held".into(), &"unit_failed".into()));
    let id = run["id"].as_str().expect("a run has an id");
    let logs = cluster.alone(&["logs", id, "bad"]).expect(0);
    assert!(logs.stdout.contains("no luck"), "{logs:#?}");
    let later = cluster.alone(&["get", "run", id, "-o", "json"]).expect(0).json();
    assert_eq!(later["run"]["units"], run["units"]);
    let verified = cluster.alone(&["journal", "verify"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

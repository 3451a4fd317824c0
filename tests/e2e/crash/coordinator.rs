//! The coordinator is killed and started again on its directory.

use ganger_harness::{Cluster, RollCall, unit, until};
use serde_json::{Value, json};

use super::verify_journal;
use crate::binary;
use crate::plans::{
    after, attempt_states, attempts, command, expected, has, is, on_repository, plan, states,
    submit, user_repository, with, writes_after,
};

fn restart(cluster: &mut Cluster, workers: usize) {
    cluster.coordinator().kill();
    cluster.start_coordinator();
    cluster.wait_for_workers(workers);
}

/// R170, R063, P006: running attempts re-attach under their epoch, none is started twice, the run
/// completes on the user's branch, and the journal verifies.
#[test]
fn a_killed_coordinator_is_no_event_for_what_runs() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let mut units = ["a", "b", "c"]
        .map(|id| writes_after(id, &format!("out/{id}.txt"), &calls.holds(id)))
        .to_vec();
    units.push(after(writes_after("d", "out/d.txt", &calls.says("d")), &["a", "b", "c"]));
    let id = submit(&cluster, &on_repository(&units));
    for name in ["a", "b", "c"] {
        calls.wait_for(name, 1);
    }
    let before = attempts(&cluster.run(&id));
    assert_eq!(before.len(), 3);
    restart(&mut cluster, 2);
    assert_eq!(attempts(&cluster.run(&id)), before);
    for name in ["a", "b", "c"] {
        calls.let_go(name);
    }
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(calls.sorted(), ["a", "b", "c", "d"]);
    let after = attempts(&run);
    assert!(before.iter().all(|attempt| after.contains(attempt)), "{before:?} {after:?}");
    assert_eq!(after.len(), 4, "{after:?}");
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.files(branch).len(), 6);
    verify_journal(&mut cluster);
}

/// R165, R170, P017: at every turn a run takes, seen from outside, the coordinator may die; the
/// run takes up where it was, once.
#[test]
fn a_coordinator_killed_at_every_turn_ends_with_the_same_branch() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let held_check = json!([{ "name": "held", "run": calls.holds("check-of-a") }]);
    let a = with(writes_after("a", "a.txt", &calls.holds("a")), json!({ "checks": held_check }));
    let units = vec![
        a,
        writes_after("b", "b.txt", &calls.holds("b")),
        after(writes_after("c", "c.txt", &calls.holds("c")), &["a", "b"]),
    ];
    let id = submit(&cluster, &on_repository(&units));
    // Submitted and perhaps not even offered.
    restart(&mut cluster, 2);
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    // Two run.
    restart(&mut cluster, 2);
    calls.let_go("a");
    calls.wait_for("check-of-a", 1);
    // A check runs.
    restart(&mut cluster, 2);
    calls.let_go("check-of-a");
    cluster.wait_run(&id, "a is accepted", has(&[("a", "accepted")]));
    // Accepted; its commit may be anywhere between intended and made.
    restart(&mut cluster, 2);
    calls.let_go("b");
    until("b ends", || !calls.present().contains(&"b".to_owned()));
    // Delivered, perhaps not yet reported.
    restart(&mut cluster, 2);
    calls.wait_for("c", 1);
    calls.let_go("c");
    calls.wait_for("check-of-a", 2);
    // The final tree is measured.
    restart(&mut cluster, 2);
    calls.let_go("check-of-a");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    restart(&mut cluster, 2);
    assert_eq!(cluster.run(&id), run, "a finished run reads the same after a restart");
    assert_eq!(attempts(&run).len(), 3, "{run:#}");
    let started: Vec<String> =
        calls.sorted().into_iter().filter(|name| name != "check-of-a").collect();
    assert_eq!(started, ["a", "b", "c"]);
    let base = user.git(&["rev-parse", "main"]);
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    let commits = user.git(&["rev-list", "--count", &format!("{base}..{branch}")]);
    assert_eq!(commits, "3", "one commit for each unit");
    verify_journal(&mut cluster);
}

/// P007, P011: after a restart without any worker every lease ends, nothing stays running, and a worker
/// that comes back later does the work.
#[test]
fn without_workers_nothing_stays_running() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 3)]);
    let mut calls = RollCall::open();
    let units = ["a", "b", "c"].map(|id| command(id, &calls.holds(id))).to_vec();
    let id = submit(&cluster, &plan(&units));
    for name in ["a", "b", "c"] {
        calls.wait_for(name, 1);
    }
    cluster.coordinator().kill();
    cluster.worker("east").kill();
    cluster.start_coordinator();
    let run = cluster.wait_run(&id, "every lease ends", |run| {
        ["a", "b", "c"].iter().all(|id| attempt_states(run, id) == ["lost"])
    });
    assert!(!states(&run).values().any(|state| state == "running"), "{run:#}");
    cluster.start_worker("east", 3, &[]);
    for name in ["a", "b", "c"] {
        calls.wait_for(name, 2);
        calls.let_go(name);
    }
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert!(["a", "b", "c"].iter().all(|id| attempt_states(&run, id) == ["lost", "delivered"]));
}

/// P013, R166: after a kill, resume, cancel and stop are answered, and again the same.
#[test]
fn commands_after_a_kill_are_answered_and_may_be_repeated() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let mut calls = RollCall::open();
    let units = ["a", "b"].map(|id| command(id, &calls.holds(id))).to_vec();
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    cluster.coordinator().kill();
    cluster.start_coordinator();
    let before = attempts(&cluster.run(&id));
    for _ in 0..2 {
        cluster.ganger(&["resume", &id]).expect(0);
    }
    assert_eq!(attempts(&cluster.run(&id)), before, "a resume of a healthy run resets nothing");
    cluster.wait_for_workers(1);
    for _ in 0..2 {
        cluster.ganger(&["cancel", &id, "a", "-m", "not needed", "--key", "c1"]).expect(0);
    }
    let cancelled = [("a", "cancelled"), ("b", "running")];
    cluster.wait_run(&id, "a is cancelled", has(&cancelled));
    calls.wait_until_gone("a");
    for _ in 0..2 {
        cluster.ganger(&["stop", &id, "-m", "enough", "--key", "s1"]).expect(0);
    }
    let run = cluster.wait_run(&id, "the run is aborted", is("aborted"));
    assert_eq!(states(&run), expected(&[("a", "cancelled"), ("b", "skipped")]));
    calls.wait_until_gone("b");
}

/// P051: the list of runs, finished ones too, is the same after a restart.
#[test]
fn the_list_of_runs_is_the_same_after_a_restart() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let mut calls = RollCall::open();
    let done = submit(&cluster, &plan(&[command("one", "true")]));
    cluster.wait_run(&done, "it completes", is("completed"));
    let held = submit(&cluster, &plan(&[command("one", "exit 1")]));
    cluster.wait_run(&held, "it is held", is("held"));
    let live = submit(&cluster, &plan(&[command("one", &calls.holds("one"))]));
    calls.wait_for("one", 1);
    cluster.wait_run(&live, "it runs", |run| attempt_states(run, "one") == ["running"]);
    let list = |cluster: &Cluster| cluster.ganger(&["get", "runs", "-o", "json"]).expect(0).json();
    let before = list(&cluster);
    assert_eq!(before["runs"].as_array().map(Vec::len), Some(3), "{before:#}");
    let whole = |cluster: &Cluster| [&done, &held].map(|id| cluster.run(id));
    let finished: [Value; 2] = whole(&cluster);
    cluster.coordinator().kill();
    cluster.start_coordinator();
    assert_eq!(list(&cluster), before);
    assert_eq!(whole(&cluster), finished);
}

/// P018: what was finished while no coordinator was there is not lost to a cancel that comes first.
#[test]
fn a_result_that_arrives_with_its_cancel_is_kept() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let id =
        submit(&cluster, &on_repository(&[writes_after("one", "one.txt", &calls.holds("one"))]));
    calls.wait_for("one", 1);
    cluster.wait_run(&id, "it runs", has(&[("one", "running")]));
    cluster.coordinator().kill();
    calls.let_go("one");
    calls.wait_until_gone("one");
    cluster.start_coordinator();
    let cancel = cluster.ganger(&["cancel", &id, "one", "-m", "too late?"]);
    let run = cluster.wait_run(&id, "it comes to rest", |run| {
        let unit = unit(run, "one");
        unit["state"] == "cancelled" || run["state"] == "completed"
    });
    let one = unit(&run, "one");
    match one["state"].as_str() {
        Some("accepted") => {}
        Some("cancelled") => {
            assert_eq!(cancel.code, 0, "{cancel:#?}");
            let kept = |run: &Value| {
                unit(run, "one")["attempts"][0]["delivery"]["tree"]["patch"].is_object()
            };
            cluster.wait_run(&id, "the late delivery is kept", kept);
        }
        other => panic!("{other:?}: {one:#}"),
    }
    assert_eq!(attempts(&run).len(), 1);
}

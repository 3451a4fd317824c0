//! A worker is killed, alone or with its coordinator, and perhaps comes back.

use ganger_harness::{Cluster, RollCall, unit, until};
use serde_json::Value;

use super::verify_journal;
use crate::binary;
use crate::plans::{
    attempt_states, attempts, command, has, is, on_repository, plan, submit, user_repository,
    writes_after,
};

fn worker_id(cluster: &Cluster, name: &str) -> String {
    let said = cluster.ganger(&["get", "workers", "-o", "json"]).expect(0).json();
    let workers = said["workers"].as_array().cloned().unwrap_or_default();
    let found = workers.iter().find(|worker| worker["name"] == name);
    found.and_then(|worker| worker["id"].as_str()).expect("the worker is known").to_owned()
}

/// The unit's attempts as `(state, epoch, worker)`.
fn history(run: &Value, id: &str) -> Vec<(String, u64, String)> {
    let attempts = unit(run, id)["attempts"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |a: &Value| (text(&a["state"]), a["epoch"].as_u64().unwrap_or(0), text(&a["worker"]));
    attempts.iter().map(one).collect()
}

/// R170, R083: a dead worker's attempts are lost when their leases end, and their units run elsewhere as
/// new attempts under a higher epoch; what it ran is not left behind.
#[test]
fn units_of_a_dead_worker_run_elsewhere() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let units = ["a", "b"].map(|id| writes_after(id, &format!("{id}.txt"), &calls.holds(id)));
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    let (east, west) = (worker_id(&cluster, "east"), worker_id(&cluster, "west"));
    let run = cluster.wait_run(&id, "both run", has(&[("a", "running"), ("b", "running")]));
    let on_west = |id: &&str| history(&run, id)[0].2 == west;
    let dead = ["a", "b"].into_iter().find(on_west).expect("each worker has one slot");
    let alive = if dead == "a" { "b" } else { "a" };
    cluster.worker("west").kill();
    calls.wait_until_gone(dead);
    calls.let_go(alive);
    calls.wait_for(dead, 2);
    let run = cluster.run(&id);
    let lost = ("lost".to_owned(), 1, west);
    let again = ("running".to_owned(), 2, east.clone());
    cluster.wait_run(&id, "it runs elsewhere", |run| {
        history(run, dead) == [lost.clone(), again.clone()]
    });
    assert_eq!(unit(&run, dead)["losses"], 1);
    calls.let_go(dead);
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(history(&run, alive), [("delivered".to_owned(), 1, east)]);
    assert_eq!(calls.names().len(), 3);
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.git(&["show", &format!("{branch}:{dead}.txt")]), dead);
    verify_journal(&mut cluster);
}

/// R057, P002, P012: a worker that is started again on its directory says what it no longer runs; its
/// attempts end at once, nothing of them survives, and the units run again.
#[test]
fn a_restarted_worker_owns_up_to_what_it_lost() {
    let mut cluster = Cluster::new(binary());
    // The lease would last past the end of the test: only the worker's own word can end it.
    cluster.coordinator_arguments =
        ["--beat", "100ms", "--lease", "10m", "--grace", "500ms"].map(str::to_owned).to_vec();
    cluster.start_coordinator();
    cluster.start_worker("east", 2, &[]);
    cluster.wait_for_workers(1);
    let mut calls = RollCall::open();
    let units = ["a", "b"].map(|id| {
        let run = format!("setsid {} & {}", calls.holds(&format!("{id}-child")), calls.holds(id));
        command(id, &run)
    });
    let id = submit(&cluster, &plan(&units));
    for name in ["a", "b", "a-child", "b-child"] {
        calls.wait_for(name, 1);
    }
    cluster.worker("east").kill();
    cluster.start_worker("east", 2, &[]);
    for name in ["a", "b", "a-child", "b-child"] {
        calls.wait_for(name, 2);
    }
    let run = cluster.wait_run(&id, "both run again", has(&[("a", "running"), ("b", "running")]));
    for id in ["a", "b"] {
        let first = &unit(&run, id)["attempts"][0];
        let restarted = first["failure"]["class"] == "worker_restarted";
        assert!(first["state"] == "lost" || restarted, "{first:#}");
        assert_eq!(unit(&run, id)["attempts"][1]["epoch"], 2);
    }
    until("only the new ones are left", || calls.present() == ["a", "a-child", "b", "b-child"]);
    calls.let_go("a");
    calls.let_go("b");
    cluster.wait_run(&id, "the run completes", is("completed"));
    until("nothing is left", || calls.present().is_empty());
}

/// P012, R170: both die at once and come back: the work is done, by new attempts, once.
#[test]
fn both_killed_and_started_again_do_the_work_once() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let units = ["a", "b"].map(|id| writes_after(id, &format!("{id}.txt"), &calls.holds(id)));
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    cluster.coordinator().kill();
    cluster.worker("east").kill();
    cluster.worker("west").kill();
    cluster.start_coordinator();
    cluster.start_worker("east", 1, &[]);
    cluster.start_worker("west", 1, &[]);
    for name in ["a", "b"] {
        calls.wait_for(name, 2);
        until("one of each is left", || {
            calls.present().iter().filter(|present| *present == name).count() == 1
        });
    }
    calls.let_go("a");
    calls.let_go("b");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(attempts(&run).len(), 4, "{run:#}");
    for id in ["a", "b"] {
        assert_eq!(attempt_states(&run, id).last().map(String::as_str), Some("delivered"));
    }
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.git(&["rev-list", "--count", &format!("main..{branch}")]), "2");
    verify_journal(&mut cluster);
}

/// R083, P028: a check whose worker dies is measured again elsewhere; the delivery is none the worse.
#[test]
fn a_check_of_a_dead_worker_is_measured_again() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let checks = serde_json::json!([{ "name": "held", "run": calls.holds("check") }]);
    let one = crate::plans::with(
        writes_after("one", "one.txt", "true"),
        serde_json::json!({ "checks": checks }),
    );
    let id = submit(&cluster, &on_repository(&[one]));
    calls.wait_for("check", 1);
    let run = cluster.run(&id);
    let checker = unit(&run, "one")["attempts"][0]["checks"][0]["worker"].clone();
    let dead = if checker == worker_id(&cluster, "east").as_str() { "east" } else { "west" };
    cluster.worker(dead).kill();
    calls.wait_for("check", 2);
    calls.let_go("check");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let attempt = &unit(&run, "one")["attempts"][0];
    assert_eq!(attempt_states(&run, "one"), ["delivered"]);
    assert_eq!(attempt["checks"][0]["id"], "one:held/2@attempt:one/main/1");
    assert_eq!(attempt["checks"][0]["place"], "other_tree", "only the author's worker is left");
    assert_eq!(user.branches(), ["main"]);
}

/// R057: a worker that is asked to end hands its attempts back before it does; that is no failure of
/// theirs.
#[test]
fn a_worker_that_is_asked_to_end_hands_its_work_back() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let one = command("one", &calls.holds("one"));
    let id = submit(&cluster, &plan(&[one]));
    calls.wait_for("one", 1);
    let status = cluster.worker("east").terminate();
    assert!(status.success(), "{status}: {}", cluster.worker("east").log());
    calls.wait_until_gone("one");
    cluster.start_worker("west", 1, &[]);
    calls.wait_for("one", 2);
    calls.let_go("one");
    cluster.wait_run(&id, "the run completes", is("completed"));
}

/// R057: a worker that is asked to end is not offered again what it hands back, however long its beats
/// are apart: one ending is one loss.
#[test]
fn a_worker_that_ends_is_offered_nothing_more() {
    let mut cluster = Cluster::new(binary());
    let slow = ["--beat", "5s", "--lease", "30s", "--grace", "500ms"];
    cluster.coordinator_arguments = slow.iter().map(|&word| word.to_owned()).collect();
    cluster.start_coordinator();
    cluster.start_worker("east", 2, &[]);
    cluster.wait_for_workers(1);
    let mut calls = RollCall::open();
    let units = ["one", "two"].map(|id| command(id, &calls.holds(id))).to_vec();
    let id = submit(&cluster, &plan(&units));
    for name in ["one", "two"] {
        calls.wait_for(name, 1);
    }
    let status = cluster.worker("east").terminate();
    assert!(status.success(), "{status}: {}", cluster.worker("east").log());
    cluster.start_worker("east", 2, &[]);
    for name in ["one", "two"] {
        calls.wait_for(name, 2);
        calls.let_go(name);
    }
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    for name in ["one", "two"] {
        assert_eq!(unit(&run, name)["losses"], 1, "{run:#}");
        assert_eq!(attempt_states(&run, name).len(), 2, "{run:#}");
    }
}

//! Cancel, stop, pause and resume.

use ganger_harness::{Cluster, RollCall, unit};

use crate::binary;
use crate::plans::{
    after, attempt_states, command, expected, has, is, on_repository, plan, states, submit,
    user_repository, writes_after,
};

/// P050, R169: a cancelled unit takes with it what depends on it, and nothing else.
#[test]
fn a_cancel_reaches_what_depends_on_the_unit_and_no_more() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let mut calls = RollCall::open();
    let units = vec![
        command("a", "true"),
        after(command("b", &calls.holds("b")), &["a"]),
        after(command("c", "true"), &["b"]),
        command("d", &calls.holds("d")),
    ];
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("b", 1);
    calls.wait_for("d", 1);
    cluster.ganger(&["cancel", &id, "b", "-m", "not needed"]).expect(0);
    let ends = [("a", "accepted"), ("b", "cancelled"), ("c", "cancelled"), ("d", "running")];
    cluster.wait_run(&id, "b and c are cancelled", has(&ends));
    calls.wait_until_gone("b");
    assert_eq!(calls.present(), ["d"]);
    calls.let_go("d");
    let run = cluster.wait_run(&id, "d is accepted", has(&[("d", "accepted")]));
    assert_eq!(attempt_states(&run, "b"), ["cancelled"]);
    assert!(unit(&run, "b")["reason"].to_string().contains("not needed"), "{run:#}");
    assert_eq!(calls.sorted(), ["b", "d"]);
    // A cancel that comes too late says so, and changes nothing.
    let said = cluster.ganger(&["cancel", &id, "d", "-m", "too late"]).expect(3);
    assert!(said.stderr.contains("accepted"), "{said:#?}");
}

/// R172: a paused run starts nothing, what runs runs on; a resume goes on where it was.
#[test]
fn a_paused_run_starts_nothing_and_stops_nothing() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let mut calls = RollCall::open();
    let units =
        vec![command("a", &calls.holds("a")), after(command("b", &calls.says("b")), &["a"])];
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("a", 1);
    cluster.ganger(&["pause", &id, "-m", "lunch"]).expect(0);
    let run = cluster.run(&id);
    assert_eq!((&run["state"], &run["reason"]), (&"paused".into(), &"lunch".into()), "{run:#}");
    calls.let_go("a");
    cluster.wait_run(&id, "a ends", |run| attempt_states(run, "a") == ["delivered"]);
    // Another run passes it by on the same worker: there was room, and time, for `b`.
    let other = submit(&cluster, &plan(&[command("other", "true")]));
    cluster.wait_run(&other, "the other run completes", is("completed"));
    assert_eq!(calls.sorted(), ["a"]);
    let run = cluster.run(&id);
    assert_eq!(run["state"], "paused");
    assert_eq!(attempt_states(&run, "b"), Vec::<String>::new());
    cluster.ganger(&["pause", &id, "-m", "lunch"]).expect(0);
    cluster.ganger(&["resume", &id]).expect(0);
    cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(calls.sorted(), ["a", "b"]);
}

/// R057: a stop ends everything that runs, skips the rest and aborts the run; it may be asked for twice.
#[test]
fn a_stop_ends_everything_and_aborts_the_run() {
    for now in [false, true] {
        let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
        let mut calls = RollCall::open();
        let deaf = |id: &str| {
            let run =
                format!("trap '' INT TERM; setsid {} & {}", calls.holds("child"), calls.holds(id));
            command(id, &run)
        };
        let units = vec![deaf("a"), deaf("b"), after(command("c", "true"), &["a"])];
        let id = submit(&cluster, &plan(&units));
        calls.wait_for("a", 1);
        calls.wait_for("b", 1);
        calls.wait_for("child", 2);
        let stop: &[&str] = if now { &["--now"] } else { &[] };
        let words = [&["stop", &id, "-m", "enough"], stop].concat();
        cluster.ganger(&words).expect(0);
        cluster.ganger(&[&words[..], &["--key", "again"]].concat());
        let run = cluster.wait_run(&id, "the run is aborted", is("aborted"));
        let ends = [("a", "skipped"), ("b", "skipped"), ("c", "skipped")];
        assert_eq!(states(&run), expected(&ends));
        assert_eq!(attempt_states(&run, "a"), ["cancelled"]);
        for name in ["a", "b", "child"] {
            calls.wait_until_gone(name);
        }
        cluster.ganger(&["wait", &id]).expect(1);
        assert!(cluster.ganger(&["cancel", &id, "c", "-m", "x"]).code == 3);
    }
}

/// R172: a pause starts no check and no commit either; both follow the resume.
#[test]
fn a_paused_run_measures_and_commits_nothing() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let id = submit(&cluster, &on_repository(&[writes_after("a", "a.txt", &calls.holds("a"))]));
    calls.wait_for("a", 1);
    cluster.ganger(&["pause", &id, "-m", "lunch"]).expect(0);
    calls.let_go("a");
    cluster.wait_run(&id, "a delivers", has(&[("a", "delivered")]));
    let other = submit(&cluster, &plan(&[command("other", "true")]));
    cluster.wait_run(&other, "the other run completes", is("completed"));
    let run = cluster.run(&id);
    assert_eq!(unit(&run, "a")["attempts"][0]["checks"][0]["state"], "wanted", "{run:#}");
    assert_eq!(run["tip"], run["base"]);
    cluster.ganger(&["resume", &id]).expect(0);
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(run["tip"], unit(&run, "a")["commit"]);
}

/// A cordoned worker gets nothing new and keeps what it has; uncordoned, it works again; a drained one
/// is shown as such.
#[test]
fn a_cordoned_worker_gets_nothing_new() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let mut calls = RollCall::open();
    let units = vec![
        command("first", &calls.holds("first")),
        after(command("next", &calls.says("next")), &["first"]),
    ];
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("first", 1);
    cluster.ganger(&["workers", "cordon", "east", "-m", "maintenance"]).expect(0);
    calls.let_go("first");
    cluster.wait_run(&id, "it is waited for", has(&[("first", "accepted"), ("next", "ready")]));
    let said = cluster.ganger(&["explain", &id, "next"]).expect(0);
    assert!(said.stdout.contains("no worker is attached and open for work"), "{said:#?}");
    cluster.ganger(&["workers", "uncordon", "east"]).expect(0);
    cluster.wait_run(&id, "the run completes", is("completed"));
    cluster.ganger(&["workers", "drain", "east"]).expect(0);
    let said = cluster.ganger(&["get", "workers", "-o", "json"]).expect(0).json();
    assert_eq!(said["workers"][0]["state"], "draining", "{said:#}");
    assert!(cluster.worker("east").terminate().success(), "{}", cluster.worker("east").log());
}

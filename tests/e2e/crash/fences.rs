//! Fences between an old attempt and the one that took its place, cut connections, and claims and
//! journals that must outlive their coordinator.

use std::path::Path;

use ganger_harness::proxy::Proxy;
use ganger_harness::{Cluster, RollCall, unit};
use nix::sys::signal::Signal;
use serde_json::json;

use super::verify_journal;
use crate::binary;
use crate::plans::{
    attempt_states, attempts, command, has, is, on_repository, plan, submit, user_repository, with,
    writes_after,
};

/// P032, P033, P038, R063: a worker that slept past its lease and takes the unit again is fenced from itself: the
/// old attempt stays lost, whatever it reports, and exactly one delivery lands.
#[test]
fn an_attempt_that_slept_past_its_lease_stays_lost() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let id =
        submit(&cluster, &on_repository(&[writes_after("one", "one.txt", &calls.holds("one"))]));
    calls.wait_for("one", 1);
    cluster.wait_run(&id, "it runs", has(&[("one", "running")]));
    cluster.worker("east").signal(Signal::SIGSTOP);
    // Its program was not asleep, and ends well behind the worker's back.
    cluster.wait_run(&id, "the lease ends", |run| attempt_states(run, "one") == ["lost"]);
    cluster.worker("east").signal(Signal::SIGCONT);
    calls.wait_for("one", 2);
    calls.let_go("one");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(attempt_states(&run, "one"), ["lost", "delivered"]);
    let epochs: Vec<u64> = attempts(&run).into_iter().map(|(_, epoch, _)| epoch).collect();
    assert_eq!(epochs, [1, 2]);
    assert_eq!(unit(&run, "one")["losses"], 1);
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.git(&["show", &format!("{branch}:one.txt")]), "one");
    assert_eq!(calls.names().len(), 2);
}

/// P041, P118: a connection that is cut and made again is nothing to an attempt: no second process, the same
/// epoch, and what it reported meanwhile arrives.
#[test]
fn a_cut_connection_starts_nothing_twice() {
    let mut cluster = Cluster::new(binary());
    cluster.coordinator_arguments =
        ["--beat", "100ms", "--lease", "20s", "--grace", "500ms"].map(str::to_owned).to_vec();
    cluster.start_coordinator();
    let proxy = Proxy::to(&cluster.server());
    cluster.start_worker_by(&proxy.url(), "east", 2, &[]);
    cluster.wait_for_workers(1);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let units = ["a", "b"].map(|id| writes_after(id, &format!("{id}.txt"), &calls.holds(id)));
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    let before = attempts(&cluster.wait_run(&id, "both run", has(&[("a", "running")])));
    proxy.cut();
    // One ends while nobody can be told.
    calls.let_go("a");
    calls.wait_until_gone("a");
    proxy.mend();
    cluster.wait_run(&id, "its result arrives", has(&[("a", "accepted")]));
    proxy.cut();
    proxy.mend();
    calls.let_go("b");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(attempts(&run), before);
    assert_eq!(calls.sorted(), ["a", "b"]);
}

/// R046: units of two runs whose files overlap never run at once, also when the coordinator is killed
/// while one holds the claim.
#[test]
fn claims_of_other_runs_are_kept_across_a_kill() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let wide = writes_after("wide", "src/wide.txt", &calls.holds("wide"));
    let wide = with(wide, json!({ "files": ["src/**"] }));
    let first = submit(&cluster, &on_repository(&[wide]));
    calls.wait_for("wide", 1);
    let narrow = writes_after("narrow", "src/a.txt", &calls.says("narrow"));
    let apart = writes_after("apart", "docs/x.txt", "true");
    let second = submit(&cluster, &on_repository(&[narrow, apart]));
    cluster.wait_run(&second, "what does not overlap runs", has(&[("apart", "accepted")]));
    cluster.coordinator().kill();
    cluster.start_coordinator();
    cluster.wait_for_workers(2);
    // There is room: another run's unit passes by.
    let third = submit(&cluster, &on_repository(&[writes_after("other", "lib/y.txt", "true")]));
    cluster.wait_run(&third, "another run completes", is("completed"));
    assert_eq!(calls.names(), ["wide"]);
    let said = cluster.ganger(&["explain", &second, "narrow"]).expect(0);
    assert!(said.stdout.contains(&format!("files claimed by {first}/wide")), "{said:#?}");
    calls.let_go("wide");
    cluster.wait_run(&second, "the second run completes", is("completed"));
    cluster.wait_run(&first, "the first run completes", is("completed"));
    assert_eq!(calls.names(), ["wide", "narrow"]);
}

/// P110: a coordinator put back to an older copy of its directory is found out by what its workers have
/// seen, and serves only when the loss is accepted by name.
#[test]
fn a_coordinator_behind_its_workers_does_not_serve() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let before = submit(&cluster, &plan(&[command("one", "true")]));
    cluster.wait_run(&before, "it completes", is("completed"));
    cluster.coordinator().terminate();
    copy(&cluster.data(), &cluster.path("copy"));
    cluster.start_coordinator();
    cluster.wait_for_workers(1);
    let lost = submit(&cluster, &plan(&[command("two", "true")]));
    cluster.wait_run(&lost, "it completes", is("completed"));
    cluster.coordinator().terminate();
    std::fs::remove_dir_all(cluster.data()).expect("it is ours");
    copy(&cluster.path("copy"), &cluster.data());
    cluster.start_coordinator();
    let status = cluster.coordinator().wait();
    assert!(!status.success());
    let log = cluster.coordinator().log();
    assert!(log.contains("journal_behind") && log.contains("--accept-loss"), "{log}");
    cluster.coordinator_arguments.push("--accept-loss".to_owned());
    cluster.start_coordinator();
    cluster.wait_for_workers(1);
    let after = submit(&cluster, &plan(&[command("three", "true")]));
    cluster.wait_run(&after, "it goes on", is("completed"));
    cluster.ganger(&["get", "run", &before]).expect(0);
    cluster.ganger(&["get", "run", &lost]).expect(4);
    verify_journal(&mut cluster);
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("cp is installed").success());
}

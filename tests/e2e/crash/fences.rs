//! Fences between an old attempt and the one that took its place, and cut connections.

use ganger_harness::proxy::Proxy;
use ganger_harness::{Cluster, RollCall, unit};
use nix::sys::signal::Signal;

use crate::binary;
use crate::plans::{
    attempt_states, attempts, has, is, on_repository, submit, user_repository, writes_after,
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

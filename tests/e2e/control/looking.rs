//! Watching, explaining, logs and patches: nobody who looks changes anything.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use ganger_harness::{Cluster, RollCall, Said, unit, until};
use serde_json::{Value, json};

use crate::binary;
use crate::plans::{
    after, command, is, on_repository, plan, submit, user_repository, with, write, writes,
};

/// R216: a follower whose pipe closes, one that is killed and one that never reads neither stop nor slow
/// a run.
#[test]
fn followers_come_and_go_without_the_run_noticing() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let units =
        vec![command("a", &calls.holds("a")), after(command("b", &calls.holds("b")), &["a"])];
    let path = write(&cluster, &plan(&units)).display().to_string();
    // It submits, and is killed while it follows.
    let mut killed = cluster.start_client("killed", &["run", &path]);
    calls.wait_for("a", 1);
    killed.kill();
    let list = cluster.ganger(&["get", "runs", "-o", "json"]).expect(0).json();
    let id = list["runs"][0]["id"].as_str().expect("the run is there").to_owned();
    // One is interrupted: it detaches.
    let mut interrupted = cluster.start_client("interrupted", &["watch", &id]);
    until("it follows", || interrupted.log().contains("submitted"));
    interrupted.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(interrupted.wait().code(), Some(130), "{}", interrupted.log());
    // One reads a line and closes the pipe; one has a pipe that nobody reads.
    let mut closed =
        cluster.client(&["watch", &id]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut reader = BufReader::new(closed.stdout.take().expect("it is piped"));
    reader.read_line(&mut line).expect("it prints what happened so far");
    drop(reader);
    let mut deaf =
        cluster.client(&["watch", &id]).stdout(Stdio::piped()).spawn().expect("it starts");
    calls.let_go("a");
    calls.wait_for("b", 1);
    calls.let_go("b");
    cluster.wait_run(&id, "the run completes", is("completed"));
    let status = closed.wait().expect("a child can be waited for");
    assert_eq!(status.code(), Some(0), "a closed pipe is no failure");
    let output = deaf.stdout.take().map(std::io::read_to_string).expect("it is piped");
    assert!(output.expect("it is text").contains("completed"));
    assert_eq!(deaf.wait().expect("a child can be waited for").code(), Some(0));
    assert_eq!(calls.sorted(), ["a", "b"]);
}

/// R216: a follower outlives the coordinator's restart and sees every event once, in order.
#[test]
fn a_follower_sees_every_event_once_across_a_restart() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let id = submit(&cluster, &plan(&[command("a", &calls.holds("a"))]));
    calls.wait_for("a", 1);
    let follower = cluster
        .client(&["watch", &id, "-o", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    cluster.coordinator().kill();
    cluster.start_coordinator();
    calls.let_go("a");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let said = Said::from(follower.wait_with_output().expect("it ends with the run")).expect(0);
    let sequences: Vec<u64> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line is an event"))
        .filter_map(|event| event["sequence"].as_u64())
        .collect();
    let last = run["sequence"].as_u64().expect("a run has a sequence");
    assert_eq!(sequences, (1..=last).collect::<Vec<u64>>());
}

/// `explain` names what a unit waits for: a dependency, files, or a worker that is not there.
#[test]
fn explain_names_what_a_unit_waits_for() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let gpu = json!({ "requires": { "labels": { "gpu": "a100" } } });
    let units = vec![
        command("a", &calls.holds("a")),
        after(command("b", "true"), &["a"]),
        with(command("special", "true"), gpu),
    ];
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("a", 1);
    let explain = |unit: &str| cluster.ganger(&["explain", &id, unit]).expect(0).stdout;
    assert!(explain("special").contains("gpu=a100"), "{}", explain("special"));
    assert!(explain("b").contains('a'), "{}", explain("b"));
    let said = cluster.ganger(&["explain", &id, "-o", "json"]).expect(0);
    assert!(said.stdout.contains("no worker offers label gpu=a100"), "{said:#?}");
}

/// R180, R194: logs show what an attempt and its checks printed, diff what it changed.
#[test]
fn logs_and_diff_show_what_was_done() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    let checks = json!([{ "name": "there", "run": "echo it is there; test -f one.txt" }]);
    let run = "echo line one; echo line two >&2; echo one > one.txt; echo more >> src/a.txt";
    let keys = json!({ "files": ["one.txt", "src/**"], "checks": checks });
    let id =
        submit(&cluster, &on_repository(&[with(command("one", run), keys), writes("two", "2")]));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let logs = cluster.ganger(&["logs", &id, "one"]).expect(0).stdout;
    assert!(logs.contains("line one") && logs.contains("line two"), "{logs}");
    let of_check = cluster.ganger(&["logs", &id, "one", "--check", "there"]).expect(0).stdout;
    assert!(of_check.contains("it is there"), "{of_check}");
    let diff = cluster.ganger(&["diff", &id, "one"]).expect(0).stdout;
    assert!(diff.contains("+++ b/one.txt") && diff.contains("+more"), "{diff}");
    assert!(!diff.contains("two"), "{diff}");
    let excerpt = &unit(&run, "one")["attempts"][0]["delivery"]["excerpt"];
    assert!(excerpt.as_str().is_some_and(|text| text.contains("line")), "{excerpt}");
}

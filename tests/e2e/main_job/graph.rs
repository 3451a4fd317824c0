//! What the graph and the claims on files let run, and when.

use ganger_harness::{Cluster, RollCall, unit, until};
use serde_json::{Value, json};

use crate::binary;
use crate::plans::{
    after, attempt_states, command, expected, has, is, on_repository, plan, states, submit,
    user_repository, with, writes_after,
};

fn time(attempt: &Value, key: &str) -> String {
    attempt[key].as_str().unwrap_or_else(|| panic!("no {key} in {attempt:#}")).to_owned()
}

/// R046: units whose files overlap never run at once, though there is room; others do.
#[test]
fn units_whose_files_overlap_take_turns() {
    let cluster = Cluster::with_workers(binary(), &[("east", 3), ("west", 3)]);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let wide = |id: &str, files: &str, file: &str| {
        with(writes_after(id, file, &calls.holds(id)), json!({ "files": [files] }))
    };
    let units = vec![
        wide("first", "src/**", "src/first.txt"),
        wide("second", "src/*.txt", "src/second.txt"),
        wide("apart", "docs/**", "docs/apart.txt"),
    ];
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("apart", 1);
    until("one of both runs", || calls.count("first") + calls.count("second") == 1);
    let said = cluster.ganger(&["explain", &id]).expect(0);
    assert!(said.stdout.contains("files claimed by"), "{said:#?}");
    calls.let_go("apart");
    let (now, later) =
        if calls.count("first") > 0 { ("first", "second") } else { ("second", "first") };
    assert_eq!(calls.count(later), 0);
    calls.let_go(now);
    calls.wait_for(later, 1);
    calls.let_go(later);
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let of = |id: &str| unit(&run, id)["attempts"][0].clone();
    let (first, second) = (of("first"), of("second"));
    let apart = time(&first, "ended_at") <= time(&second, "leased_at")
        || time(&second, "ended_at") <= time(&first, "leased_at");
    assert!(apart, "both ran at once: {first:#} {second:#}");
    assert_eq!(calls.sorted(), ["apart", "first", "second"]);
}

/// P066: what no file shows is found on the tree that would be committed, and holds the unit.
#[test]
fn a_clash_that_git_does_not_see_is_found_before_the_branch_moves() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let user = user_repository(&cluster);
    let mut calls = RollCall::open();
    let alone = json!([{ "name": "alone", "run": "test -f b.txt && ! test -f a.txt" }]);
    let units = vec![
        writes_after("a", "a.txt", &calls.holds("a")),
        with(writes_after("b", "b.txt", &calls.holds("b")), json!({ "checks": alone })),
    ];
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("a", 1);
    calls.wait_for("b", 1);
    calls.let_go("a");
    cluster.wait_run(&id, "a is integrated", |run| unit(run, "a")["integration"] == "done");
    calls.let_go("b");
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    let b = unit(&run, "b");
    assert_eq!((&b["state"], &b["integration"]), (&json!("accepted"), &json!("conflict")), "{b:#}");
    assert_eq!(run["tip"], unit(&run, "a")["commit"], "{run:#}");
    cluster.ganger(&["wait", &id]).expect(5);
    assert_eq!(user.branches(), ["main"]);
}

/// P066, P067: two deliveries that no tree can hold together are a conflict that names the files.
#[test]
fn deliveries_that_do_not_merge_are_a_conflict() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    user_repository(&cluster);
    let mut calls = RollCall::open();
    // A file and a directory of one name: no pattern overlaps, and no tree holds both.
    let units = vec![
        writes_after("file", "out", &calls.holds("file")),
        writes_after("directory", "out/list.txt", &calls.holds("directory")),
    ];
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("file", 1);
    calls.wait_for("directory", 1);
    calls.let_go("file");
    cluster.wait_run(&id, "the first stands", |run| unit(run, "file")["integration"] == "done");
    calls.let_go("directory");
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    let late = unit(&run, "directory");
    assert_eq!(late["integration"], "conflict", "{late:#}");
    assert!(late["conflict"].to_string().contains("out"), "{late:#}");
    cluster.ganger(&["wait", &id]).expect(5);
}

/// R009, R194: a plan without a repository integrates nothing; units depend on acceptance alone, and
/// what a command printed is kept.
#[test]
fn a_plan_without_a_repository_needs_no_git() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    let units = vec![
        command("look", "ls -A | wc -l"),
        after(command("speak", "echo to stdout; echo to stderr >&2"), &["look"]),
    ];
    let id = submit(&cluster, &plan(&units));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(states(&run), expected(&[("look", "accepted"), ("speak", "accepted")]));
    assert_eq!(unit(&run, "look")["integration"], Value::Null);
    let reason = &unit(&run, "speak")["attempts"][0]["verdicts"][0]["reason"];
    let reason = reason.as_str().expect("policy says why");
    assert!(reason.contains("no repository"), "a verdict says what is so: {reason}");
    assert_eq!(run["branch"], Value::Null);
    let look = cluster.ganger(&["logs", &id, "look"]).expect(0);
    assert!(look.stdout.lines().any(|line| line.trim() == "0"), "not empty: {look:#?}");
    let speak = cluster.ganger(&["logs", &id, "speak"]).expect(0);
    for said in ["to stdout", "to stderr"] {
        assert!(speak.stdout.contains(said), "{speak:#?}");
    }
}

/// R066: a failed unit is tried again as often as it declares, and no more.
#[test]
fn retries_are_as_declared() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let retry = |attempts: u32| json!({ "retry": { "attempts": attempts, "delay": "20ms" } });
    let fails = |id: &str| command(id, &format!("{} && exit 3", calls.says(id)));
    let units = vec![with(fails("thrice"), retry(3)), with(fails("once"), retry(1))];
    let id = submit(&cluster, &plan(&units));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(states(&run), expected(&[("thrice", "failed"), ("once", "failed")]));
    assert_eq!(attempt_states(&run, "thrice"), ["failed"; 3]);
    assert_eq!(attempt_states(&run, "once"), ["failed"]);
    assert_eq!(calls.sorted(), ["once", "thrice", "thrice", "thrice"]);
    let epochs: Vec<&Value> = unit(&run, "thrice")["attempts"]
        .as_array()
        .expect("it has attempts")
        .iter()
        .map(|attempt| &attempt["epoch"])
        .collect();
    assert_eq!(epochs, [&json!(1), &json!(2), &json!(3)]);
}

/// R055: no more attempts run at once than there are slots.
#[test]
fn no_more_run_at_once_than_there_are_slots() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 1)]);
    let mut calls = RollCall::open();
    let names = ["a", "b", "c", "d", "e"];
    let units = names.map(|id| command(id, &calls.holds(id))).to_vec();
    let id = submit(&cluster, &plan(&units));
    let mut left: Vec<String> = names.map(str::to_owned).to_vec();
    while !left.is_empty() {
        let busy = left.len().min(3);
        let full = |run: &Value| {
            let running = states(run).values().filter(|state| *state == "running").count();
            assert!(running <= 3, "{running} run at once in three slots");
            running == busy
        };
        cluster.wait_run(&id, "the slots are full", full);
        until("they all call", || calls.present().len() == busy);
        let next = calls.present().remove(0);
        calls.let_go(&next);
        left.retain(|name| *name != next);
        cluster.wait_run(&id, "it is accepted", has(&[(&next, "accepted")]));
    }
    cluster.wait_run(&id, "the run completes", is("completed"));
    assert_eq!(calls.sorted(), names);
}

/// R038, R063: one unit's second attempt is another attempt: its own id, its own epoch, its own tree.
#[test]
fn every_attempt_has_a_tree_of_its_own() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let user = user_repository(&cluster);
    let run = "test -e seen.txt && exit 9; echo x > seen.txt; exit 1";
    let retry = json!({ "retry": { "attempts": 2, "delay": "20ms" }, "files": ["*.txt"],
        "checks": [{ "name": "seen", "run": "test -f seen.txt" }] });
    let id = submit(&cluster, &on_repository(&[with(command("again", run), retry)]));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    let attempts = &unit(&run, "again")["attempts"];
    assert_eq!(attempts[0]["id"], "again/main/1");
    assert_eq!(attempts[1]["id"], "again/main/2");
    let message = attempts[1]["failure"]["message"].as_str().expect("it failed");
    assert!(!message.contains('9'), "the second attempt saw the first one's tree: {message}");
    assert_eq!(user.files("main").len(), 2);
}

/// P101, R038: many short attempts leave no process, and no tree of those that succeeded.
#[test]
fn many_short_attempts_leave_nothing_behind() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 4)]);
    user_repository(&cluster);
    let unit = |n: usize| writes_after(&format!("u{n}"), &format!("out/{n}.txt"), "(sleep 300 &)");
    let units: Vec<Value> = (0..24).map(unit).collect();
    let id = submit(&cluster, &on_repository(&units));
    cluster.wait_run(&id, "the run completes", is("completed"));
    let attempts = cluster.path("worker-east/attempts");
    until("the trees are removed", || {
        std::fs::read_dir(&attempts).is_ok_and(|entries| entries.count() == 0)
    });
    let pid = cluster.worker("east").pid();
    until("no process is left", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| children.trim().is_empty())
    });
}

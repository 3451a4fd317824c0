//! Units that fail, and what becomes of those that depend on them.

use ganger_harness::{Cluster, Repository, RollCall, unit};
use serde_json::{Value, json};

use crate::binary;
use crate::plans::{
    after, attempt_states, command, expected, has, is, on_repository, plan, states, submit,
    user_repository, with, writes,
};

fn failure<'a>(run: &'a Value, id: &str) -> &'a Value {
    let attempts = unit(run, id)["attempts"].as_array().expect("a unit has attempts");
    &attempts.last().expect("it was tried")["failure"]
}

/// P046, P047, R056: what depends on a failed unit is blocked, with the path; what runs is waited for;
/// the run is held, never active for ever nor complete, and a stop skips the rest.
#[test]
fn a_failed_unit_blocks_what_depends_on_it_and_holds_the_run() {
    let cluster = Cluster::with_workers(binary(), &[("east", 3)]);
    let mut calls = RollCall::open();
    let units = vec![
        command("bad", "echo went wrong >&2; exit 7"),
        after(command("next", "true"), &["bad"]),
        after(command("last", "true"), &["next"]),
        command("apart", &calls.holds("apart")),
    ];
    let id = submit(&cluster, &plan(&units));
    calls.wait_for("apart", 1);
    let run = cluster.wait_run(&id, "bad fails", has(&[("bad", "failed")]));
    assert_eq!(run["state"], "active", "one still runs: {run:#}");
    calls.let_go("apart");
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(run["reason"], "unit_failed");
    let blocked =
        [("bad", "failed"), ("next", "blocked"), ("last", "blocked"), ("apart", "accepted")];
    assert_eq!(states(&run), expected(&blocked));
    assert_eq!(unit(&run, "last")["reason"], "last -> next -> bad is failed");
    assert_eq!(failure(&run, "bad")["class"], "command_failed");
    let message = failure(&run, "bad")["message"].as_str().expect("a failure has a message");
    assert!(message.contains('7'), "{message}");
    cluster.ganger(&["wait", &id]).expect(1);
    cluster.ganger(&["stop", &id, "-m", "enough"]).expect(0);
    let run = cluster.wait_run(&id, "the run is aborted", is("aborted"));
    let skipped =
        [("bad", "failed"), ("next", "skipped"), ("last", "skipped"), ("apart", "accepted")];
    assert_eq!(states(&run), expected(&skipped));
    cluster.ganger(&["wait", &id]).expect(1);
}

/// R082, R083: an attempt that takes longer than it may is ended, with everything it started.
#[test]
fn an_attempt_over_its_time_is_ended_whole() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    // A child in a session of its own, which no process group reaches.
    let run = format!("setsid {} & {}", calls.holds("child"), calls.holds("slow"));
    let slow = with(command("slow", &run), json!({ "timeout": "700ms" }));
    let id = submit(&cluster, &plan(&[slow]));
    calls.wait_for("slow", 1);
    calls.wait_for("child", 1);
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(failure(&run, "slow")["class"], "timeout");
    calls.wait_until_gone("slow");
    calls.wait_until_gone("child");
}

/// P022: an attempt that prints nothing for the allowed silence is ended as stalled.
#[test]
fn an_attempt_that_is_silent_too_long_is_ended() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let still = with(command("still", &calls.holds("still")), json!({ "silence": "500ms" }));
    let id = submit(&cluster, &plan(&[still]));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(failure(&run, "still")["class"], "stream_stall");
    calls.wait_until_gone("still");
}

/// R104: a unit that writes outside its files delivers nothing, and is told where it wrote.
#[test]
fn a_write_outside_the_files_of_a_unit_delivers_nothing() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let run = "mkdir docs; echo x > docs/x.txt; echo x >> src/a.txt";
    let keys =
        json!({ "files": ["docs/**"], "checks": [{ "name": "x", "run": "test -f docs/x.txt" }] });
    let id = submit(&cluster, &on_repository(&[with(command("stray", run), keys)]));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(failure(&run, "stray")["class"], "scope_violation");
    let message = failure(&run, "stray")["message"].as_str().expect("a failure has a message");
    assert!(message.contains("src/a.txt") && !message.contains("docs/x.txt,"), "{message}");
    assert_eq!(run["tip"], user.git(&["rev-parse", "main"]));
}

/// R010: a failed check closes the gate: nothing is accepted or applied, and a person is needed.
#[test]
fn a_failed_check_holds_the_run_for_a_person() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let checks = json!([
        { "name": "there", "run": "test -f one.txt" },
        { "name": "right", "run": "echo it is not right; grep -q other one.txt" },
    ]);
    let one = with(writes("one", "one.txt"), json!({ "checks": checks }));
    let plan = on_repository(&[one, after(writes("two", "two.txt"), &["one"])]);
    let id = submit(&cluster, &plan);
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(run["reason"], "gate");
    assert_eq!(states(&run), expected(&[("one", "delivered"), ("two", "blocked")]));
    assert_eq!(unit(&run, "one")["gate"], "closed");
    assert_eq!(attempt_states(&run, "one"), ["delivered"]);
    let checks = unit(&run, "one")["attempts"][0]["checks"].clone();
    let outcomes: Vec<&Value> =
        checks.as_array().into_iter().flatten().map(|c| &c["state"]).collect();
    assert_eq!(outcomes, [&json!("pass"), &json!("fail")], "{checks:#}");
    assert!(checks[1]["result"]["evidence"]["log_tail"].to_string().contains("it is not right"));
    assert_eq!(run["tip"], user.git(&["rev-parse", "main"]));
    cluster.ganger(&["wait", &id]).expect(5);
}

/// P091: a command that changes nothing where it may write has not done its work.
#[test]
fn a_unit_that_changes_nothing_does_not_pass_for_one_that_did() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    let keys =
        json!({ "files": ["x.txt"], "checks": [{ "name": "x", "run": "test -f README.md" }] });
    let id = submit(&cluster, &on_repository(&[with(command("idle", "true"), keys)]));
    let run = cluster.wait_run(&id, "it comes to rest", |run| run["state"] != "active");
    let idle = unit(&run, "idle");
    // Either way it is said; what must not be is a commit that holds nothing.
    assert_eq!(idle["commit"], Value::Null, "{idle:#}");
    let no_change = idle["attempts"][0]["delivery"]["no_change"] == true
        || failure(&run, "idle")["class"] == "no_change"
        || idle["attempts"][0]["delivery"]["tree"]["changes"]["total"] == 0;
    assert!(no_change, "{idle:#}");
}

/// R107, P097: files a check names as pinned are the base's, whatever the author made of them; a check
/// that does not end in time is no pass.
#[test]
fn a_check_is_measured_with_the_bases_files_and_in_its_time() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let files = [("test.sh", "grep -q right answer.txt\n"), ("answer.txt", "none\n")];
    Repository::make(&cluster.path("user"), &files);
    let honest = json!([
        { "name": "pinned", "run": "sh test.sh", "pinned": ["test.sh"] },
        { "name": "weak", "run": "sh test.sh", "required": false },
    ]);
    let cheats = with(
        command("cheats", "echo wrong > answer.txt; echo true > test.sh"),
        json!({ "files": ["*"], "checks": honest }),
    );
    let slow = json!([{ "name": "slow", "run": "sleep 600; grep -qx slow out/slow.txt", "timeout": "400ms" }]);
    let slow = with(writes("slow", "out/slow.txt"), json!({ "checks": slow }));
    let id = submit(&cluster, &on_repository(&[cheats, slow]));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(run["reason"], "gate");
    let outcomes = |id: &str| -> Vec<Value> {
        let checks = unit(&run, id)["attempts"][0]["checks"].as_array().cloned();
        checks.unwrap_or_default().into_iter().map(|check| check["state"].clone()).collect()
    };
    assert_eq!(outcomes("cheats"), [json!("fail"), json!("pass")]);
    assert_eq!(outcomes("slow"), [json!("not_measured")]);
    assert_eq!(states(&run), expected(&[("cheats", "delivered"), ("slow", "delivered")]));
    cluster.ganger(&["wait", &id]).expect(5);
}

/// P072: attempts are counted before they start; at the limit the run says which limit it is.
#[test]
fn a_run_at_its_limit_of_attempts_starts_no_more() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let units = ["a", "b", "c"].map(|id| command(id, &calls.says(id)));
    let limited = with(plan(&units), json!({ "budgets": { "attempts": 2 } }));
    let id = submit(&cluster, &limited);
    let run = cluster.wait_run(&id, "the limit is reached", is("budget_limited"));
    assert_eq!(run["reason"], "attempts", "{run:#}");
    assert_eq!(run["ledger"]["attempts"]["settled"], 2);
    assert_eq!(calls.names().len(), 2);
    cluster.ganger(&["wait", &id]).expect(6);
}

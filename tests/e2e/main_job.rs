//! The main job: a plan goes in, units run on workers, checks run elsewhere, a branch comes out.

mod agents;
mod embedded;
mod failures;
mod graph;

use std::path::Path;

use ganger_harness::repository::Files;
use ganger_harness::{Cluster, Repository, Said, unit};
use serde_json::Value;

use crate::binary;
use crate::plans::{
    after, attempts, expected, on_repository, states, user_repository, write, writes,
};

/// Files with their text, as `Repository::files` gives them.
fn files(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a test's own directory can be written");
    for entry in std::fs::read_dir(from).expect("the example is there") {
        let entry = entry.expect("the example can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a test's own directory can be written");
        }
    }
}

/// The one object of stdout; that there is no second one is part of the reading.
fn the_run(said: &Said) -> Value {
    said.json()["run"].clone()
}

fn accepted_and_done(run: &Value) -> Vec<(Value, Value)> {
    let units = run["units"].as_array().expect("a run has units");
    units.iter().map(|unit| (unit["state"].clone(), unit["integration"].clone())).collect()
}

/// R001, R010, R204: the example of the README, with nothing on the machine but the binary and git.
#[test]
fn the_example_runs_with_nothing_but_the_binary() {
    let cluster = Cluster::new(binary());
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/diamond");
    copy(&example, &cluster.path("examples/diamond"));
    let plan = cluster.path("examples/diamond/plan.yaml");
    let mut command = cluster.command();
    command.args(["run", "examples/diamond/plan.yaml", "-o", "json"]);
    let said = Said::from(command.output().expect("the product's own binary starts")).expect(0);
    let run = the_run(&said);
    assert_eq!(run["state"], "completed", "{said:#?}");
    let units = accepted_and_done(&run);
    assert!(units.len() >= 4, "{run:#}");
    assert_eq!(units, vec![("accepted".into(), "done".into()); units.len()], "{said:#?}");
    let text = std::fs::read_to_string(plan).expect("the example can be read");
    let goal = run["goal"].as_str().expect("a run has a goal");
    assert!(text.contains(goal), "the goal is not the user's words: {goal}");
    let seeded = Repository::at(run["repository"].as_str().expect("a seed becomes a repository"));
    assert!(seeded.path().starts_with(cluster.path("state")), "{}", seeded.path().display());
    let branch = run["branch"].as_str().expect("a run has a branch");
    let landed = seeded.files(branch);
    let names: Vec<&str> = landed.keys().map(String::as_str).collect();
    let expected = ["README.md", "REPORT.md", "bin/count.sh", "bin/longest.sh", "words.txt"];
    assert_eq!(names, expected);
    assert_eq!(landed["words.txt"], "anvil\nbellows\nforge\nhammer\nrivet\ntongs");
    assert_eq!(landed["REPORT.md"], "# Report\n\n6 words, the longest is `bellows`.");
    assert!(landed["README.md"].contains("What they say stands in `REPORT.md`."));
    assert_eq!(seeded.git(&["status", "--porcelain=v1"]), "");
    assert!(!said.stderr.is_empty(), "progress goes to stderr");
}

/// R009, R010, R038: a diamond over three processes that share no disk ends on the user's branch;
/// the user's tree is left alone, each unit begins from what it depends on, and no check is measured
/// by the worker that wrote what it measures.
#[test]
fn a_diamond_over_three_processes_lands_on_the_users_branch() {
    let cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let user = user_repository(&cluster);
    std::fs::write(cluster.path("user/README.md"), "not committed\n").expect("it is ours");
    let before = user.work_tree();
    let plan = on_repository(&[
        writes("base", "out/base.txt"),
        after(writes("left", "out/left.txt"), &["base"]),
        after(writes("right", "out/right.txt"), &["base"]),
        after(writes("join", "out/join.txt"), &["left", "right"]),
    ]);
    let plan = write(&cluster, &plan);
    let said = cluster.ganger(&["run", &plan.display().to_string(), "-o", "json"]).expect(0);
    let run = the_run(&said);
    assert_eq!(run["state"], "completed", "{run:#}");
    assert_eq!(accepted_and_done(&run), vec![("accepted".into(), "done".into()); 4]);
    let branch = run["branch"].as_str().expect("a run has a branch");
    let landed = files(&[
        ("README.md", "hello"),
        ("out/base.txt", "base"),
        ("out/join.txt", "join"),
        ("out/left.txt", "left"),
        ("out/right.txt", "right"),
        ("src/a.txt", "a"),
    ]);
    assert_eq!(user.files(branch), landed);
    assert_eq!(user.work_tree(), before);
    assert_eq!(user.branches(), [branch, "main"]);
    begins_from_what_it_depends_on(&user, &run);
    checked_by_others(&run);
    assert_eq!(attempts(&run).len(), 4, "{run:#}");
}

fn begins_from_what_it_depends_on(user: &Repository, run: &Value) {
    for id in ["left", "right", "join"] {
        let unit = unit(run, id);
        let base = unit["attempts"][0]["base"].as_str().expect("an attempt has a base");
        for on in unit["after"].as_array().expect("a unit has dependencies") {
            let on = on.as_str().expect("a dependency is a name");
            let commit = self::unit(run, on)["commit"].as_str().expect("it is integrated");
            user.git(&["merge-base", "--is-ancestor", commit, base]);
        }
    }
}

fn checked_by_others(run: &Value) {
    for unit in run["units"].as_array().expect("a run has units") {
        let attempt = &unit["attempts"][0];
        let checks = attempt["checks"].as_array().expect("an attempt has checks");
        assert!(!checks.is_empty(), "{unit:#}");
        for check in checks {
            assert_eq!(check["state"], "pass", "{check:#}");
            assert_eq!(check["place"], "other_worker", "{check:#}");
            assert_ne!(check["worker"], attempt["worker"], "{check:#}");
        }
    }
}

/// A run that was only submitted is delivered by whoever asks for it, and not before.
#[test]
fn a_submitted_run_is_delivered_on_request() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    let plan = on_repository(&[writes("one", "out/one.txt")]);
    let id = crate::plans::submit(&cluster, &plan);
    let run = cluster.wait_run(&id, "the run completes", crate::plans::is("completed"));
    assert_eq!(states(&run), expected(&[("one", "accepted")]));
    assert_eq!(user.branches(), ["main"]);
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.branches(), [branch, "main"]);
    assert_eq!(user.git(&["show", &format!("{branch}:out/one.txt")]), "one");
    assert_eq!(user.git(&["rev-parse", branch]), run["tip"]);
    // Asking again changes nothing.
    cluster.ganger(&["deliver", &id]).expect(0);
    assert_eq!(user.git(&["rev-parse", branch]), run["tip"]);
}

//! Bad input: each is refused by name, with the place and the way out, and nothing is half done.

mod access;

use ganger_harness::{Cluster, Said};

use crate::binary;

/// A coordinator with a worker, and a plan that is not one.
fn refused(text: &[u8], words: &[&str], code: i32) -> (Cluster, Said) {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let path = cluster.path("plan.yaml");
    std::fs::write(&path, text).expect("a test's own directory can be written");
    let path = path.display().to_string();
    for verb in ["submit", "run"] {
        let said = cluster.ganger(&[verb, &path]).expect(code);
        says(&said, words);
        assert_eq!(said.stdout, "", "{said:#?}");
    }
    nothing_is_half_done(&cluster);
    let said = cluster.ganger(&["plan", "check", &path]).expect(code);
    (cluster, said)
}

fn says(said: &Said, words: &[&str]) {
    let all = format!("{}{}", said.stdout, said.stderr);
    for word in words {
        assert!(all.contains(word), "`{word}` is not said: {said:#?}");
    }
}

/// No run, no repository, and no branch in the coordinator's mirrors.
fn nothing_is_half_done(cluster: &Cluster) {
    let list = cluster.ganger(&["get", "runs", "-o", "json"]).expect(0).json();
    assert_eq!(list["runs"], serde_json::json!([]));
    let seeded = cluster.path("state/ganger/repositories");
    let count = std::fs::read_dir(&seeded).map_or(0, Iterator::count);
    assert_eq!(count, 0, "a seeded repository was left in {}", seeded.display());
}

/// P045, R002, R003, R107, R206: a cycle is named whole, and stands beside every other problem of the plan, each with
/// its place.
#[test]
fn a_cyclic_plan_is_refused_with_everything_else_that_is_wrong() {
    let text = b"version: 1
name: wheel
goal: Go round.
mode: autonomous
repository: { seed: ./nowhere }
units:
  - { id: a, kind: command, objective: One., run: \"true\", after: [c], files: [a], checks: [{ name: x, run: test -f a }] }
  - { id: b, kind: command, objective: Two., run: \"true\", after: [a], files: [b], checks: [{ name: x, run: test -f b || true }] }
  - { id: c, kind: command, objective: Three., run: \"true\", after: [b, d], files: [c], check: [] }
  - { id: e, kind: agent, objective: Four., agent: skripted, files: [e], checks: [{ name: x, run: test -f e }] }
  - { id: f, kind: agent, agent: scripted, files: [f], checks: [{ name: x, run: test -f f }] }
  - { id: a, kind: command, objective: Six., run: \"true\", files: [g] }
";
    let words = [
        "a -> b -> c -> a",
        "plan.yaml:8",
        "cannot fail",
        "plan.yaml:9",
        "check",
        "checks",
        "`d`",
        "plan.yaml:10",
        "skripted",
        "scripted",
        "plan.yaml:11:5",
        "needs `objective`",
        "plan.yaml:12:11",
        "would be accepted without evidence",
        "nowhere",
    ];
    let (_cluster, checked) = refused(text, &words, 3);
    says(&checked, &words);
}

/// R002: a key nobody knows is named with its place and the nearest one.
#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let text = b"version: 1
name: typo
goal: g
mode: autonomous
units:
  - id: a
    kind: command
    objective: One.
    run: \"true\"
    tiemout: 5m
";
    refused(text, &["plan.yaml:10:5", "tiemout", "timeout"], 3);
}

/// P047: an agent nobody has is refused when the plan is submitted.
#[test]
fn an_unknown_agent_is_refused() {
    let text = b"version: 1
name: nobody
goal: g
mode: autonomous
units:
  - { id: a, kind: agent, objective: One., agent: clod }
";
    refused(text, &["plan.yaml:6", "clod", "known: scripted"], 3);
}

/// P115: a plan of 10 MiB is refused by its size, with the limit and the way out.
#[test]
fn a_plan_of_ten_mebibytes_is_refused_by_its_size() {
    let mut text = b"version: 1\nname: big\ngoal: g\nmode: autonomous\nunits: []\n".to_vec();
    text.resize(10 << 20, b'#');
    refused(&text, &["10485760", "4194304", "plan-size"], 3);
}

/// R003: a plan that is no UTF-8 is refused with the line.
#[test]
fn a_plan_that_is_not_text_is_refused_with_the_line() {
    let text = b"version: 1\nname: latin\ngoal: caf\xe9\nmode: autonomous\nunits: []\n";
    refused(text, &["plan.yaml", "line 3", "UTF-8"], 3);
}

/// R002: what is built later is refused by name, beside everything else that is wrong.
#[test]
fn what_is_not_built_yet_is_refused_by_name() {
    let text = b"version: 1
name: later
goal: g
units:
  - { id: a, kind: review, of: b, objective: One., agent: scripted }
  - { id: a, kind: command, objective: Two., run: \"true\" }
";
    let words = ["mode: autonomous", "plan.yaml:5", "review", "not built yet", "plan.yaml:6"];
    let (cluster, _) = refused(text, &words, 3);
    let path = cluster.path("plan.yaml").display().to_string();
    let said = cluster.ganger(&["plan", "check", &path, "-o", "json"]).expect(3);
    says(&said, &["not_supported_yet", "duplicate", "unknown_name"]);
}

/// R003: a repository that is not there, and one that has no such base, are refused with the place.
#[test]
fn a_missing_repository_is_refused_with_its_place() {
    let plan = |url: &str, base: &str| {
        format!(
            "version: 1\nname: lost\ngoal: g\nmode: autonomous\nrepository: {{ url: {url}, base: {base} }}\n\
             units:\n  - {{ id: a, kind: command, objective: One., run: \"true\", files: [a], \
             checks: [{{ name: x, run: test -f a }}] }}\n"
        )
    };
    refused(plan("./absent", "main").as_bytes(), &["plan.yaml:5", "absent"], 3);
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    crate::plans::user_repository(&cluster);
    let path = cluster.write("plan.yaml", &plan("./user", "mian")).display().to_string();
    let said = cluster.ganger(&["submit", &path]).expect(3);
    says(&said, &["plan.yaml:5", "mian"]);
    nothing_is_half_done(&cluster);
}

/// R003: a script that is not there is told with everything else; no plan file at all is a matter of
/// usage.
#[test]
fn missing_files_are_told_together() {
    let text = b"version: 1
name: lost
goal: g
mode: autonomous
units:
  - { id: a, kind: agent, objective: One., agent: { name: scripted, script: one.yaml } }
  - { id: b, kind: agent, objective: Two., agent: { name: scripted, script: two.yaml } }
";
    let words = ["plan.yaml:6", "one.yaml", "plan.yaml:7", "two.yaml"];
    let (cluster, _) = refused(text, &words, 3);
    let said = cluster.ganger(&["submit", "no-such-plan.yaml"]).expect(2);
    says(&said, &["no-such-plan.yaml"]);
    let said = cluster.ganger(&["submit", "--no-such-flag"]).expect(2);
    says(&said, &["--no-such-flag"]);
}

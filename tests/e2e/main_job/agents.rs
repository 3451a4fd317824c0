//! The scripted agent over the real path: what agents do well, and what they do badly.

use ganger_harness::{Cluster, RollCall, Said, unit};
use serde_json::{Value, json};

use crate::binary;
use crate::plans::{
    after, attempt_states, expected, has, is, on_repository, plan, scripted, states, submit,
    user_repository, with,
};

fn failure<'a>(run: &'a Value, id: &str) -> &'a Value {
    let attempts = unit(run, id)["attempts"].as_array().expect("a unit has attempts");
    &attempts.last().expect("it was tried")["failure"]
}

fn logs(cluster: &Cluster, run: &str, unit: &str) -> Said {
    cluster.ganger(&["logs", run, unit]).expect(0)
}

/// R010, R180: an agent's edits land on the branch with what it said, what it used and its session.
#[test]
fn an_agents_edits_land_with_what_it_said_and_used() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let user = user_repository(&cluster);
    cluster.write(
        "edit.yaml",
        r#"
- say: looking around
- write: { path: src/new/b.txt, text: "b\n" }
- append: { path: src/a.txt, text: "more\n" }
- usage: { tokens_in: 100, tokens_out: 20, usd_micros: 1500 }
- finish: two files are changed
"#,
    );
    let checks = json!([{ "name": "b", "run": "grep -qx b src/new/b.txt" }]);
    let edit =
        with(scripted("edit", "edit.yaml"), json!({ "files": ["src/**"], "checks": checks }));
    let id = submit(&cluster, &on_repository(&[edit]));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let delivery = &unit(&run, "edit")["attempts"][0]["delivery"];
    assert_eq!(delivery["summary"], "two files are changed", "{delivery:#}");
    assert_eq!(delivery["usage"]["tokens_in"], 100);
    assert_eq!(delivery["usage"]["usd_micros"], 1500);
    assert_eq!(delivery["usage"]["tokens_cached"], Value::Null, "unknown is not zero");
    assert!(delivery["session"].is_string(), "{delivery:#}");
    cluster.ganger(&["deliver", &id]).expect(0);
    let branch = run["branch"].as_str().expect("a run has a branch");
    assert_eq!(user.git(&["show", &format!("{branch}:src/a.txt")]), "a\nmore");
    assert_eq!(user.git(&["show", &format!("{branch}:src/new/b.txt")]), "b");
    assert!(logs(&cluster, &id, "edit").stdout.contains("looking around"));
}

/// R066: an agent that crashes or says that it failed is tried again, and each end keeps its class.
#[test]
fn ends_of_agents_keep_their_class_and_are_retried_as_declared() {
    let cluster = Cluster::with_workers(binary(), &[("east", 3)]);
    cluster.write(
        "ends.yaml",
        r"
- unit:
    crash: [ { attempt: { 1: [ { crash: 3 } ], 2: [ { crash: SIGKILL } ], 3: [ { finish: well } ] } } ]
    fail: [ { fail: { class: task_failed, message: not today } } ]
    quota: [ { fail: { class: quota_exhausted, message: come back tomorrow } } ]
",
    );
    let retry = json!({ "retry": { "attempts": 3, "delay": "20ms" } });
    let units = ["crash", "fail", "quota"].map(|id| with(scripted(id, "ends.yaml"), retry.clone()));
    let id = submit(&cluster, &plan(&units));
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    let ends = [("crash", "accepted"), ("fail", "failed"), ("quota", "failed")];
    assert_eq!(states(&run), expected(&ends));
    assert_eq!(attempt_states(&run, "crash"), ["failed", "failed", "delivered"]);
    assert_eq!(attempt_states(&run, "fail"), ["failed"; 3]);
    // What no retry can help is not retried.
    assert_eq!(attempt_states(&run, "quota"), ["failed"]);
    assert_eq!(failure(&run, "quota")["class"], "quota_exhausted");
    assert!(failure(&run, "fail")["message"].to_string().contains("not today"));
    let first = &unit(&run, "crash")["attempts"][0]["failure"];
    assert_eq!(first["class"], "cli_crash", "{first:#}");
}

/// P021, P099, R057: an agent that answers nobody is ended by force, and nothing of it is left.
#[test]
fn an_agent_that_hangs_is_ended_and_leaves_nothing() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let text = format!(
        "- run: \"setsid {} &\"\n- connect: \"{}\"\n- hang: true\n",
        calls.holds("child").replace('\\', "\\\\"),
        calls.address()
    );
    cluster.write("hang.yaml", &text);
    let hang = with(scripted("hang", "hang.yaml"), json!({ "timeout": "2s" }));
    let id = submit(&cluster, &plan(&[hang]));
    calls.wait_for("child", 1);
    calls.wait_for("hang 1 1", 1);
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    assert_eq!(failure(&run, "hang")["class"], "timeout");
    calls.wait_until_gone("child");
    calls.wait_until_gone("hang 1 1");
}

/// P103, P104: a line of 64 MiB without an end and bytes that are no text neither stop an agent's next
/// word from being heard nor cost memory; what was cut is said.
#[test]
fn huge_lines_and_bytes_that_are_no_text_are_survived() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2)]);
    cluster.write("huge.yaml", "- huge_line: 64MiB\n- say: after the line\n- finish: heard\n");
    cluster.write(
        "noise.yaml",
        "- noise: { bytes: 64KiB, invalid_utf8: true }\n- say: after the noise\n- finish: heard\n",
    );
    let bytes = r"printf '\377\376 caf\303\251 \360\237\231\n'; echo end";
    let units = vec![
        scripted("huge", "huge.yaml"),
        scripted("noise", "noise.yaml"),
        crate::plans::command("bytes", bytes),
        crate::plans::command("flood", "head -c 67108864 /dev/zero | tr '\\0' .; echo; echo end"),
    ];
    let id = submit(&cluster, &plan(&units));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    for id in ["huge", "noise"] {
        let delivery = &unit(&run, id)["attempts"][0]["delivery"];
        assert_eq!(delivery["summary"], "heard", "{delivery:#}");
    }
    let said = logs(&cluster, &id, "bytes");
    assert!(said.stdout.contains("café") && said.stdout.contains("end"), "{said:?}");
    for id_of in ["huge", "flood"] {
        let kept = logs(&cluster, &id, id_of).stdout;
        let (most, note) = (64 << 20, kept.len().saturating_sub(64 << 20));
        assert!(note < 1 << 20, "{} bytes are kept of at most {most}", kept.len());
        assert!(kept.ends_with("more bytes were not kept ---\n"), "what is cut is not said");
    }
    let excerpt = &unit(&run, "flood")["attempts"][0]["delivery"]["excerpt"];
    assert!(excerpt.to_string().contains("end"), "the end is kept whatever is cut: {excerpt}");
    let most = cluster.worker("east").peak_memory();
    assert!(most < 256 << 20, "{most} bytes of memory for lines of 64 MiB");
}

/// P091: an agent that says why nothing has to change has done its work.
#[test]
fn an_agent_may_declare_that_nothing_has_to_change() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    user_repository(&cluster);
    cluster.write("none.yaml", "- declare_no_change: it is there already\n");
    let keys =
        json!({ "files": ["src/**"], "checks": [{ "name": "a", "run": "test -f src/a.txt" }] });
    let none = with(scripted("none", "none.yaml"), keys.clone());
    let next = after(with(scripted("next", "next.yaml"), keys), &["none"]);
    cluster.write("next.yaml", "- append: { path: src/a.txt, text: \"b\\n\" }\n");
    let id = submit(&cluster, &on_repository(&[none, next]));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    assert!(has(&[("none", "accepted"), ("next", "accepted")])(&run), "{run:#}");
    assert_eq!(unit(&run, "none")["commit"], Value::Null);
    assert_eq!(unit(&run, "none")["attempts"][0]["delivery"]["no_change"], true);
    assert_eq!(run["tip"], unit(&run, "next")["commit"]);
}

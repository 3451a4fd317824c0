//! The journal as people hold it in their hands: verified, exported, and edited by somebody who should not.

use std::path::PathBuf;

use ganger_harness::{Cluster, Said};
use serde_json::Value;

use crate::binary;
use crate::plans::{command, is, plan, submit};

/// A coordinator that ran one run to its end and ended in order; the run's id.
fn ended() -> (Cluster, String) {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let id =
        submit(&cluster, &plan(&[command("one", "echo a word to find"), command("two", "true")]));
    cluster.wait_run(&id, "it completes", is("completed"));
    cluster.coordinator().terminate();
    (cluster, id)
}

fn journal(cluster: &Cluster, verb: &str, more: &[&str]) -> Said {
    let data = cluster.data().display().to_string();
    // The directory wins over whatever the environment names.
    cluster.ganger(&[&["journal", verb, "--data", &data], more].concat())
}

fn segments(cluster: &Cluster) -> Vec<PathBuf> {
    let log = cluster.data().join("journal/log");
    let entries = std::fs::read_dir(&log).expect("the log is a directory");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"))
        .collect();
    files.sort();
    files
}

/// R162, R200: what was written is exported as it was, each event chained to the one before in its
/// stream, everything of a run under its exact id.
#[test]
fn the_exported_journal_is_chained_stream_by_stream() {
    let (cluster, id) = ended();
    journal(&cluster, "verify", &[]).expect(0);
    let said = journal(&cluster, "export", &["--stream", &format!("run/{id}")]).expect(0);
    let events: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is an event"))
        .collect();
    assert!(events.len() > 10, "{said:#?}");
    let mut before = "0".repeat(64);
    for (seq, event) in (1..).zip(&events) {
        assert_eq!(event["seq"], seq);
        assert_eq!(event["stream"], format!("run/{id}"));
        assert_eq!(event["prev_hash"], before.as_str());
        event["hash"].as_str().expect("an event has a hash").clone_into(&mut before);
    }
    assert_eq!(events[0]["body"]["type"], "RunSubmitted");
    assert_eq!(events[0]["body"]["run"], id);
    assert_eq!(events[0]["body"]["goal"], "Prove it.");
    assert_eq!(events.last().map(|event| &event["body"]["type"]), Some(&"RunCompleted".into()));
}

/// R162, R165: an edit by hand changes nothing unseen: verification names the first bad event, and a
/// coordinator does not serve it as truth.
#[test]
fn an_edit_by_hand_is_found_and_named() {
    let (cluster, id) = ended();
    let goal = "Prove it.";
    let mut edited = 0;
    for segment in segments(&cluster) {
        let bytes = std::fs::read(&segment).expect("the log can be read");
        let text = String::from_utf8(bytes).expect("the log is text");
        edited += text.matches(goal).count();
        std::fs::write(&segment, text.replace(goal, "Prove me.")).expect("it is ours");
    }
    assert_eq!(edited, 1, "the goal is stored once, word for word");
    let said = journal(&cluster, "verify", &[]).expect(1);
    assert!(said.stdout.contains(&format!("run/{id}")), "the stream is not named: {said:#?}");
    let said = journal(&cluster, "verify", &["-o", "json"]).expect(1).json();
    assert_eq!(said["ok"], false, "{said:#}");
    assert!(said["first_bad"]["file"].is_string(), "{said:#}");
    let mut coordinator = cluster.start_alone(
        "edited",
        &[
            "coordinator",
            "--listen",
            "127.0.0.1:0",
            "--data",
            &cluster.data().display().to_string(),
        ],
    );
    let status = coordinator.wait();
    assert!(!status.success());
    assert!(coordinator.log().contains("journal"), "{}", coordinator.log());
}

/// R170: two coordinators never share a directory; the second is told the process of the first.
#[test]
fn a_second_coordinator_on_the_directory_is_refused() {
    let mut cluster = Cluster::new(binary());
    cluster.start_coordinator();
    let data = cluster.data().display().to_string();
    let second = cluster.alone(&["coordinator", "--listen", "127.0.0.1:0", "--data", &data]);
    assert_ne!(second.code, 0);
    let first = cluster.coordinator().pid().to_string();
    assert!(second.stderr.contains(&first), "{second:#?}");
    cluster.ganger(&["get", "runs"]).expect(0);
    // Reading does not need the lock.
    journal(&cluster, "verify", &[]).expect(0);
}

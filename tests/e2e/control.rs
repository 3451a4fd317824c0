//! What people ask of a run from outside: steering, looking, waiting, and doing so twice.

mod looking;
mod steering;

use std::path::Path;

use ganger_harness::{Cluster, RollCall, Said};
use serde_json::{Value, json};

use crate::binary;
use crate::plans::{command, is, plan, with, write};

fn submit_with_key(cluster: &Cluster, plan: &Path, key: &str) -> Said {
    let plan = plan.display().to_string();
    cluster.ganger(&["submit", &plan, "--key", key, "-o", "json"])
}

fn runs(cluster: &Cluster) -> Vec<Value> {
    let list = cluster.ganger(&["get", "runs", "-o", "json"]).expect(0).json();
    list["runs"].as_array().cloned().expect("a list of runs")
}

/// R167, P042, P043: one key is one run: twice one after the other, at the same time, and after a kill;
/// another plan under the key is refused and names both digests.
#[test]
fn one_key_is_one_run() {
    let mut cluster = Cluster::new(binary());
    cluster.start_coordinator();
    let file = write(&cluster, &plan(&[command("one", "true")]));
    let first = submit_with_key(&cluster, &file, "k-1").expect(0).json();
    let again = submit_with_key(&cluster, &file, "k-1").expect(0).json();
    assert_eq!(first["run_id"], again["run_id"]);
    let path = file.display().to_string();
    let spawn = |_| {
        let mut client = cluster.client(&["submit", &path, "--key", "k-2", "-o", "json"]);
        client
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the product's own binary starts")
    };
    let both = [0, 1].map(spawn).map(|child| {
        let output = child.wait_with_output().expect("a child can be waited for");
        Said::from(output).expect(0).json()["run_id"].clone()
    });
    assert_eq!(both[0], both[1]);
    cluster.coordinator().kill();
    cluster.start_coordinator();
    let later = submit_with_key(&cluster, &file, "k-1").expect(0).json();
    assert_eq!(first["run_id"], later["run_id"]);
    assert_eq!(runs(&cluster).len(), 2);
    let other = write(&cluster, &plan(&[command("other", "true")]));
    let refused = submit_with_key(&cluster, &other, "k-1").expect(3);
    assert!(refused.stderr.contains("k-1") && refused.stderr.contains("new key"), "{refused:#?}");
    assert_eq!(runs(&cluster).len(), 2);
}

/// R168: a submit answers at once; a wait that expires is no error and says so; one for rest ends with
/// the run's own code.
#[test]
fn a_wait_that_expires_is_no_error() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let id = crate::plans::submit(&cluster, &plan(&[command("one", &calls.holds("one"))]));
    calls.wait_for("one", 1);
    let said = cluster.ganger(&["wait", &id, "--timeout", "1s", "-o", "json"]).expect(0);
    assert_eq!(said.json()["expired"], true, "{said:#?}");
    let said = cluster.ganger(&["wait", &id, "--until", "nonsense", "--timeout", "1s"]).expect(2);
    assert!(said.stderr.contains("completed"), "the states are named: {said:#?}");
    calls.let_go("one");
    let said = cluster.ganger(&["wait", &id, "--timeout", "30s", "-o", "json"]).expect(0);
    assert_eq!(said.json()["expired"], false, "{said:#?}");
    cluster.wait_run(&id, "it completed", is("completed"));
}

/// What is asked of no run, of no unit or with a stale sequence is refused with its code and says
/// what to do.
#[test]
fn what_is_not_there_has_codes_of_its_own() {
    let cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let mut calls = RollCall::open();
    let units = vec![command("build", &calls.holds("build")), command("test", "true")];
    let id = crate::plans::submit(&cluster, &plan(&units));
    calls.wait_for("build", 1);
    let said = cluster.ganger(&["get", "run", "r-nothing"]).expect(4);
    assert!(said.stderr.contains("r-nothing"), "{said:#?}");
    let said = cluster.ganger(&["cancel", &id, "biuld", "-m", "x"]).expect(4);
    assert!(said.stderr.contains("did you mean `build`"), "{said:#?}");
    cluster.ganger(&["cancel", &id, "build"]).expect(3);
    let said = cluster.ganger(&["cancel", &id, "build", "-m", "x", "--expect", "1"]).expect(3);
    assert!(said.stderr.contains("--expect"), "{said:#?}");
    cluster.ganger(&["cancel", &id]).expect(2);
    assert_eq!(calls.present(), ["build"]);
    let prefix: String = id.chars().take(id.len() - 2).collect();
    assert_eq!(cluster.run(&prefix)["id"], id.as_str());
    let nobody = cluster.client(&["get", "runs", "--server", "http://127.0.0.1:1"]).output();
    Said::from(nobody.expect("the product's own binary starts")).expect(7);
}

/// R164: values of the environment reach neither the journal nor what is shown.
#[test]
fn values_let_through_are_never_stored() {
    let mut cluster = Cluster::new(binary());
    cluster.environment.insert("DEPLOY_KEY".into(), "hunter2-hunter2-hunter2".into());
    cluster.start_coordinator();
    cluster.start_worker("east", 1, &[]);
    cluster.wait_for_workers(1);
    let keys = json!({ "env": ["DEPLOY_KEY"] });
    let tell = command("tell", "test -n \"$DEPLOY_KEY\" && echo the key is $DEPLOY_KEY");
    let id = crate::plans::submit(&cluster, &plan(&[with(tell, keys)]));
    cluster.wait_run(&id, "it completes", is("completed"));
    let logs = cluster.ganger(&["logs", &id, "tell"]).expect(0);
    assert!(logs.stdout.contains("the key is "), "{logs:#?}");
    assert!(!logs.stdout.contains("hunter2"), "{logs:#?}");
    cluster.coordinator().terminate();
    cluster.worker("east").terminate();
    let found = std::process::Command::new("grep")
        .args(["--recursive", "--files-with-matches", "hunter2-hunter2"])
        .arg(cluster.directory())
        .output()
        .expect("grep is installed");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

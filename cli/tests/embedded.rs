//! A coordinator and workers inside one `ganger run`: who else may use them, and what is left of them.
//!
//! Runs over separate processes are in the end-to-end suite.

#![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ganger_harness::{Cluster, RollCall, Said, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A home of its own, and the program in it; neither coordinator nor workers are started.
struct House {
    cluster: Cluster,
    calls: RollCall,
}

impl House {
    fn new() -> Self {
        let cluster = Cluster::new(Path::new(env!("CARGO_BIN_EXE_ganger")));
        Self { cluster, calls: RollCall::open() }
    }

    /// A plan of one unit that waits to be let go.
    fn plan(&self, name: &str) -> String {
        let unit = json!({
            "id": name, "kind": "command", "objective": "Wait.", "files": [],
            "run": self.calls.holds(name),
        });
        let plan = json!({
            "version": 1, "name": name, "goal": "Wait.", "mode": "autonomous", "units": [unit],
        });
        let path = self.cluster.write(&format!("{name}.yaml"), &plan.to_string());
        path.display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.cluster.command();
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn said(&self, arguments: &[&str]) -> Said {
        Said::from(self.command(arguments).output().unwrap())
    }

    /// The run of a plan, as programs see it.
    fn run_named(&self, name: &str) -> Value {
        let runs = self.said(&["get", "runs", "-o", "json"]).expect(0).json();
        let runs = runs["runs"].as_array().unwrap().clone();
        runs.into_iter().find(|run| run["name"] == name).unwrap()
    }
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// R216: who reads goes away, and the run goes on to its end.
#[test]
fn a_closed_pipe_does_not_end_the_run_it_showed() {
    let mut house = House::new();
    let plan = house.plan("hold");
    let mut run = house.start(&["run", &plan]);
    let mut first = String::new();
    let mut reader = BufReader::new(run.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.starts_with("run r-"), "{first}");
    house.calls.wait_for("hold", 1);
    drop(reader);
    house.calls.let_go("hold");
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(house.run_named("hold")["state"], "completed");
}

/// Ctrl-C leaves: exit 130, nothing of it lives on, and the run waits for the next coordinator.
#[test]
fn an_interrupted_run_leaves_no_process_and_no_failure() {
    let mut house = House::new();
    let plan = house.plan("hold");
    let mut run = house.start(&["run", &plan]);
    house.calls.wait_for("hold", 1);
    signal(&run, Signal::SIGINT);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    until("the unit's processes end", || house.calls.present().is_empty());
    assert_eq!(house.run_named("hold")["state"], "active");
    let data = house.cluster.path("state/ganger").display().to_string();
    house.said(&["journal", "verify", "--data", &data]).expect(0);
}

/// However the command ends, its workers and their attempts end with it.
#[test]
fn workers_die_with_the_process_that_started_them() {
    let mut house = House::new();
    let plan = house.plan("hold");
    let mut run = house.start(&["run", &plan]);
    house.calls.wait_for("hold", 1);
    signal(&run, Signal::SIGKILL);
    run.wait().unwrap();
    until("the unit's processes end", || house.calls.present().is_empty());
    // The address it left behind is not taken for a coordinator.
    assert_eq!(house.run_named("hold")["state"], "active");
}

/// A second command on the same machine uses the coordinator of the first, which stays for it.
#[test]
fn a_second_run_uses_the_coordinator_of_the_first() {
    let mut house = House::new();
    let (one, two) = (house.plan("one"), house.plan("two"));
    let mut first = house.start(&["run", &one]);
    house.calls.wait_for("one", 1);
    let second = house.start(&["run", &two, "-o", "json"]);
    house.calls.wait_for("two", 1);
    house.calls.let_go("one");
    until("the first run completes", || house.run_named("one")["state"] == "completed");
    assert!(first.try_wait().unwrap().is_none(), "it left while another run was at work");
    house.calls.let_go("two");
    let said = Said::from(second.wait_with_output().unwrap()).expect(0).json();
    assert_eq!(said["run"]["state"], "completed");
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

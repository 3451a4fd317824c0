//! A worker to be killed: starts the family under the hold it is given, and then only waits.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::Path;
use std::process::{Child, Command, ExitCode};

use ganger_worker::isolation::{Containment, View};
use ganger_worker::process::{ProcessTree, adopt_orphans};

use crate::support::{FAMILY, block_on, script};

pub const ARGUMENT: &str = "__worker";

/// Starts this binary as a worker.
pub fn start(containment: &Containment, records: &Path) -> Child {
    Command::new("/proc/self/exe")
        .arg(ARGUMENT)
        .arg(serde_json::to_string(containment).unwrap())
        .arg(records)
        .spawn()
        .unwrap()
}

pub fn main(arguments: &[String]) -> ExitCode {
    let containment: Containment = serde_json::from_str(&arguments[0]).unwrap();
    let records = Path::new(&arguments[1]);
    adopt_orphans().unwrap();
    block_on(async {
        // Whoever may not make a private root is told so by the exit code.
        let isolated = matches!(containment.view, View::Private { .. });
        let text = if isolated { "exit 7" } else { FAMILY };
        let shim = Path::new("/proc/self/exe");
        let mut tree = ProcessTree::spawn(shim, script(text, containment, records)).await.unwrap();
        let (exit, stopped) = tree.ended().await;
        assert!(stopped.confirmed);
        ExitCode::from(u8::try_from(exit.unwrap().shell_code()).unwrap())
    })
}

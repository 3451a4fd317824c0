//! Whatever is killed with SIGKILL, in whichever order: nobody of the tree stays.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ganger_worker::isolation::Hold;
use ganger_worker::process::{
    Fingerprint, MARKER, ProcessRecord, SweptOutcome, adopt_orphans, boot_id, sweep,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    alive, block_on, confirmed, family, holds, open, record, record_paths, standing, until,
};
use crate::victim;

/// R058, P099: the shim notices the worker's death and takes the whole tree with it.
#[cfg_attr(any(), test)]
pub fn a_killed_worker_leaves_no_survivor() {
    for hold in holds() {
        let dir = tempfile::tempdir().unwrap();
        let mut worker = victim::start(&open(hold), dir.path());
        let members = standing(shim_of_the_only_record(dir.path()));
        worker.kill().unwrap();
        worker.wait().unwrap();
        until("all are gone", || alive(&members).is_empty());
        let swept = sweep(dir.path()).unwrap();
        assert_eq!(swept[0].outcome, SweptOutcome::NothingLeft);
        assert_eq!(record_paths(dir.path()), Vec::<std::path::PathBuf>::new());
    }
}

/// The tree of a killed shim falls to the worker, which ends it and says so.
#[cfg_attr(any(), test)]
pub fn a_killed_shim_leaves_no_survivor() {
    adopt_orphans().unwrap();
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (mut tree, members) = family(open(hold.clone()), dir.path()).await;
            signal(record(dir.path()).shim.unwrap(), Signal::SIGKILL);
            assert_eq!(tree.ended().await, (None, confirmed()), "{hold:?}");
            assert_eq!(alive(&members), []);
        });
    }
    nix::sys::prctl::set_child_subreaper(false).unwrap();
}

/// P001, R240: worker and shim gone at once; the record is enough for the next start.
#[cfg_attr(any(), test)]
pub fn a_worker_killed_with_its_shim_is_swept_after() {
    for hold in holds() {
        let dir = tempfile::tempdir().unwrap();
        let mut worker = victim::start(&open(hold.clone()), dir.path());
        let shim = shim_of_the_only_record(dir.path());
        let mut members = standing(shim);
        // Stopped first, so that it cannot act on its shim's end.
        signal(Fingerprint::of(worker.id().cast_signed()).unwrap(), Signal::SIGSTOP);
        signal(shim, Signal::SIGKILL);
        worker.kill().unwrap();
        worker.wait().unwrap();
        let swept = sweep(dir.path()).unwrap();
        assert!(
            matches!(swept[0].outcome, SweptOutcome::Killed(_) | SweptOutcome::NothingLeft),
            "{swept:?}"
        );
        if hold == Hold::Descendants {
            members = without_the_untraceable(members);
        }
        assert_eq!(alive(&members), [], "{hold:?}");
    }
}

/// P001: killed between the record and the first report, so that only the marker is known.
#[cfg_attr(any(), test)]
pub fn a_reboot_of_the_worker_in_the_middle_of_a_spawn_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let marker = &format!("marker-of-{}", std::process::id());
    let mut ours = Command::new("sleep").arg("1000").env(MARKER, marker).spawn().unwrap();
    let mut other = Command::new("sleep").arg("1000").env(MARKER, "other").spawn().unwrap();
    let process = |child: &std::process::Child| Fingerprint::of(child.id().cast_signed()).unwrap();
    let (found, spared) = (process(&ours), process(&other));
    let intent = ProcessRecord {
        attempt: "build/a/1".to_owned(),
        marker: marker.clone(),
        boot_id: boot_id().unwrap(),
        shim: None,
        init: None,
        program: None,
        cgroup: None,
    };
    intent.write(dir.path()).unwrap();
    let swept = sweep(dir.path()).unwrap();
    assert_eq!(swept[0].outcome, SweptOutcome::Killed(BTreeSet::from([found])));
    assert!(spared.is_alive());
    other.kill().unwrap();
    other.wait().unwrap();
    let _ = ours.wait();
}

/// Without namespace and cgroup, a daemon that cleared its environment *and* lost every recorded
/// ancestor cannot be proved ours, and what cannot be proved is not killed. The test ends it.
fn without_the_untraceable(members: BTreeSet<Fingerprint>) -> BTreeSet<Fingerprint> {
    let (bare, traceable): (BTreeSet<_>, _) = members.into_iter().partition(|member| {
        std::fs::read(format!("/proc/{}/environ", member.pid)).is_ok_and(|all| all.is_empty())
    });
    bare.into_iter()
        .filter(|member| member.is_alive())
        .for_each(|member| signal(member, Signal::SIGKILL));
    traceable
}

fn shim_of_the_only_record(records: &Path) -> Fingerprint {
    let mut shim = None;
    until("the record is complete", || {
        // A draft is not durable yet, and a worker killed now would leave none.
        let mut paths = record_paths(records);
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        let complete = |path: &std::path::PathBuf| {
            ProcessRecord::read(path).ok().filter(|r| r.program.is_some())
        };
        shim = paths.first().and_then(complete).and_then(|record| record.shim);
        shim.is_some()
    });
    shim.unwrap()
}

fn signal(process: Fingerprint, signal: Signal) {
    kill(Pid::from_raw(process.pid), signal).unwrap();
}

//! The sweep at a worker's start: exactly what is proved ours.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::process::{Child, Command};

use ganger_worker::process::{Fingerprint, ProcessRecord, Swept, SweptOutcome, boot_id, sweep};

use crate::support::record_paths;

fn sleeper() -> (Child, Fingerprint) {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    let process = Fingerprint::of(child.id().cast_signed()).unwrap();
    (child, process)
}

fn record_of(marker: &str, program: Fingerprint) -> ProcessRecord {
    ProcessRecord {
        attempt: format!("build/{marker}/1"),
        marker: marker.to_owned(),
        boot_id: boot_id().unwrap(),
        shim: None,
        init: None,
        program: Some(program),
        cgroup: None,
    }
}

/// R240: pid *and* start time prove ownership; a recycled pid is somebody else.
#[cfg_attr(any(), test)]
pub fn only_the_recorded_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorded, ours) = sleeper();
    let (mut bystander, theirs) = sleeper();
    let recycled = Fingerprint { start: theirs.start - 1, ..theirs };
    let records = [record_of("a", ours), record_of("b", recycled)];
    for record in &records {
        record.write(dir.path()).unwrap();
    }
    let swept = sweep(dir.path()).unwrap();
    let entry = |record: &ProcessRecord, outcome| Swept {
        path: record.path(dir.path()),
        attempt: Some(record.attempt.clone()),
        outcome,
    };
    let expected = vec![
        entry(&records[0], SweptOutcome::Killed(BTreeSet::from([ours]))),
        entry(&records[1], SweptOutcome::NothingLeft),
    ];
    assert_eq!(swept, expected);
    assert!(!ours.is_alive());
    assert!(theirs.is_alive());
    assert_eq!(record_paths(dir.path()), Vec::<std::path::PathBuf>::new());
    let _ = recorded.wait();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[cfg_attr(any(), test)]
pub fn a_record_of_another_boot_kills_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bystander, theirs) = sleeper();
    let record = ProcessRecord { boot_id: "another".to_owned(), ..record_of("a", theirs) };
    record.write(dir.path()).unwrap();
    assert_eq!(sweep(dir.path()).unwrap()[0].outcome, SweptOutcome::OtherBoot);
    assert!(theirs.is_alive());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[cfg_attr(any(), test)]
pub fn a_record_that_cannot_be_read_is_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("torn.json"), "{\"attempt\":").unwrap();
    let swept = sweep(dir.path()).unwrap();
    assert!(matches!(swept[0].outcome, SweptOutcome::Unreadable(_)), "{swept:?}");
    assert_eq!(record_paths(dir.path()), [dir.path().join("torn.unreadable")]);
    std::fs::write(dir.path().join("half.draft"), "{").unwrap();
    assert_eq!(sweep(dir.path()).unwrap(), []);
    assert_eq!(record_paths(dir.path()), [dir.path().join("torn.unreadable")]);
    assert_eq!(sweep(&dir.path().join("absent")).unwrap(), []);
}

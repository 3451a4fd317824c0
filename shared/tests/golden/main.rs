//! The journal's schema, held by one stored line for every kind of event.
//!
//! A line that was ever released must read for ever. After adding a kind, write its line with
//! `GANGER_UPDATE=1 cargo test -p ganger-shared --test golden`; a changed line is a broken journal.

#![allow(clippy::disallowed_methods, reason = "a test reads its golden file")]

mod samples;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ganger_shared::event::{Envelope, FleetEvent, RunEvent, SystemEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

/// Compares what this build writes with what was stored, line by line, and reads each stored line.
fn hold<E: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    name: &str,
    samples: &[Envelope<E>],
) {
    let written: Vec<String> = samples
        .iter()
        .map(|sample| serde_json::to_string(sample).expect("an event is plain data"))
        .collect();
    let path = file(name);
    if std::env::var_os("GANGER_UPDATE").is_some() {
        fs::write(&path, written.join("\n") + "\n").expect("the golden file can be written");
    }
    let text = fs::read_to_string(&path).expect("the golden file is there");
    let stored: Vec<&str> = text.lines().collect();
    for (line, sample) in stored.iter().zip(samples) {
        let read: Envelope<E> = serde_json::from_str(line).unwrap_or_else(|error| {
            panic!("{name}: a released line does not read: {error}\n{line}")
        });
        assert_eq!(read, *sample, "{name}: a released line reads as something else");
    }
    assert_eq!(stored, written, "{name}: this build writes other lines than were released");
}

/// The kinds there are, as the reader names them when it meets one it does not know.
fn all_kinds<E: DeserializeOwned + std::fmt::Debug>() -> BTreeSet<String> {
    let error = serde_json::from_str::<E>(r#"{"type":"?"}"#).expect_err("`?` is no kind");
    let text = error.to_string();
    let (_, expected) = text.split_once("expected").expect("the reader says what it expects");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The kinds of these events.
fn kinds<E: Serialize>(samples: &[Envelope<E>]) -> BTreeSet<String> {
    samples
        .iter()
        .map(|sample| {
            let value = serde_json::to_value(sample).expect("an event is plain data");
            value["type"].as_str().expect("an event says its type").to_owned()
        })
        .collect()
}

#[test]
fn every_kind_of_run_event_reads_and_writes_as_released() {
    let samples = samples::run();
    hold::<RunEvent>("run-events.jsonl", &samples);
    assert_eq!(kinds(&samples), all_kinds::<RunEvent>());
}

#[test]
fn every_kind_of_fleet_event_reads_and_writes_as_released() {
    let samples = samples::fleet();
    hold::<FleetEvent>("fleet-events.jsonl", &samples);
    assert_eq!(kinds(&samples), all_kinds::<FleetEvent>());
}

#[test]
fn every_kind_of_system_event_reads_and_writes_as_released() {
    let samples = samples::system();
    hold::<SystemEvent>("system-events.jsonl", &samples);
    assert_eq!(kinds(&samples), all_kinds::<SystemEvent>());
}

//! Opening small journals, filling them, and reading them behind the journal's back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_coordinator::journal::{FlushAt, Journal, OpenError, OpenReport, Options, StreamName};
use ganger_shared::digest::Digest;

/// Bounds small enough for a test's disk and memory.
pub fn small() -> Options {
    Options {
        reserve_bytes: 64 * 1024,
        floor_bytes: 0,
        cache_bytes: 4 << 20,
        flush_at: FlushAt { events: 20, bytes: 16 * 1024, after: Duration::from_millis(50) },
        ..Options::default()
    }
}

pub fn open(dir: &Path) -> (Journal, OpenReport) {
    Journal::open(dir, small()).unwrap()
}

pub fn refused(dir: &Path, options: Options) -> OpenError {
    match Journal::open(dir, options) {
        Err(error) => error,
        Ok((_, report)) => panic!("expected a refusal, got {report:?}"),
    }
}

pub fn stream(name: &str) -> StreamName {
    name.parse().unwrap()
}

pub fn body(n: u64) -> String {
    format!(r#"{{"n":{n},"text":"an event like any other"}}"#)
}

pub fn bodies(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(body).collect()
}

/// Appends `count` events to a stream, one by one.
pub async fn fill(journal: &Journal, name: &str, count: u64) {
    let stream = stream(name);
    let at = journal.read(&stream, 1, usize::MAX).unwrap().len() as u64;
    for n in at..at + count {
        journal.append(&stream, n, vec![body(n + 1)]).await.unwrap();
    }
}

/// A stream's bodies.
pub fn stored(journal: &Journal, name: &str) -> Vec<String> {
    let events = journal.read(&stream(name), 1, usize::MAX).unwrap();
    events.into_iter().map(|event| event.body).collect()
}

pub fn segment(dir: &Path) -> PathBuf {
    dir.join("log/00000001.log")
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Everything sled holds, read by sled alone.
pub fn sled_content(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = sled::open(dir.join("sled")).unwrap();
    let all = db.iter().map(|pair| pair.unwrap());
    all.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Checks every event in sled against its stream's chain, with nothing but sled and SHA-256;
/// returns how many there are.
pub fn sled_verifies_alone(dir: &Path) -> usize {
    let mut before: Option<(String, u64, String)> = None;
    let mut events = 0;
    for (key, value) in sled_content(dir).into_iter().filter(|(key, _)| key.len() > 1) {
        let line = std::str::from_utf8(&value[8..]).unwrap();
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        let (stream, seq) = (text("stream"), event["seq"].as_u64().unwrap());
        assert_eq!(key, [stream.as_bytes(), &[0], &seq.to_be_bytes()].concat());
        assert_eq!(Digest::of(&line.as_bytes()[75..]).to_string(), text("hash"));
        let expected = match &before {
            Some((name, seq, hash)) if *name == stream => (seq + 1, hash.clone()),
            Some(_) | None => (1, "0".repeat(64)),
        };
        assert_eq!((seq, text("prev_hash")), expected);
        before = Some((stream, seq, text("hash")));
        events += 1;
    }
    events
}

/// Writes a frame as the log does, whatever it holds.
pub fn frame(log_seq: u64, payload: &str) -> String {
    let rest = format!("{log_seq} 0/1 {} {payload}", payload.len());
    format!("{:08x} {rest}\n", crc32fast::hash(rest.as_bytes()))
}

/// The payloads of a log's only segment.
pub fn payloads(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(segment(dir)).unwrap();
    text.lines().map(|line| line.splitn(5, ' ').nth(4).unwrap().to_owned()).collect()
}

/// Replaces the log by these payloads, every frame good in itself.
pub fn rewrite_log(dir: &Path, payloads: &[String]) {
    let frames = (1..).zip(payloads).map(|(log_seq, payload)| frame(log_seq, payload));
    fs::write(segment(dir), frames.collect::<String>()).unwrap();
}

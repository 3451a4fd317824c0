//! `journal verify` names the first bad event; `export` proves itself.

use std::fs;

use ganger_coordinator::journal::{BadKind, IndexState, VerifyError, export, verify};
use ganger_shared::digest::Digest;
use serde_json::Value;
use tempfile::TempDir;

use super::support::{body, fill, frame, open, payloads, rewrite_log, segment, stream};

/// A closed journal: line 1 names the store, events 1 to 6 of `run/a` and `run/b` alternate.
async fn closed() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    for _ in 0..6 {
        fill(&journal, "run/a", 1).await;
        fill(&journal, "run/b", 1).await;
    }
    journal.close().await.unwrap();
    dir
}

/// Stream, number, place in the log, offset and kind of the first bad event.
fn first_bad(dir: &TempDir) -> (Option<String>, Option<u64>, u64, u64, BadKind) {
    let bad = verify(dir.path()).unwrap().first_bad.unwrap();
    (bad.stream, bad.seq, bad.log_seq, bad.offset, bad.kind)
}

fn offset_of(dir: &TempDir, line: usize) -> u64 {
    let text = fs::read_to_string(segment(dir.path())).unwrap();
    text.split_inclusive('\n').take(line - 1).map(|line| line.len() as u64).sum()
}

#[tokio::test]
async fn a_good_journal_verifies_closed_and_while_it_runs() {
    let dir = closed().await;
    let report = verify(dir.path()).unwrap();
    assert_eq!((report.events, report.streams, report.log_seq), (12, 2, 13));
    assert_eq!((report.first_bad, report.torn), (None, None));
    assert_eq!(report.index, IndexState::Compared { log_seq: 13 });
    let (journal, _) = open(dir.path());
    fill(&journal, "run/a", 1).await;
    let report = verify(dir.path()).unwrap();
    assert_eq!((report.events, report.first_bad), (13, None));
    assert_eq!(report.index, IndexState::Held { pid: std::process::id() });
}

#[test]
fn a_directory_without_a_journal_is_not_a_good_one() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(verify(dir.path()), Err(VerifyError::Absent { .. })));
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "and none is made");
}

/// P110: a flipped bit is named with its event, its file and its offset.
#[tokio::test]
async fn a_flipped_bit_is_named() {
    let dir = closed().await;
    let offset = offset_of(&dir, 6);
    let mut bytes = fs::read(segment(dir.path())).unwrap();
    let end = usize::try_from(offset_of(&dir, 7)).unwrap();
    bytes[end - 5] ^= 1;
    fs::write(segment(dir.path()), bytes).unwrap();
    assert_eq!(first_bad(&dir), (Some("run/a".into()), Some(3), 6, offset, BadKind::Crc));
}

/// R162: verification names the first bad event, by hash or by the hash before.
#[tokio::test]
async fn an_edit_is_named_by_hash_and_its_repair_by_the_next_events_prev() {
    let dir = closed().await;
    let good = payloads(dir.path());
    let mut lines = good.clone();
    lines[5] = lines[5].replace("like any other", "unlike the rest");
    rewrite_log(dir.path(), &lines);
    let offset = offset_of(&dir, 6);
    assert_eq!(first_bad(&dir), (Some("run/a".into()), Some(3), 6, offset, BadKind::Hash));
    // The forger computes the hash anew; the index and the next event still know better.
    let hash = Digest::of(&lines[5].as_bytes()[75..]).to_string();
    lines[5].replace_range(9..73, &hash);
    rewrite_log(dir.path(), &lines);
    let offset = offset_of(&dir, 6);
    assert_eq!(first_bad(&dir), (Some("run/a".into()), Some(3), 6, offset, BadKind::SledDiffers));
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    let offset = offset_of(&dir, 8);
    assert_eq!(first_bad(&dir), (Some("run/a".into()), Some(4), 8, offset, BadKind::Prev));
}

#[tokio::test]
async fn a_missing_event_is_a_gap() {
    let dir = closed().await;
    let good = fs::read_to_string(segment(dir.path())).unwrap();
    let lines = good.split_inclusive('\n').enumerate();
    let without: String = lines.filter(|(at, _)| *at != 5).map(|(_, line)| line).collect();
    fs::write(segment(dir.path()), without).unwrap();
    let offset = offset_of(&dir, 6);
    assert_eq!(first_bad(&dir), (Some("run/b".into()), Some(3), 6, offset, BadKind::Gap));
    // The same with the lines numbered anew: then the stream itself shows it.
    fs::write(segment(dir.path()), good).unwrap();
    let mut lines = payloads(dir.path());
    lines.remove(5);
    rewrite_log(dir.path(), &lines);
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    let offset = offset_of(&dir, 7);
    assert_eq!(first_bad(&dir), (Some("run/a".into()), Some(4), 7, offset, BadKind::Gap));
}

/// R165: a hand edit of the index has no effect on the truth and is found.
#[tokio::test]
async fn what_the_index_changed_lost_or_made_up_is_named() {
    let key = |seq: u64| [&b"run/a\0"[..], &seq.to_be_bytes()].concat();
    let value = |line: &str| [&99u64.to_be_bytes()[..], line.as_bytes()].concat();
    for harm in ["changed", "lost", "made up"] {
        let dir = closed().await;
        let line = payloads(dir.path())[5].clone();
        let db = sled::open(dir.path().join("sled")).unwrap();
        let (seq, log_seq, offset) = match harm {
            "changed" => {
                db.insert(key(3), value(&line)).unwrap();
                (3, 6, offset_of(&dir, 6))
            }
            "lost" => {
                db.remove(key(3)).unwrap();
                (3, 6, offset_of(&dir, 6))
            }
            _ => {
                db.insert(key(7), value(&line.replace("\"seq\":3", "\"seq\":7"))).unwrap();
                (7, 99, 0)
            }
        };
        drop(db);
        let expected = (Some("run/a".into()), Some(seq), log_seq, offset, BadKind::SledDiffers);
        assert_eq!(first_bad(&dir), expected, "{harm}");
    }
}

#[tokio::test]
async fn an_unfinished_write_at_the_end_is_not_a_bad_event() {
    let dir = closed().await;
    let mut bytes = fs::read(segment(dir.path())).unwrap();
    let len = bytes.len();
    bytes.extend_from_slice(&frame(14, "{\"half").as_bytes()[..12]);
    fs::write(segment(dir.path()), bytes).unwrap();
    let report = verify(dir.path()).unwrap();
    assert_eq!((report.first_bad, report.events), (None, 12));
    assert_eq!(report.torn.unwrap().offset, len as u64);
}

#[tokio::test]
async fn an_export_is_the_stored_lines_and_proves_itself() {
    let dir = closed().await;
    let mut all = Vec::new();
    assert_eq!(export(dir.path(), None, &mut all).unwrap(), 12);
    let mut one = Vec::new();
    assert_eq!(export(dir.path(), Some(&stream("run/b")), &mut one).unwrap(), 6);
    let mut prev_hash = "0".repeat(64);
    for (line, seq) in std::str::from_utf8(&one).unwrap().lines().zip(1..) {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["stream"], &event["seq"]), (&"run/b".into(), &seq.into()));
        assert_eq!(event["body"], serde_json::from_str::<Value>(&body(seq)).unwrap());
        assert_eq!(event["prev_hash"], prev_hash.as_str());
        prev_hash = Digest::of(&line.as_bytes()[75..]).to_string();
        assert_eq!(event["hash"], prev_hash.as_str());
    }
}

//! Snapshots: loaded only when whole and of this history.

use std::fs;
use std::path::{Path, PathBuf};

use ganger_coordinator::journal::{
    IgnoredSnapshot, LoadedSnapshot, Snapshot, SnapshotError, SnapshotFault,
};

use super::support::{copy, fill, open, stream};

fn at(seq: u64) -> Snapshot {
    Snapshot { seq, schema: 1, bytes: format!("state at {seq}").into_bytes() }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("snapshots")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn the_newest_good_snapshot_is_loaded_and_a_bad_one_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 4).await;
    let s = stream("run/r-1");
    assert_eq!(journal.load_snapshot(&s, 1).unwrap(), LoadedSnapshot::default());
    for seq in 1..=4 {
        journal.save_snapshot(&s, &at(seq)).unwrap();
    }
    let kept = files(dir.path());
    assert_eq!(kept.len(), 2, "the newest and one to fall back on");
    let good = |snapshot| LoadedSnapshot { snapshot: Some(snapshot), ignored: vec![] };
    assert_eq!(journal.load_snapshot(&s, 1).unwrap(), good(at(4)));
    assert_eq!(journal.load_snapshot(&s, 2).unwrap(), LoadedSnapshot::default());
    assert_eq!(journal.load_snapshot(&stream("run/r"), 1).unwrap(), LoadedSnapshot::default());
    let mut bytes = fs::read(&kept[1]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&kept[1], bytes).unwrap();
    let bad = IgnoredSnapshot { file: kept[1].clone(), why: SnapshotFault::Damaged };
    let expected = LoadedSnapshot { snapshot: Some(at(3)), ignored: vec![bad] };
    assert_eq!(journal.load_snapshot(&s, 1).unwrap(), expected);
}

#[tokio::test]
async fn a_snapshot_of_events_this_journal_does_not_have_is_ignored() {
    let (dir, fork) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, _) = open(dir.path());
    let s = stream("run/r-1");
    fill(&journal, "run/r-1", 1).await;
    journal.close().await.unwrap();
    copy(dir.path(), fork.path());
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 1).await;
    journal.save_snapshot(&s, &at(2)).unwrap();
    let missing = journal.save_snapshot(&s, &at(3));
    assert!(matches!(missing, Err(SnapshotError::NoEvent { seq: 3, .. })), "{missing:?}");
    copy(&dir.path().join("snapshots"), &fork.path().join("snapshots"));
    let (journal, _) = open(fork.path());
    let why = SnapshotFault::OtherHistory;
    let ignored = vec![IgnoredSnapshot { file: files(fork.path())[0].clone(), why }];
    let nothing = LoadedSnapshot { snapshot: None, ignored };
    assert_eq!(journal.load_snapshot(&s, 1).unwrap(), nothing, "no such event yet");
    journal.append(&s, 1, vec![r#""something else""#.to_owned()]).await.unwrap();
    assert_eq!(journal.load_snapshot(&s, 1).unwrap(), nothing, "another event in its place");
}

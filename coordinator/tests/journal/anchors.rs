//! What workers have seen against what the journal still has.

use std::fs;

use ganger_coordinator::journal::{Anchor, Journal, OpenError, Options, Standing};
use ganger_shared::digest::Digest;

use super::support::{copy, fill, open, refused, segment, small, stored};

#[tokio::test]
async fn an_anchor_is_same_ahead_behind_or_forked() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, report) = open(dir.path());
    let genesis = report.tip;
    assert_eq!(journal.check_anchor(&genesis).unwrap(), Standing::Same);
    fill(&journal, "run/r-1", 3).await;
    let tip = journal.tip();
    let with = |log_seq, hash| Anchor { log_seq, hash, ..tip.clone() };
    let other = Digest::of(b"another history");
    assert_eq!(journal.check_anchor(&tip).unwrap(), Standing::Same);
    assert_eq!(journal.check_anchor(&genesis).unwrap(), Standing::Ahead);
    assert_eq!(journal.check_anchor(&with(tip.log_seq + 1, other)).unwrap(), Standing::Behind);
    assert_eq!(journal.check_anchor(&with(tip.log_seq, other)).unwrap(), Standing::Forked);
    assert_eq!(journal.check_anchor(&with(2, other)).unwrap(), Standing::Forked);
    let stranger = Anchor { store_id: "another".into(), ..tip.clone() };
    assert_eq!(journal.check_anchor(&stranger).unwrap(), Standing::Forked);
    let later = Anchor { generation: 2, ..tip };
    assert_eq!(journal.check_anchor(&later).unwrap(), Standing::Behind);
}

#[tokio::test]
async fn a_restored_backup_is_behind_what_was_seen_until_the_loss_is_accepted() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 2).await;
    journal.close().await.unwrap();
    copy(dir.path(), backup.path());
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 2).await;
    let seen = journal.tip();

    let (journal, _) = open(backup.path());
    assert_eq!(journal.check_anchor(&seen).unwrap(), Standing::Behind);
    journal.close().await.unwrap();
    let options = Options { accept_loss: true, ..small() };
    let (journal, report) = Journal::open(backup.path(), options).unwrap();
    assert!(report.loss_accepted);
    assert_eq!((report.tip.generation, &report.tip.store_id), (2, &seen.store_id));
    assert_eq!(journal.check_anchor(&seen).unwrap(), Standing::Ahead);
    fill(&journal, "run/r-1", 1).await;
    assert_eq!(stored(&journal, "run/r-1").len(), 3);
    journal.close().await.unwrap();
    assert_eq!(open(backup.path()).1.tip.generation, 2);
}

#[tokio::test]
async fn a_log_shorter_than_what_was_acknowledged_is_refused_until_the_loss_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 3).await;
    journal.close().await.unwrap();
    let bytes = fs::read(segment(dir.path())).unwrap();
    fs::write(segment(dir.path()), &bytes[..bytes.len() - 1]).unwrap();
    // With or without the index: the mark of what was verified remembers it too.
    for _ in 0..2 {
        let error = refused(dir.path(), small());
        assert!(
            matches!(error, OpenError::LogBehindIndex { log_seq: 3, seen: 4, .. }),
            "{error:?}"
        );
        let _ = fs::remove_dir_all(dir.path().join("sled"));
    }
    let options = Options { accept_loss: true, ..small() };
    let (journal, report) = Journal::open(dir.path(), options).unwrap();
    assert_eq!((report.tip.generation, stored(&journal, "run/r-1").len()), (2, 2));
    fill(&journal, "run/r-1", 2).await;
    journal.close().await.unwrap();
    let (journal, _) = open(dir.path());
    assert_eq!(stored(&journal, "run/r-1").len(), 4);
}

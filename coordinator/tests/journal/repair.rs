//! What opening repairs, and what it refuses to.

use std::fs;
use std::path::Path;

use ganger_coordinator::journal::{IndexOutcome, Journal, OpenError, Options};
use ganger_log::{LockError, OpenError as LogError};
use tempfile::TempDir;

use super::support::{
    bodies, copy, fill, open, payloads, refused, rewrite_log, segment, sled_content,
    sled_verifies_alone, small, stored, stream,
};

/// A closed journal of two streams, 30 and 10 events.
async fn closed() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 30).await;
    fill(&journal, "fleet", 10).await;
    journal.close().await.unwrap();
    dir
}

/// Opens a journal whose index was harmed and returns what became of the index.
async fn mended(dir: &Path) -> IndexOutcome {
    let (journal, report) = open(dir);
    assert_eq!(stored(&journal, "run/r-1"), bodies(1..=30));
    assert_eq!(stored(&journal, "fleet"), bodies(1..=10));
    fill(&journal, "fleet", 1).await;
    journal.close().await.unwrap();
    assert_eq!(sled_verifies_alone(dir), 41);
    report.index
}

/// R162, R163: after a clean close sled alone holds every event, and its chain verifies.
#[tokio::test]
async fn after_a_clean_close_sled_alone_verifies() {
    let dir = closed().await;
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    assert_eq!(sled_verifies_alone(dir.path()), 40);
}

#[tokio::test]
async fn a_clean_close_leaves_nothing_to_do() {
    let dir = closed().await;
    let (_, report) = open(dir.path());
    assert_eq!((report.index, report.log.cut, report.removed), (IndexOutcome::Kept, None, vec![]));
    assert_eq!(report.verified_from, report.tip.log_seq + 1);
}

/// R165: the index is only a projection: built from the log it is the same, byte for byte.
#[tokio::test]
async fn a_deleted_index_is_rebuilt_byte_for_byte() {
    let dir = closed().await;
    let before = sled_content(dir.path());
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    let (journal, report) = open(dir.path());
    assert!(matches!(report.index, IndexOutcome::Rebuilt { lines: 41, .. }), "{report:?}");
    journal.close().await.unwrap();
    assert_eq!(sled_content(dir.path()), before);
}

/// P111: whatever happened to sled's files, the journal opens with everything in it.
#[tokio::test]
async fn an_index_of_garbage_or_cut_off_anywhere_is_put_aside_and_rebuilt() {
    let origin = closed().await;
    // Opening it once more makes sled write a snapshot, which the rest must then agree with.
    open(origin.path()).0.close().await.unwrap();
    let db = |dir: &Path| dir.join("sled/db");
    let bytes = fs::read(db(origin.path())).unwrap();
    let mut harms: Vec<Vec<u8>> = vec![b"not a database".repeat(1000), vec![0; bytes.len()]];
    harms.extend([0, 1, 2, 5, 9].map(|tenths| bytes[..bytes.len() * tenths / 10].to_vec()));
    let mut put_aside = 0;
    for harmed in harms {
        let dir = tempfile::tempdir().unwrap();
        copy(origin.path(), dir.path());
        fs::write(db(dir.path()), harmed).unwrap();
        if let IndexOutcome::Rebuilt { quarantine: Some(aside), .. } = mended(dir.path()).await {
            assert!(aside.join("db").exists());
            put_aside += 1;
        }
    }
    assert!(put_aside >= 3, "only {put_aside} were put aside");
}

/// P111: a half-written snapshot would keep sled from ever opening; it is removed first.
#[tokio::test]
async fn a_snapshot_left_generating_is_removed() {
    let dir = closed().await;
    for (name, content) in [("snap.1.generating", ""), ("snap.00000A.generating", "half")] {
        fs::write(dir.path().join("sled").join(name), content).unwrap();
    }
    let (journal, report) = open(dir.path());
    assert_eq!((report.removed.len(), report.index), (2, IndexOutcome::Kept));
    assert_eq!(stored(&journal, "run/r-1"), bodies(1..=30));
}

#[tokio::test]
async fn an_unfinished_rebuild_is_begun_again() {
    let dir = closed().await;
    fs::write(dir.path().join("sled.rebuilding"), "").unwrap();
    assert!(matches!(mended(dir.path()).await, IndexOutcome::Rebuilt { quarantine: None, .. }));
    assert!(!dir.path().join("sled.rebuilding").exists());
}

#[tokio::test]
async fn an_index_is_rebuilt_when_asked_for() {
    let dir = closed().await;
    let options = Options { rebuild_index: true, ..small() };
    let (journal, report) = Journal::open(dir.path(), options).unwrap();
    let quarantined = matches!(report.index, IndexOutcome::Rebuilt { quarantine: Some(_), .. });
    assert!(quarantined, "{report:?}");
    assert_eq!(stored(&journal, "run/r-1"), bodies(1..=30));
}

/// R165: an index that was edited by hand, or is another journal's, is found and rebuilt.
#[tokio::test]
async fn an_index_that_differs_from_the_log_is_rebuilt() {
    let dir = closed().await;
    let key = [&b"run/r-1\0"[..], &7u64.to_be_bytes()].concat();
    let db = sled::open(dir.path().join("sled")).unwrap();
    let line = db.get(&key).unwrap().unwrap();
    let edited = String::from_utf8(line[8..].to_vec()).unwrap().replace("\"n\":7", "\"n\":8");
    db.insert(&key, [&line[..8], edited.as_bytes()].concat()).unwrap();
    drop(db);
    // Without the mark everything is compared.
    fs::remove_file(dir.path().join("verified")).unwrap();
    assert!(matches!(mended(dir.path()).await, IndexOutcome::Rebuilt { .. }));

    let (dir, other) = (closed().await, tempfile::tempdir().unwrap());
    let (journal, _) = open(other.path());
    fill(&journal, "system", 5).await;
    journal.close().await.unwrap();
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    copy(&other.path().join("sled"), &dir.path().join("sled"));
    assert!(matches!(mended(dir.path()).await, IndexOutcome::Rebuilt { .. }));
}

#[tokio::test]
async fn an_index_that_lacks_the_last_lines_is_completed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 10).await;
    journal.close().await.unwrap();
    let old = tempfile::tempdir().unwrap();
    copy(&dir.path().join("sled"), &old.path().join("sled"));
    let (journal, _) = open(dir.path());
    fill(&journal, "run/r-1", 20).await;
    fill(&journal, "fleet", 10).await;
    journal.close().await.unwrap();
    fs::remove_dir_all(dir.path().join("sled")).unwrap();
    copy(&old.path().join("sled"), &dir.path().join("sled"));
    assert_eq!(mended(dir.path()).await, IndexOutcome::Completed { lines: 30 });
}

/// P110, R163: a batch cut off at any byte before it was acknowledged vanishes, the rest stays.
#[tokio::test]
async fn a_torn_tail_is_cut_and_reported_and_the_next_append_is_readable() {
    let before = closed().await;
    let len = fs::read(segment(before.path())).unwrap().len();
    let after = tempfile::tempdir().unwrap();
    copy(before.path(), after.path());
    let (journal, _) = open(after.path());
    journal.append(&stream("fleet"), 10, bodies([11, 12])).await.unwrap();
    journal.close().await.unwrap();
    let bytes = fs::read(segment(after.path())).unwrap();
    for cut in (len + 1..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let dir = tempfile::tempdir().unwrap();
        copy(before.path(), dir.path());
        fs::write(segment(dir.path()), &bytes[..cut]).unwrap();
        let (journal, report) = open(dir.path());
        assert_eq!(report.log.cut.unwrap().offset, len as u64);
        journal.close().await.unwrap();
        assert_eq!(mended(dir.path()).await, IndexOutcome::Kept);
    }
}

/// P110: a flipped bit in the middle is refused with file and offset, and nothing is touched.
#[tokio::test]
async fn a_flipped_bit_is_refused_with_its_offset() {
    let dir = closed().await;
    let mut bytes = fs::read(segment(dir.path())).unwrap();
    let at = bytes.len() / 2;
    let line = bytes[..at].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    bytes[at] ^= 4;
    fs::write(segment(dir.path()), &bytes).unwrap();
    let error = refused(dir.path(), small());
    let OpenError::Log(LogError::Corrupt(corrupt)) = error else { panic!("{error:?}") };
    assert_eq!((corrupt.file, corrupt.offset), (segment(dir.path()), line as u64));
    assert_eq!(fs::read(segment(dir.path())).unwrap(), bytes);
}

/// R162: an edit that keeps every checksum right is found by the chain, also without the index.
#[tokio::test]
async fn an_edited_log_is_refused_even_with_its_checksums_made_right() {
    let dir = closed().await;
    let mut lines = payloads(dir.path());
    lines[5] = lines[5].replace("like any other", "unlike the rest");
    rewrite_log(dir.path(), &lines);
    for name in ["sled", "verified"] {
        let path = dir.path().join(name);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    let error = refused(dir.path(), small());
    let OpenError::Bad(bad) = error else { panic!("{error:?}") };
    assert_eq!((bad.stream.as_deref(), bad.seq, bad.log_seq), (Some("run/r-1"), Some(5), 6));
}

#[tokio::test]
async fn a_second_opener_is_refused_with_the_owners_pid() {
    let dir = tempfile::tempdir().unwrap();
    let (_journal, _) = open(dir.path());
    let error = refused(dir.path(), small());
    let OpenError::Log(LogError::Lock(LockError::Held { owner, .. })) = error else {
        panic!("{error:?}")
    };
    assert_eq!(owner.pid, std::process::id());
}

//! What appending promises: numbers, rolling, bounds, failed syncs and full disks.
//!
//! Not here: what a crash leaves behind; see `torn.rs` and `random.rs`.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ganger_log::{
    AppendError, Disk, Frames, LockError, Log, OpenError, Options, ReadError, RealDisk,
};

/// A real file on a disk that has room for so many bytes and survives so many syncs.
struct SmallDisk {
    room: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
}

impl Disk for SmallDisk {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let room = self.room.load(Ordering::Relaxed);
        let fits = usize::try_from(room).unwrap().min(bytes.len());
        file.write_all(&bytes[..fits])?;
        if fits < bytes.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        self.room.store(room - fits as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        match self.syncs.load(Ordering::Relaxed) {
            0 => Err(io::Error::other("the disk is gone")),
            left => {
                self.syncs.store(left - 1, Ordering::Relaxed);
                file.sync_data()
            }
        }
    }

    fn free_bytes(&mut self, dir: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(dir)
    }
}

fn small_disk(room: u64, syncs: u64) -> (Options, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (room, syncs) = (Arc::new(AtomicU64::new(room)), Arc::new(AtomicU64::new(syncs)));
    let disk = SmallDisk { room: Arc::clone(&room), syncs: Arc::clone(&syncs) };
    (Options { disk: Box::new(disk), ..Options::default() }, room, syncs)
}

fn payloads(log: &Log, from: u64) -> Vec<(u64, String)> {
    let frames = log.read_from(from).unwrap().map(Result::unwrap);
    frames.map(|frame| (frame.log_seq, frame.payload)).collect()
}

fn numbered(from: u64, texts: &[&str]) -> Vec<(u64, String)> {
    (from..).zip(texts.iter().map(|&text| text.to_owned())).collect()
}

#[test]
fn numbers_run_on_over_batches_segments_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let small = || Options { segment_bytes: 60, ..Options::default() };
    let (mut log, report) = Log::open(dir.path(), small()).unwrap();
    assert!(report.created);
    assert_eq!(log.append_batch(&["one", "two"]).unwrap(), 1..=2);
    assert_eq!(log.append_batch(&["three"]).unwrap(), 3..=3);
    drop(log);
    let (mut log, report) = Log::open(dir.path(), small()).unwrap();
    assert_eq!((report.created, report.segments, report.next_log_seq), (false, 2, 4));
    assert_eq!(log.append_batch(&["four"]).unwrap(), 4..=4);
    assert_eq!(payloads(&log, 1), numbered(1, &["one", "two", "three", "four"]));
    assert_eq!(payloads(&log, 2), numbered(2, &["two", "three", "four"]));
    assert_eq!(payloads(&log, 5), []);
    assert!(dir.path().join("00000003.log").exists());
}

#[test]
fn a_batch_costs_one_sync_however_large() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(dir.path(), Options::default()).unwrap();
    let before = log.syncs();
    log.append_batch(&vec!["x"; 1000]).unwrap();
    assert_eq!(log.syncs() - before, 1);
}

#[test]
fn what_cannot_be_a_batch_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { batch_bytes_max: 40, ..Options::default() };
    let (mut log, _) = Log::open(dir.path(), options).unwrap();
    assert!(matches!(log.append_batch::<&str>(&[]), Err(AppendError::Empty)));
    assert!(matches!(log.append_batch(&["a", "b\nc"]), Err(AppendError::Newline { index: 1 })));
    let large = "x".repeat(40);
    let refused = log.append_batch(&[large]);
    assert!(matches!(refused, Err(AppendError::TooLarge { max: 40, .. })));
    assert_eq!(log.append_batch(&["fits"]).unwrap(), 1..=1);
}

#[test]
fn after_a_failed_sync_nothing_is_accepted_until_the_log_is_opened_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _, syncs) = small_disk(u64::MAX >> 1, 1);
    let (mut log, _) = Log::open(dir.path(), options).unwrap();
    log.append_batch(&["kept"]).unwrap();
    let failed = log.append_batch(&["lost"]);
    assert!(matches!(failed, Err(AppendError::Failed { .. })), "{failed:?}");
    syncs.store(100, Ordering::Relaxed);
    let refused = log.append_batch(&["late"]);
    assert!(matches!(refused, Err(AppendError::Failed { .. })), "{refused:?}");
    assert!(log.truncate_before(2).is_err());
    assert_eq!(syncs.load(Ordering::Relaxed), 100, "a failed sync is never tried again");
    assert_eq!(payloads(&log, 1), numbered(1, &["kept"]));
    drop(log);
    let (log, _) = Log::open(dir.path(), Options::default()).unwrap();
    assert_eq!(payloads(&log, 1)[0], (1, "kept".to_owned()));
}

/// P110: a full disk leaves no fragment that a later append could be glued onto.
#[test]
fn a_full_disk_refuses_the_batch_whole_and_takes_the_next_one_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (options, room, _) = small_disk(60, 100);
    let (mut log, _) = Log::open(dir.path(), options).unwrap();
    log.append_batch(&["before"]).unwrap();
    let refused = log.append_batch(&["does", "not", "fit"]);
    assert!(matches!(refused, Err(AppendError::DiskFull { .. })), "{refused:?}");
    room.store(1000, Ordering::Relaxed);
    assert_eq!(log.append_batch(&["after"]).unwrap(), 2..=2);
    drop(log);
    let (log, report) = Log::open(dir.path(), Options::default()).unwrap();
    assert_eq!(report.cut, None);
    assert_eq!(payloads(&log, 1), numbered(1, &["before", "after"]));
}

#[test]
fn truncating_removes_only_finished_segments_and_numbers_never_start_again() {
    let dir = tempfile::tempdir().unwrap();
    let small = || Options { segment_bytes: 1, ..Options::default() };
    let (mut log, _) = Log::open(dir.path(), small()).unwrap();
    for text in ["one", "two", "three"] {
        log.append_batch(&[text]).unwrap();
    }
    assert_eq!(log.truncate_before(2).unwrap(), 1);
    assert_eq!(payloads(&log, 2), numbered(2, &["two", "three"]));
    assert!(matches!(log.read_from(1), Err(ReadError::Gone { asked: 1, first: 2 })));
    assert_eq!(log.truncate_before(100).unwrap(), 1);
    drop(log);
    let (mut log, report) = Log::open(dir.path(), small()).unwrap();
    assert_eq!((report.first_log_seq, report.next_log_seq), (3, 4));
    assert_eq!(log.append_batch(&["four"]).unwrap(), 4..=4);
}

#[test]
fn a_second_opener_is_refused_with_the_owners_pid() {
    let dir = tempfile::tempdir().unwrap();
    let (_log, _) = Log::open(dir.path(), Options::default()).unwrap();
    match Log::open(dir.path(), Options::default()).map(|_| ()) {
        Err(OpenError::Lock(LockError::Held { owner, .. })) => {
            assert_eq!(owner.pid, std::process::id());
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_reader_without_the_lock_sees_whole_batches_only() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(dir.path(), Options::default()).unwrap();
    log.append_batch(&["one", "two"]).unwrap();
    let file = dir.path().join("00000001.log");
    let whole = fs::read(&file).unwrap();
    log.append_batch(&["three", "four"]).unwrap();
    let all = fs::read(&file).unwrap();
    for cut in whole.len() + 1..all.len() {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("00000001.log"), &all[..cut]).unwrap();
        let mut frames = Frames::of_dir(copy.path(), 1).unwrap();
        assert_eq!(frames.by_ref().map(Result::unwrap).count(), 2);
        assert_eq!(frames.torn().unwrap().bytes, (cut - whole.len()) as u64);
    }
}

//! Disks that fail and disks that are full.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ganger_coordinator::journal::{AppendError, CloseError, Journal, OpenError, Options};
use ganger_log::Disk;
use tempfile::TempDir;

use super::support::{bodies, open, refused, small, stored, stream};

/// A disk of which a test decides how much is free and whether syncs work.
#[derive(Clone, Default)]
struct Bad {
    free: Arc<AtomicU64>,
    /// What a write finds, whatever `free` had promised.
    room: Arc<AtomicU64>,
    broken: Arc<AtomicBool>,
    syncs: Arc<AtomicU64>,
}

impl Disk for Bad {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let fits = usize::try_from(self.room.load(Relaxed)).unwrap_or(usize::MAX).min(bytes.len());
        file.write_all(&bytes[..fits])?;
        if fits < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        self.syncs.fetch_add(1, Relaxed);
        if self.broken.load(Relaxed) {
            return Err(io::Error::other("the disk is gone"));
        }
        file.sync_data()
    }

    fn free_bytes(&mut self, _dir: &Path) -> io::Result<u64> {
        Ok(self.free.load(Relaxed))
    }
}

const FLOOR: u64 = 10 << 20;
const RESERVE: u64 = 1 << 20;

fn journal_on(disk: &Bad) -> (TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    disk.free.store(1 << 40, Relaxed);
    disk.room.store(1 << 40, Relaxed);
    let log = ganger_log::Options { disk: Box::new(disk.clone()), ..Default::default() };
    let options = Options { log, reserve_bytes: RESERVE, floor_bytes: FLOOR, ..small() };
    let (journal, report) = Journal::open(dir.path(), options).unwrap();
    assert!(report.reserve);
    (dir, journal)
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged_and_the_disk_is_left_alone() {
    let disk = Bad::default();
    let (dir, journal) = journal_on(&disk);
    let s = stream("run/r-1");
    journal.append(&s, 0, bodies([1])).await.unwrap();
    disk.broken.store(true, Relaxed);
    let failed = journal.append(&s, 1, bodies([2])).await;
    assert!(matches!(failed, Err(AppendError::Failed { .. })), "{failed:?}");
    disk.broken.store(false, Relaxed);
    let syncs = disk.syncs.load(Relaxed);
    let failed = journal.append_essential(&s, 1, bodies([2])).await;
    assert!(matches!(failed, Err(AppendError::Failed { .. })), "{failed:?}");
    assert_eq!(disk.syncs.load(Relaxed), syncs, "a failed sync is never tried again");
    assert!(journal.failure().is_some());
    assert_eq!(stored(&journal, "run/r-1"), bodies([1]), "what was not acknowledged is not read");
    assert!(matches!(journal.close().await, Err(CloseError::Failed { .. })));
    // What the disk really holds decides; what was acknowledged is there in any case.
    let (journal, _) = open(dir.path());
    assert_eq!(stored(&journal, "run/r-1")[0], bodies([1])[0]);
}

#[tokio::test]
async fn below_the_floor_only_the_essential_is_written_until_there_is_space_again() {
    let disk = Bad::default();
    let (dir, journal) = journal_on(&disk);
    let (s, reserve) = (stream("run/r-1"), dir.path().join("reserve"));
    assert_eq!(reserve.metadata().unwrap().len(), RESERVE);
    disk.free.store(FLOOR - 1, Relaxed);
    let full = AppendError::DiskFull { stream: s.clone(), free_bytes: FLOOR - 1 };
    assert_eq!(journal.append(&s, 0, bodies([1])).await, Err(full));
    assert!(!reserve.exists(), "the reserve is given up");
    journal.append_essential(&s, 0, bodies([1])).await.unwrap();
    // The reserve's own space opens the door for nobody else.
    disk.free.store(FLOOR + RESERVE - 1, Relaxed);
    let full = AppendError::DiskFull { stream: s.clone(), free_bytes: FLOOR + RESERVE - 1 };
    assert_eq!(journal.append(&s, 1, bodies([2])).await, Err(full));
    disk.free.store(FLOOR + RESERVE, Relaxed);
    journal.append(&s, 1, bodies([2])).await.unwrap();
    assert!(reserve.exists(), "the reserve is taken back");
    assert_eq!(stored(&journal, "run/r-1"), bodies([1, 2]));
}

/// P110: ENOSPC in the middle of a write loses nothing, tears nothing and acknowledges nothing.
#[tokio::test]
async fn a_disk_that_fills_up_unannounced_refuses_whole_batches() {
    let disk = Bad::default();
    let (dir, journal) = journal_on(&disk);
    let s = stream("run/r-1");
    journal.append(&s, 0, bodies([1])).await.unwrap();
    disk.room.store(100, Relaxed);
    let refused = journal.append(&s, 1, bodies([2, 3])).await;
    assert!(matches!(refused, Err(AppendError::DiskFull { .. })), "{refused:?}");
    assert!(!dir.path().join("reserve").exists());
    let refused = journal.append_essential(&s, 1, bodies([2])).await;
    assert!(matches!(refused, Err(AppendError::DiskFull { .. })), "{refused:?}");
    disk.room.store(1 << 40, Relaxed);
    journal.append_essential(&s, 1, bodies([2])).await.unwrap();
    journal.close().await.unwrap();
    let (journal, report) = open(dir.path());
    assert_eq!((report.log.cut, stored(&journal, "run/r-1")), (None, bodies([1, 2])));
}

#[test]
fn a_disk_too_full_to_open_the_index_is_refused_before_it_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Bad::default();
    let log = ganger_log::Options { disk: Box::new(disk), ..Default::default() };
    let error = refused(dir.path(), Options { log, ..small() });
    assert!(matches!(error, OpenError::NoSpace { free_bytes: 0, .. }), "{error:?}");
    assert!(!dir.path().join("sled").exists());
}

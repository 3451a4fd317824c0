//! What a restart finds, what a full disk still takes, and that old lines leave the disk.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ganger_log::{Disk, RealDisk};
use ganger_shared::delivery::Usage;
use ganger_shared::digest::Digest;
use ganger_shared::ids::{Epoch, RunId};
use ganger_shared::link::{Ended, Started, Stopped};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::Body;
use ganger_shared::time::DurationMs;
use ganger_worker_core::outbox::lease_of;

use super::*;

fn assignment(unit: &str, epoch: u64) -> Assignment {
    Assignment {
        run: RunId::from_uuid_bytes(&[1; 16]),
        work: format!("{unit}/main/1").parse().unwrap(),
        epoch: Epoch(epoch),
        traceparent: String::new(),
        source: None,
        timeout_ms: DurationMs(1),
        silence_ms: None,
        grace_ms: DurationMs(1),
        on_disconnect: OnDisconnect::Continue,
        env: vec![],
        body: Body::Command { run: "true".to_owned(), files: vec![] },
    }
}

fn stopped() -> Fact {
    let end = Stopped { confirmed: true, usage: Usage::default() };
    Fact::Stopped(Ended { end, active_ms: DurationMs(1), output: None, output_truncated: false })
}

fn started() -> Fact {
    Fact::Started(Started { pid: 1, isolated: false, containment: "descendants".to_owned() })
}

fn now(outbox: &Outbox) -> Owed {
    Owed::clone(&outbox.owed().borrow())
}

/// Drops the outbox and opens it again once its thread has let go of the log.
fn reopen(outbox: Outbox, dir: &Path) -> Outbox {
    let mut owed = outbox.owed();
    drop(outbox);
    while let Ok(()) = futures_now(owed.changed()) {}
    loop {
        match Outbox::open(dir, 100) {
            Ok(outbox) => return outbox,
            Err(OpenOutboxError::Log(OpenError::Lock(_))) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn futures_now<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

async fn reopened(outbox: Outbox, dir: &Path) -> Outbox {
    let dir = dir.to_owned();
    tokio::task::spawn_blocking(move || reopen(outbox, &dir)).await.unwrap()
}

/// P001, P002: a lease that was accepted is known after a restart, whatever came of it, and what
/// was reported is still owed in the order it was made.
#[tokio::test]
async fn a_restart_owes_what_was_owed() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(dir.path(), 100).unwrap();
    let (first, second) = (assignment("a", 1), assignment("b", 1));
    let anchor =
        Anchor { store_id: "s".to_owned(), generation: 0, log_seq: 9, hash: Digest::of(b"") };
    outbox.accept(first.clone()).await.unwrap();
    outbox.accept(second.clone()).await.unwrap();
    outbox.report(&lease_of(&first), started()).await.unwrap();
    outbox.report(&lease_of(&first), stopped()).await.unwrap();
    outbox.answered(lease_of(&first), 1, Answer::Recorded, Some(anchor.clone())).await.unwrap();
    outbox.owed().wait_for(|owed| owed.seen.is_some()).await.unwrap();
    let before = now(&outbox);
    let outbox = reopened(outbox, dir.path()).await;
    let after = now(&outbox);
    let reports = |owed: &Owed| {
        owed.unanswered.iter().map(|waiting| waiting.report.clone()).collect::<Vec<_>>()
    };
    assert_eq!(reports(&after), reports(&before));
    assert_eq!(after.live, vec![lease_of(&second)]);
    assert_eq!(after.finished, vec![lease_of(&first)]);
    assert_eq!(after.seen, Some(anchor));
    let again = outbox.accept(first).await;
    assert!(matches!(again, Err(AcceptError::Not(NotAccepted::Repeated { .. }))));
}

#[tokio::test]
async fn what_is_answered_leaves_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(dir.path(), 100).unwrap();
    for n in 0..4_000 {
        let assignment = assignment(&format!("u{}", n % 50), n);
        let lease = lease_of(&assignment);
        outbox.accept(assignment).await.unwrap();
        outbox.report(&lease, stopped()).await.unwrap();
        for number in [1, 2] {
            outbox.answered(lease.clone(), number, Answer::Recorded, None).await.unwrap();
        }
    }
    let mut owed = outbox.owed();
    let empty = owed.wait_for(|owed| owed.unanswered.is_empty()).await.unwrap();
    assert_eq!((empty.live.len(), empty.finished.len()), (0, 0));
    drop(empty);
    let bytes: u64 = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "log"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(bytes < 3 * SEGMENT_BYTES, "{bytes} bytes are kept of nothing");
    let outbox = reopened(outbox, dir.path()).await;
    let stale = outbox.accept(assignment("u7", 7)).await;
    assert!(matches!(stale, Err(AcceptError::Not(NotAccepted::Stale { .. }))));
}

/// A disk that says it is full for as long as it is told to; once by itself if `once`.
struct FullDisk {
    full: Arc<AtomicBool>,
}

impl Disk for FullDisk {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        if self.full.swap(false, Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        RealDisk.write(file, bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        RealDisk.sync(file)
    }

    fn free_bytes(&mut self, _dir: &Path) -> io::Result<u64> {
        Ok(0)
    }
}

#[tokio::test]
async fn a_full_disk_still_takes_results_but_no_lease() {
    let dir = tempfile::tempdir().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let disk = Box::new(FullDisk { full: Arc::clone(&full) });
    let options = Options { disk, ..Options::default() };
    let outbox = Outbox::open_with(dir.path(), 100, options).unwrap();
    let first = assignment("a", 1);
    outbox.accept(first.clone()).await.unwrap();
    full.store(true, Ordering::SeqCst);
    outbox.report(&lease_of(&first), stopped()).await.unwrap();
    assert!(now(&outbox).full);
    assert!(!dir.path().join("reserve").exists());
    let refused = outbox.accept(assignment("b", 1)).await;
    assert_eq!(refused, Err(AcceptError::DiskFull));
}

/// A disk whose sync fails.
struct BrokenDisk;

impl Disk for BrokenDisk {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        RealDisk.write(file, bytes)
    }

    fn sync(&mut self, _file: &File) -> io::Result<()> {
        Err(io::Error::other("no"))
    }

    fn free_bytes(&mut self, dir: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(dir)
    }
}

#[tokio::test]
async fn a_disk_that_fails_is_told_to_everybody_and_never_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { disk: Box::new(BrokenDisk), ..Options::default() };
    let outbox = Outbox::open_with(dir.path(), 100, options).unwrap();
    assert_eq!(outbox.accept(assignment("a", 1)).await, Err(AcceptError::Gone(Gone)));
    assert_eq!(outbox.failed().await, Gone);
    assert_eq!(outbox.shown_nothing().await, Err(Gone));
}

impl Outbox {
    async fn shown_nothing(&self) -> Result<(), Gone> {
        let hash = Digest::of(b"");
        self.shown(Anchor { store_id: "s".to_owned(), generation: 0, log_seq: 1, hash }).await
    }
}

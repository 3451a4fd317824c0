//! Appending: numbers, refusals, groups, bounds.

use std::fs::File;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};

use ganger_coordinator::journal::{
    AppendError, CloseError, EventStore, Journal, MemoryJournal, Options, ReadError,
};
use ganger_log::{Disk, RealDisk};

use super::support::{bodies, body, open, small, stored, stream};

/// A real disk whose every sync waits to be let through; it ends with its other side.
struct Gate {
    wanted: Sender<()>,
    pass: Receiver<()>,
}

impl Disk for Gate {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        RealDisk.write(file, bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        // When the test is over nobody is left on the other side, and nothing is held back.
        let _ = self.wanted.send(());
        let _ = self.pass.recv();
        RealDisk.sync(file)
    }

    fn free_bytes(&mut self, dir: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(dir)
    }
}

/// A journal whose first commit, that of its store's name, is already through.
fn gated(dir: &Path, queue_len: usize) -> (Journal, Receiver<()>, Sender<()>) {
    let (wanted, asked) = channel();
    let (open_gate, pass) = channel();
    open_gate.send(()).unwrap();
    let log = ganger_log::Options { disk: Box::new(Gate { wanted, pass }), ..Default::default() };
    let (journal, _) = Journal::open(dir, Options { log, queue_len, ..small() }).unwrap();
    asked.recv().unwrap();
    (journal, asked, open_gate)
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn events_are_numbered_per_stream_and_read_back_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, report) = open(dir.path());
    assert!(report.log.created);
    let (run, fleet) = (stream("run/r-1"), stream("fleet"));
    let first = journal.append(&run, 0, bodies([1, 2])).await.unwrap();
    assert_eq!((first.first_seq, first.last_seq, first.anchor.log_seq), (1, 2, 3));
    let second = journal.append(&fleet, 0, bodies([1])).await.unwrap();
    assert_eq!((second.first_seq, second.last_seq, second.anchor.log_seq), (1, 1, 4));
    let third = journal.append(&run, 2, bodies([3])).await.unwrap();
    assert_eq!((third.first_seq, third.last_seq), (3, 3));
    assert_eq!(journal.tip(), third.anchor);
    assert_eq!(journal.close().await, Ok(third.anchor.clone()));

    let (journal, report) = open(dir.path());
    assert_eq!(report.tip, third.anchor);
    assert_eq!(stored(&journal, "run/r-1"), bodies(1..=3));
    assert_eq!(journal.read(&run, 2, 1).unwrap()[0].body, body(2));
    assert_eq!(journal.read(&run, 4, 9).unwrap(), []);
    assert_eq!(journal.read(&run, u64::MAX, 9).unwrap(), []);
    assert_eq!(journal.streams(""), [(fleet, 1), (run.clone(), 3)]);
    assert_eq!(journal.streams("run/"), [(run, 3)]);
}

#[tokio::test]
async fn what_cannot_be_appended_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { batch_bytes_max: 50 * 1024, ..small() };
    let (journal, _) = Journal::open(dir.path(), options).unwrap();
    let s = stream("run/r-1");
    journal.append(&s, 0, bodies([1])).await.unwrap();
    let tip = journal.tip();
    let json = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let (max, name) = (32 * 1024, s.clone());
    let cases = [
        (0, bodies([2]), AppendError::WrongSeq { stream: name, expected: 0, actual: 1 }),
        (1, vec![], AppendError::Empty { stream: s.clone() }),
        (
            1,
            vec![body(2), json(max + 1)],
            AppendError::TooLarge { stream: s.clone(), index: 1, bytes: max + 1, max },
        ),
        (
            1,
            vec![json(max), json(max)],
            AppendError::BatchTooLarge { stream: s.clone(), bytes: 65536, max: 51200 },
        ),
        (1, vec!["{".into()], AppendError::NotJson { stream: s.clone(), index: 0 }),
        (1, vec!["{}".into(), "[\n]".into()], AppendError::NotJson { stream: s.clone(), index: 1 }),
    ];
    for (expected_seq, bodies, error) in cases {
        assert_eq!(journal.append(&s, expected_seq, bodies).await, Err(error));
    }
    assert_eq!((journal.tip(), stored(&journal, "run/r-1")), (tip, bodies([1])));
    journal.append(&s, 1, vec![json(max)]).await.unwrap();
}

#[tokio::test]
async fn what_waits_is_written_with_one_sync_and_each_caller_gets_its_own_place() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, asked, open_gate) = gated(dir.path(), 1024);
    let (a, b) = (stream("run/a"), stream("run/b"));
    let mut first = pin!(journal.append(&a, 0, bodies([1])));
    assert!(poll_once(first.as_mut()).is_pending());
    tokio::task::spawn_blocking(move || asked.recv().map(|()| asked)).await.unwrap().unwrap();
    // While the first sync is held back, sixty-four more arrive; one of them comes too late.
    let mut waiting: Vec<_> =
        (0..62).map(|n| Box::pin(journal.append(&b, n, bodies([n])))).collect();
    waiting.push(Box::pin(journal.append(&a, 1, bodies([2]))));
    waiting.push(Box::pin(journal.append(&a, 1, bodies([3]))));
    for future in &mut waiting {
        assert!(poll_once(future.as_mut()).is_pending());
    }
    let before = journal.syncs().log;
    open_gate.send(()).unwrap();
    open_gate.send(()).unwrap();
    let first = first.await.unwrap();
    for (n, future) in (1..).zip(waiting.drain(..62)) {
        let committed = future.await.unwrap();
        assert_eq!((committed.last_seq, committed.anchor.log_seq), (n, first.anchor.log_seq + n));
    }
    assert_eq!(waiting.remove(0).await.unwrap().last_seq, 2);
    let late = waiting.remove(0).await;
    assert_eq!(late, Err(AppendError::WrongSeq { stream: a.clone(), expected: 1, actual: 2 }));
    assert_eq!(journal.syncs().log - before, 2, "one for the first, one for all the others");
}

#[tokio::test]
async fn a_full_queue_has_a_name_and_nobody_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, asked, open_gate) = gated(dir.path(), 1);
    let s = stream("fleet");
    let mut written = pin!(journal.append(&s, 0, bodies([1])));
    assert!(poll_once(written.as_mut()).is_pending());
    tokio::task::spawn_blocking(move || asked.recv().map(|()| asked)).await.unwrap().unwrap();
    let mut queued = pin!(journal.append(&s, 1, bodies([2])));
    assert!(poll_once(queued.as_mut()).is_pending());
    let refused = journal.append(&s, 2, bodies([3])).await;
    assert_eq!(refused, Err(AppendError::Full { stream: s.clone() }));
    open_gate.send(()).unwrap();
    open_gate.send(()).unwrap();
    assert_eq!(written.await.unwrap().last_seq, 1);
    assert_eq!(queued.await.unwrap().last_seq, 2);
}

#[tokio::test]
async fn a_plan_of_512_units_is_one_batch_in_the_log_and_small_commits_in_sled() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let before = journal.syncs();
    let unit = |n: u64| format!(r#"{{"unit":{n},"goal":"{}"}}"#, "x".repeat(8 * 1024));
    let plan: Vec<String> = (1..=512).map(unit).collect();
    let committed = journal.append(&stream("run/r-1"), 0, plan.clone()).await.unwrap();
    assert_eq!((committed.first_seq, committed.last_seq), (1, 512));
    let after = journal.syncs();
    assert_eq!((after.log - before.log, after.commits - before.commits), (1, 1));
    assert!(after.index - before.index >= 64, "every 64 KiB reach the disk before the next");
    journal.close().await.unwrap();
    let (journal, _) = open(dir.path());
    assert_eq!(stored(&journal, "run/r-1"), plan);
}

#[tokio::test]
async fn a_closed_journal_says_so_to_those_who_still_hold_it() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let other = journal.clone();
    let s = stream("system");
    journal.append(&s, 0, bodies([1])).await.unwrap();
    journal.close().await.unwrap();
    let refused = other.append(&s, 1, bodies([2])).await;
    assert_eq!(refused, Err(AppendError::Closed { stream: s.clone() }));
    assert!(matches!(other.read(&s, 1, 1), Err(ReadError::Closed { .. })));
    assert!(other.failure().is_some());
    assert_eq!(other.close().await, Err(CloseError::Closed));
    let (journal, _) = open(dir.path());
    assert_eq!(stored(&journal, "system"), bodies([1]));
}

#[tokio::test]
async fn in_memory_and_on_disk_give_the_same_numbers_hashes_and_refusals() {
    let dir = tempfile::tempdir().unwrap();
    let stores =
        [EventStore::Disk(open(dir.path()).0), EventStore::Memory(MemoryJournal::default())];
    let mut answers = Vec::new();
    for store in &stores {
        let (a, b) = (stream("run/a"), stream("run/b"));
        let mut told = Vec::new();
        for (stream, expected, bodies) in [
            (&a, 0, bodies([1, 2])),
            (&b, 0, bodies([1])),
            (&a, 1, bodies([3])),
            (&a, 2, vec!["{".to_owned()]),
            (&a, 2, bodies([3])),
        ] {
            let answer = store.append(stream, expected, bodies).await;
            told.push(answer.map(|done| (done.first_seq, done.last_seq, done.anchor.log_seq)));
        }
        let read = (store.read(&a, 2, 9).unwrap(), store.streams("run/"));
        answers.push((told, read, store.tip().hash));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn a_journal_in_memory_fails_when_a_test_wants_it() {
    let memory = MemoryJournal::default();
    let store = EventStore::Memory(memory.clone());
    memory.fail_after(Some(1));
    store.append(&stream("fleet"), 0, bodies([1])).await.unwrap();
    let failed = store.append(&stream("fleet"), 1, bodies([2])).await;
    assert!(matches!(failed, Err(AppendError::Failed { .. })));
    memory.fail_after(None);
    store.append(&stream("fleet"), 1, bodies([2])).await.unwrap();
}

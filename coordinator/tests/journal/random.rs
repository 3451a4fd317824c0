//! Many tasks, many streams, and a crash after every round: each stream is always a prefix.

use std::fs;
use std::path::Path;

use ganger_coordinator::journal::{AppendError, Journal, verify};
use proptest::collection::vec;
use proptest::prelude::*;

use super::support::{copy, open, stream};

const STREAMS: usize = 5;

/// What one task appends: to which stream, how many events at once.
type Work = Vec<(usize, u64)>;

#[derive(Debug, Clone)]
struct Round {
    tasks: Vec<Work>,
    /// Whether the journal is closed after it, or the log is taken as it is and cut.
    clean: bool,
    cut: usize,
}

fn round() -> impl Strategy<Value = Round> {
    let work = vec((0..STREAMS, 1u64..4), 1..8);
    (vec(work, 1..6), any::<bool>(), 0usize..2000).prop_map(|(tasks, clean, cut)| Round {
        tasks,
        clean,
        cut,
    })
}

fn name(stream: usize) -> String {
    format!("run/r-{stream}")
}

fn body(stream: usize, seq: u64) -> String {
    format!(r#"{{"stream":{stream},"seq":{seq}}}"#)
}

/// Appends until it gets its turn: others append to the same streams, and exactly one wins.
async fn work(journal: Journal, work: Work) -> Vec<(usize, u64)> {
    let mut acknowledged = Vec::new();
    for (number, events) in work {
        let stream = stream(&name(number));
        let mut at = 0;
        loop {
            let bodies = (1..=events).map(|n| body(number, at + n)).collect();
            match journal.append(&stream, at, bodies).await {
                Ok(committed) => {
                    acknowledged.push((number, committed.last_seq));
                    break;
                }
                Err(AppendError::WrongSeq { actual, .. }) => at = actual,
                Err(error) => panic!("{error}"),
            }
        }
    }
    acknowledged
}

/// Every stream's length; each event is the one that belongs there.
fn lengths(journal: &Journal) -> Vec<u64> {
    let length = |number| {
        let events = journal.read(&stream(&name(number)), 1, usize::MAX).unwrap();
        for (event, seq) in events.iter().zip(1..) {
            assert_eq!((event.seq, &event.body), (seq, &body(number, seq)));
        }
        events.len() as u64
    };
    (0..STREAMS).map(length).collect()
}

/// Copies a log as a crash would leave it, without its last bytes and without any index.
fn crashed(dir: &Path, cut: usize) -> tempfile::TempDir {
    let copied = tempfile::tempdir().unwrap();
    copy(&dir.join("log"), &copied.path().join("log"));
    let segment = copied.path().join("log/00000001.log");
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len().saturating_sub(cut)]).unwrap();
    copied
}

async fn history(rounds: Vec<Round>) {
    let dir = tempfile::tempdir().unwrap();
    let mut known = vec![0; STREAMS];
    for Round { tasks, clean, cut } in rounds {
        let (journal, _) = open(dir.path());
        assert_eq!(lengths(&journal), known, "what was acknowledged is there, and nothing else");
        let tasks: Vec<_> =
            tasks.into_iter().map(|one| tokio::spawn(work(journal.clone(), one))).collect();
        for task in tasks {
            for (number, seq) in task.await.unwrap() {
                known[number] = known[number].max(seq);
            }
        }
        assert_eq!(lengths(&journal), known);
        let copied = crashed(dir.path(), cut);
        let (cut_off, _) = open(copied.path());
        let left = lengths(&cut_off);
        assert!(left.iter().zip(&known).all(|(left, known)| left <= known), "{left:?} {known:?}");
        cut_off.close().await.unwrap();
        assert_eq!(verify(copied.path()).unwrap().first_bad, None);
        if clean {
            journal.close().await.unwrap();
        } else {
            // The log as it is, the index gone: what a crash at its worst leaves.
            let whole = crashed(dir.path(), 0);
            journal.close().await.unwrap();
            assert_eq!(lengths(&open(whole.path()).0), known);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// R162, R163: whatever is appended by whomever and wherever the log is cut, every stream is
    /// an unbroken prefix of what was appended to it, and nothing acknowledged is missing.
    #[test]
    fn every_stream_is_a_prefix_of_what_was_appended(rounds in vec(round(), 1..4)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(history(rounds));
    }
}

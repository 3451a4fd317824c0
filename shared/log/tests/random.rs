//! Random histories of append, reopen, cut and truncate against a plain list.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use ganger_log::{Log, Options};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<String>),
    Reopen,
    /// The process dies and the last so many bytes of the last segment never reached the disk.
    Cut(u16),
    TruncateBefore(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => vec("[^\n]{0,40}", 1..5).prop_map(Step::Append),
        1 => Just(Step::Reopen),
        1 => (0u16..200).prop_map(Step::Cut),
        1 => any::<u8>().prop_map(Step::TruncateBefore),
    ]
}

fn open(dir: &Path, segment_bytes: u64) -> Log {
    Log::open(dir, Options { segment_bytes, ..Options::default() }).unwrap().0
}

fn last_segment(dir: &Path) -> PathBuf {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|end| end == "log")).max().unwrap()
}

/// What the log must hold: every batch with its first number and where it ends in its file.
#[derive(Default)]
struct Model {
    batches: Vec<(u64, Vec<String>, PathBuf, u64)>,
}

impl Model {
    fn next(&self) -> u64 {
        self.batches.last().map_or(1, |(first, batch, ..)| first + batch.len() as u64)
    }

    fn from(&self, log_seq: u64) -> Vec<(u64, String)> {
        let frames = self
            .batches
            .iter()
            .flat_map(|(first, batch, ..)| (*first..).zip(batch.iter().cloned()));
        frames.filter(|(at, _)| *at >= log_seq).collect()
    }

    fn cut(&mut self, file: &Path, len: u64) {
        self.batches.retain(|(_, _, in_file, end)| in_file != file || *end <= len);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// P110: after any history the log holds exactly the whole batches before the cut.
    #[test]
    fn the_log_is_always_a_prefix_of_whole_batches(
        steps in vec(step(), 1..25),
        segment_bytes in 1u64..400,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut log = open(dir.path(), segment_bytes);
        for step in steps {
            match step {
                Step::Append(batch) => {
                    let range = log.append_batch(&batch).unwrap();
                    prop_assert_eq!(*range.start(), model.next());
                    let file = last_segment(dir.path());
                    let end = fs::metadata(&file).unwrap().len();
                    model.batches.push((*range.start(), batch, file, end));
                }
                Step::Reopen => {
                    drop(log);
                    log = open(dir.path(), segment_bytes);
                }
                Step::Cut(bytes) => {
                    drop(log);
                    let path = last_segment(dir.path());
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    let len = file.metadata().unwrap().len().saturating_sub(u64::from(bytes));
                    file.set_len(len).unwrap();
                    model.cut(&path, len);
                    log = open(dir.path(), segment_bytes);
                }
                Step::TruncateBefore(log_seq) => {
                    let before = log.first_log_seq();
                    log.truncate_before(u64::from(log_seq)).unwrap();
                    prop_assert!(log.first_log_seq() <= before.max(u64::from(log_seq)));
                }
            }
            let first = log.first_log_seq();
            let found: Vec<_> = log.read_from(first).unwrap()
                .map(|frame| frame.map(|frame| (frame.log_seq, frame.payload)).unwrap()).collect();
            prop_assert_eq!(found, model.from(first));
            prop_assert!(log.next_log_seq() >= first);
        }
    }
}

//! What a crash or a bad disk leaves behind: a torn tail is cut, damage is refused.
//!
//! Not here: random histories; see `random.rs`.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use ganger_log::{Corrupt, Cut, Damage, Log, OpenError, Options, Report};
use tempfile::TempDir;

const BATCHES: [&[&str]; 3] = [
    &[r#"{"event":"first"}"#],
    &[r#"{"event":"second","text":"with spaces"}"#, r#"{"event":"third"}"#],
    &[r#"{"event":"fourth"}"#, r#"{"event":"fifth"}"#, r#"{"event":"sixth"}"#],
];

/// Writes the batches and returns where each of them ends.
fn written(dir: &Path, options: Options, batches: &[&[&str]]) -> Vec<usize> {
    let (mut log, _) = Log::open(dir, options).unwrap();
    let mut ends = vec![0];
    for batch in batches {
        log.append_batch(batch).unwrap();
        ends.push(usize::try_from(fs::metadata(segment(dir)).unwrap().len()).unwrap());
    }
    ends
}

fn segment(dir: &Path) -> PathBuf {
    dir.join("00000001.log")
}

fn directory(bytes: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(segment(dir.path()), bytes).unwrap();
    dir
}

fn payloads(log: &Log) -> Vec<String> {
    log.read_from(1).unwrap().map(|frame| frame.unwrap().payload).collect()
}

fn corrupt(opened: Result<(Log, Report), OpenError>) -> Corrupt {
    match opened.map(|(_, report)| report) {
        Err(OpenError::Corrupt(corrupt)) => corrupt,
        other => panic!("expected damage, got {other:?}"),
    }
}

/// P110: truncated at every byte of the last batch, the batches before it are intact, the tail is
/// cut and reported, and the next append is readable after another open.
#[test]
fn a_batch_cut_at_any_byte_vanishes_whole_and_alone() {
    let origin = tempfile::tempdir().unwrap();
    let ends = written(origin.path(), Options::default(), &BATCHES);
    let bytes = fs::read(segment(origin.path())).unwrap();
    let before: Vec<&str> = BATCHES[..2].concat();
    for cut in ends[2]..ends[3] {
        let dir = directory(&bytes[..cut]);
        let (mut log, report) = Log::open(dir.path(), Options::default()).unwrap();
        let expected = (cut > ends[2]).then(|| Cut {
            file: segment(dir.path()),
            offset: ends[2] as u64,
            bytes: (cut - ends[2]) as u64,
        });
        assert_eq!(report.cut, expected);
        assert_eq!(payloads(&log), before, "cut at {cut}");
        assert_eq!(log.append_batch(&["next"]).unwrap(), 4..=4);
        drop(log);
        let (log, report) = Log::open(dir.path(), Options::default()).unwrap();
        assert_eq!(
            (report.cut, payloads(&log)),
            (None, [&before[..], &["next"]].concat().into_iter().map(str::to_owned).collect())
        );
    }
}

/// P110: the same for a record that is a batch of its own, down to an empty log.
#[test]
fn a_single_record_cut_at_any_byte_vanishes_alone() {
    let origin = tempfile::tempdir().unwrap();
    let ends = written(origin.path(), Options::default(), &[&["only"]]);
    let bytes = fs::read(segment(origin.path())).unwrap();
    for cut in 0..ends[1] {
        let dir = directory(&bytes[..cut]);
        let (log, report) = Log::open(dir.path(), Options::default()).unwrap();
        assert_eq!((report.cut.is_some(), report.next_log_seq), (cut > 0, 1));
        assert_eq!(payloads(&log), Vec::<String>::new());
    }
}

/// P110: one flipped bit anywhere, the last record and its newline included, is a typed error that
/// names the file and the offset of the frame it is in; nothing is cut.
#[test]
fn a_flipped_bit_anywhere_is_refused_with_file_and_offset() {
    let origin = tempfile::tempdir().unwrap();
    written(origin.path(), Options::default(), &BATCHES);
    let bytes = fs::read(segment(origin.path())).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let dir = directory(&flipped);
            let found = corrupt(Log::open(dir.path(), Options::default()));
            let line = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            assert_eq!(found.file, segment(dir.path()));
            assert_eq!(found.offset, line as u64, "byte {at}, bit {bit}: {found}");
            assert_eq!(fs::read(segment(dir.path())).unwrap(), flipped, "nothing is cut");
        }
    }
}

#[test]
fn sectors_of_the_last_batch_that_never_reached_the_disk_are_a_torn_tail() {
    let origin = tempfile::tempdir().unwrap();
    let payload = "x".repeat(700);
    let batch: Vec<&str> = vec![&payload; 4];
    let ends = written(origin.path(), Options::default(), &[&["first"], &batch]);
    let bytes = fs::read(segment(origin.path())).unwrap();
    for sector in ends[1] / 512..=ends[2] / 512 {
        let mut lost = bytes.clone();
        lost[(sector * 512).max(ends[1])..((sector + 1) * 512).min(ends[2])].fill(0);
        let dir = directory(&lost);
        let (log, report) = Log::open(dir.path(), Options::default()).unwrap();
        assert_eq!(report.cut.unwrap().offset, ends[1] as u64, "sector {sector}");
        assert_eq!(payloads(&log), ["first"]);
    }
}

#[test]
fn lost_sectors_of_a_batch_that_was_followed_by_another_are_damage() {
    let origin = tempfile::tempdir().unwrap();
    let long = "x".repeat(1500);
    let ends = written(origin.path(), Options::default(), &[&["first"], &[&long], &["last"]]);
    let mut bytes = fs::read(segment(origin.path())).unwrap();
    bytes[512..1024].fill(0);
    let dir = directory(&bytes);
    let found = corrupt(Log::open(dir.path(), Options::default()));
    assert_eq!((found.offset, found.log_seq), (ends[1] as u64, 2));
}

#[test]
fn a_finished_segment_may_not_end_inside_a_batch_nor_be_missing() {
    let origin = tempfile::tempdir().unwrap();
    let one_each = || Options { segment_bytes: 1, ..Options::default() };
    written(origin.path(), one_each(), &BATCHES);
    let second = origin.path().join("00000002.log");
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 4]).unwrap();
    let found = corrupt(Log::open(origin.path(), one_each()));
    assert_eq!((found.file, found.damage), (second.clone(), Damage::UnfinishedBatch));
    fs::remove_file(&second).unwrap();
    let found = corrupt(Log::open(origin.path(), one_each()));
    assert_eq!(found.file, origin.path().join("00000004.log"));
    assert_eq!((found.log_seq, found.damage), (2, Damage::MissingSegment { found: 4 }));
}

#[test]
fn a_whole_frame_in_the_wrong_place_is_damage() {
    let origin = tempfile::tempdir().unwrap();
    let ends = written(origin.path(), Options::default(), &BATCHES);
    let bytes = fs::read(segment(origin.path())).unwrap();
    let dir = directory(&bytes);
    let mut file = OpenOptions::new().append(true).open(segment(dir.path())).unwrap();
    file.write_all(&bytes[..ends[1]]).unwrap();
    let found = corrupt(Log::open(dir.path(), Options::default()));
    assert_eq!((found.offset, found.damage), (ends[3] as u64, Damage::OutOfOrder { found: 1 }));
}

//! Output of real programs through the pump.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::Path;

use ganger_worker::output::{Bounds, Capture, Line, OutputPump, OutputTruncated, Stream};
use ganger_worker::process::{Exit, ProcessTree};
use sha2::{Digest, Sha256};

use crate::support::{block_on, confirmed, holds, open, script, shim};

const MIB: u64 = 1 << 20;

async fn pumped(text: &str, dir: &Path, bounds: Bounds) -> (Vec<Line>, Capture) {
    let hold = holds().remove(0);
    let spawn = script(text, open(hold), &dir.join("records"));
    let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
    let stdout = tree.take_stdout().unwrap();
    let path = dir.join("stdout.txt");
    let (pump, mut follower) =
        OutputPump::start(stdout, Stream::Stdout, &path, bounds).await.unwrap();
    let mut lines = Vec::new();
    while let Some(line) = follower.recv().await {
        lines.push(line);
    }
    let capture = pump.finish().await.unwrap();
    assert_eq!(tree.ended().await, (Some(Exit::Code(0)), confirmed()));
    (lines, capture)
}

/// The most memory this process has had, in bytes.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// P103: 64 MiB without a line end are drained, cut with their digest, and the next line is read.
#[cfg_attr(any(), test)]
pub fn an_endless_line_is_cut_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let before = memory_peak();
    let text = "head -c 67108864 /dev/zero | tr '\\0' x; echo; echo next";
    let (lines, capture) = block_on(pumped(text, dir.path(), Bounds::default()));
    assert!(memory_peak() - before < 16 * MIB, "grew by {} bytes", memory_peak() - before);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].text, "x".repeat(1 << 20));
    let cut = lines[0].cut.clone().unwrap();
    assert_eq!(cut.bytes, 63 * MIB);
    assert_eq!(lines[1], Line { stream: Stream::Stdout, text: "next".to_owned(), cut: None });
    let digest = (0..63).fold(Sha256::new(), |all, _| all.chain_update(vec![b'x'; 1 << 20]));
    assert_eq!(cut.sha256, hex::encode(digest.finalize()));
    let truncated = OutputTruncated { bytes_kept: 64 * MIB, bytes_dropped: 6 };
    assert_eq!(capture.truncated(), Some(truncated));
}

/// P104: bytes that are no text stay in the file and are replaced in the line.
#[cfg_attr(any(), test)]
pub fn any_bytes_are_kept_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        r"printf 'a\377b\n\303'; sleep 0.05; printf '\251\360\237'; sleep 0.05; printf '\231\202'";
    let (lines, capture) = block_on(pumped(text, dir.path(), Bounds::default()));
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["a\u{FFFD}b", "é🙂"]);
    let kept = std::fs::read(&capture.path).unwrap();
    assert_eq!(kept, [b"a\xFFb\n", "é🙂".as_bytes()].concat());
    assert_eq!(capture.sha256, hex::encode(Sha256::digest(&kept)));
    assert_eq!(capture.tail, "a\u{FFFD}b\né🙂");
    assert_eq!(capture.truncated(), None);
}

/// R005: the file stops at its limit, draining does not, and the outcome has a name.
#[cfg_attr(any(), test)]
pub fn what_exceeds_the_file_is_drained_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { file_bytes_max: 1000, ..Bounds::default() };
    let (lines, capture) = block_on(pumped("seq 1 100000; echo last", dir.path(), bounds));
    assert_eq!(lines.len(), 100_001);
    assert_eq!(std::fs::read(&capture.path).unwrap().len(), 1000);
    let dropped = capture.bytes_written - 1000;
    let named = OutputTruncated { bytes_kept: 1000, bytes_dropped: dropped };
    assert_eq!((dropped, capture.truncated()), (588_895 + 5 - 1000, Some(named)));
    assert_eq!(capture.tail, "99997\n99998\n99999\n100000\nlast");
}

/// P103: nobody reads the lines, and still the program can write all it has to say.
#[cfg_attr(any(), test)]
pub fn a_follower_that_leaves_does_not_stop_the_program() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let spawn = script("seq 1 100000", open(holds().remove(0)), &dir.path().join("records"));
        let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
        let stdout = tree.take_stdout().unwrap();
        let path = dir.path().join("stdout.txt");
        let bounds = Bounds::default();
        let (pump, follower) =
            OutputPump::start(stdout, Stream::Stdout, &path, bounds).await.unwrap();
        drop(follower);
        assert_eq!(pump.finish().await.unwrap().bytes_kept, 588_895);
        assert_eq!(tree.ended().await, (Some(Exit::Code(0)), confirmed()));
    });
}

//! A writer killed at any moment: a child process under load, ended with SIGKILL.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ganger_coordinator::journal::{Journal, OpenError, StoredEvent, verify};
use ganger_log::{LockError, OpenError as LogError};

use super::support::{body, open, refused, small, stream};

const DIR: &str = "GANGER_TEST_JOURNAL";
const TASKS: usize = 8;

/// The child: appends to many streams at once and says each acknowledgement, until it is killed.
#[test]
fn the_writer_child() {
    let Ok(dir) = env::var(DIR) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (journal, report) = Journal::open(Path::new(&dir), small()).unwrap();
        say(&format!("open {}", report.tip.log_seq));
        let tasks: Vec<_> =
            (0..TASKS).map(|task| tokio::spawn(append_for_ever(journal.clone(), task))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn append_for_ever(journal: Journal, task: usize) {
    let stream = stream(&format!("run/r-{task}"));
    let mut seq = journal.streams(stream.as_str()).first().map_or(0, |(_, seq)| *seq);
    loop {
        let batch = (1..=1 + seq % 3).map(|n| body(seq + n)).collect();
        let committed = journal.append(&stream, seq, batch).await.unwrap();
        seq = committed.last_seq;
        say(&format!("{task} {seq} {}", committed.anchor.hash));
    }
}

/// One whole line at once: the parent reads what was said up to the kill.
fn say(line: &str) {
    std::io::stdout().write_all(format!("\nsaid {line}\n").as_bytes()).unwrap();
}

fn start(dir: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "kill::the_writer_child", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child run until it has said `lines` things, kills it, and returns all it said. With none
/// it is killed when its test begins, so that the journal is still being opened.
fn run_and_kill(dir: &Path, lines: usize) -> Vec<String> {
    let mut child = start(dir);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 0 {
        if let Some(text) = line.strip_prefix("said ").and_then(|text| text.strip_suffix('\n')) {
            said.push(text.to_owned());
        }
        line.clear();
        if said.len() >= lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    said
}

/// Checks that a stream holds bodies 1, 2, 3 … and, where the child said so, under that hash.
fn holds(events: &[StoredEvent], acknowledged: &[(u64, String)]) {
    for (event, n) in events.iter().zip(1..) {
        assert_eq!((event.seq, &event.body), (n, &body(n)));
    }
    for (seq, hash) in acknowledged {
        let at = usize::try_from(*seq).unwrap() - 1;
        let stored = events.get(at).map(|event| event.hash.to_string());
        assert_eq!(stored.as_ref(), Some(hash), "event {seq} was acknowledged");
    }
}

/// P111: killed again and again under load, some of the time while still opening, the journal
/// opens each time, holds everything that was acknowledged, and its chain verifies.
#[tokio::test]
async fn a_killed_writer_loses_nothing_it_has_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<Vec<(u64, String)>> = vec![Vec::new(); TASKS];
    for lines in [1, 40, 0, 150, 400, 0, 90, 30, 250, 0, 60] {
        for line in run_and_kill(dir.path(), lines) {
            if let [task, seq, hash] = line.split(' ').collect::<Vec<_>>()[..] {
                let task: usize = task.parse().unwrap();
                acknowledged[task].push((seq.parse().unwrap(), hash.to_owned()));
            }
        }
        let report = verify(dir.path()).unwrap();
        assert_eq!(report.first_bad, None);
        let (journal, _) = open(dir.path());
        for (task, acknowledged) in acknowledged.iter().enumerate() {
            let stream = stream(&format!("run/r-{task}"));
            holds(&journal.read(&stream, 1, usize::MAX).unwrap(), acknowledged);
        }
        journal.close().await.unwrap();
    }
    assert!(acknowledged.iter().map(Vec::len).sum::<usize>() > 900);
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("said open")));
    let error = refused(dir.path(), small());
    child.kill().unwrap();
    child.wait().unwrap();
    let OpenError::Log(LogError::Lock(LockError::Held { owner, .. })) = error else {
        panic!("{error:?}")
    };
    assert_eq!(owner.pid, child.id());
    open(dir.path());
}

//! What a program gets when it starts, and what is told of its end.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::os::fd::AsFd;

use ganger_worker::process::{Exit, MARKER, ProcessTree, SpawnError, Stdin};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    below, block_on, confirmed, holds, open, program, record_paths, run, script, shim,
};

/// R194, P008: a command's own exit code is told, a signal is told apart from it.
#[cfg_attr(any(), test)]
pub fn an_exit_code_and_a_signal_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    for hold in holds() {
        for (text, exit, shell) in [
            ("exit 0", Exit::Code(0), 0),
            ("echo trace >&2; exit 1", Exit::Code(1), 1),
            ("exit 255", Exit::Code(255), 255),
            ("kill -TERM $$", Exit::Signal(15), 143),
            ("kill -KILL $$", Exit::Signal(9), 137),
        ] {
            let ended = block_on(run(script(text, open(hold.clone()), dir.path())));
            assert_eq!(ended, (String::new(), Some(exit), confirmed()), "{hold:?} {text}");
            assert_eq!(exit.shell_code(), shell);
        }
    }
    assert_eq!(record_paths(dir.path()), Vec::<std::path::PathBuf>::new());
}

#[cfg_attr(any(), test)]
pub fn the_environment_is_exactly_what_was_given() {
    let dir = tempfile::tempdir().unwrap();
    for hold in holds() {
        let mut spawn = program(&["env"], open(hold), dir.path());
        spawn.env.insert("GREETING".to_owned(), "é = 🙂".to_owned());
        let (text, ..) = block_on(run(spawn));
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(MARKER)).collect();
        assert_eq!(lines, ["GREETING=é = 🙂", "PATH=/usr/bin:/bin"]);
    }
}

#[cfg_attr(any(), test)]
pub fn no_inherited_descriptor_reaches_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let careless = std::fs::File::open("/etc/passwd").unwrap();
    fcntl(careless.as_fd(), FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    for hold in holds() {
        // The shell itself opens nothing; the listing holds its own directory open as 3.
        let (text, ..) = block_on(run(program(&["ls", "/proc/self/fd"], open(hold), dir.path())));
        assert_eq!(text, "0\n1\n2\n3\n");
    }
}

/// P106: a prompt of a mebibyte passes, and the process table does not show it.
#[cfg_attr(any(), test)]
pub fn a_large_prompt_goes_in_by_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    for hold in holds() {
        let mut spawn = script("wc -c; cat /proc/$$/cmdline | wc -c", open(hold), dir.path());
        spawn.stdin = Stdin::Bytes(vec![b'p'; 1 << 20]);
        let (text, ..) = block_on(run(spawn));
        let counts: Vec<usize> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        assert_eq!(counts[0], 1 << 20);
        assert!(counts[1] < 4096);
    }
}

#[cfg_attr(any(), test)]
pub fn a_pipe_carries_a_conversation() {
    let dir = tempfile::tempdir().unwrap();
    for hold in holds() {
        block_on(async {
            let mut spawn = program(&["cat"], open(hold), dir.path());
            spawn.stdin = Stdin::Pipe;
            let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
            let mut stdin = tree.take_stdin().unwrap();
            let mut stdout = tree.take_stdout().unwrap();
            for word in [b"one", b"two"] {
                stdin.write_all(word).await.unwrap();
                let mut answer = [0; 3];
                stdout.read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, word);
            }
            drop(stdin);
            assert_eq!(tree.ended().await, (Some(Exit::Code(0)), confirmed()));
        });
    }
}

#[cfg_attr(any(), test)]
pub fn a_program_that_is_not_there_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    for hold in holds() {
        let spawn = program(&["no-such-program"], open(hold), dir.path());
        let error = block_on(ProcessTree::spawn(shim(), spawn)).unwrap_err();
        let SpawnError::Launch { attempt, source } = error else { panic!("{error}") };
        assert_eq!(attempt, "build/a/1");
        assert!(source.detail.contains("no-such-program"), "{source}");
        assert_eq!(record_paths(dir.path()), Vec::<std::path::PathBuf>::new());
    }
}

#[cfg_attr(any(), test)]
pub fn a_reserved_name_and_oversized_arguments_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let hold = holds().remove(0);
    let mut spawn = script("true", open(hold.clone()), dir.path());
    spawn.env.insert("GANGER_TOKEN".to_owned(), String::new());
    let error = block_on(ProcessTree::spawn(shim(), spawn)).unwrap_err();
    assert!(matches!(error, SpawnError::EnvironmentName { name, .. } if name == "GANGER_TOKEN"));
    let spawn = script(&"x".repeat(2 << 20), open(hold), dir.path());
    let error = block_on(ProcessTree::spawn(shim(), spawn)).unwrap_err();
    assert!(matches!(error, SpawnError::TooLarge { limit: 1_048_576, .. }), "{error}");
}

/// P101: after many short attempts there are as many processes and descriptors as before.
#[cfg_attr(any(), test)]
pub fn two_hundred_short_programs_leave_no_process_behind() {
    let dir = tempfile::tempdir().unwrap();
    let me = std::process::id().cast_signed();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    block_on(async {
        let hold = holds().remove(0);
        run(script("true", open(hold.clone()), dir.path())).await;
        let before = (below(me), descriptors());
        for _ in 0..50 {
            let one = || run(script("sleep 1000 & exit 3", open(hold.clone()), dir.path()));
            let ended = tokio::join!(one(), one(), one(), one());
            assert_eq!(ended.0, (String::new(), Some(Exit::Code(3)), confirmed()));
        }
        assert_eq!(below(me), before.0);
        // The last socket may still be on its way out; one per program would be two hundred.
        assert!(descriptors() < before.1 + 10, "{} descriptors", descriptors());
    });
}

//! The rungs of the stop ladder on a tree that does all it can to outlive them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ganger_worker::process::{Exit, Phase, ProcessTree, SignalError};
use tokio::io::AsyncReadExt;

use crate::support::{
    alive, block_on, confirmed, family, holds, open, record, record_paths, script, shim, until,
};

/// P099, R057: setsid children, daemons and forkers all end, under every hold.
#[cfg_attr(any(), test)]
pub fn a_kill_leaves_no_survivor() {
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (mut tree, members) = family(open(hold.clone()), dir.path()).await;
            tree.handle().kill().await.unwrap();
            let ended = tree.ended().await;
            assert_eq!(ended, (Some(Exit::Signal(9)), confirmed()), "{hold:?}");
            assert_eq!(alive(&members), []);
            assert_eq!(record_paths(dir.path()), Vec::<std::path::PathBuf>::new());
            assert_eq!(tree.handle().kill().await, Err(SignalError::AlreadyEnded));
        });
    }
}

/// P100: child servers do not outlive the agent after a normal end.
#[cfg_attr(any(), test)]
pub fn the_end_of_the_program_ends_what_it_started() {
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let text = "setsid sleep 1000 & (env -i setsid /bin/sleep 1000 &); exit 4";
            let spawn = script(text, open(hold.clone()), dir.path());
            let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
            assert_eq!(tree.exited().await, Some(Exit::Code(4)));
            assert_eq!(tree.ended().await, (Some(Exit::Code(4)), confirmed()), "{hold:?}");
            // Nobody holds the pipe any more, so the output has an end.
            let mut rest = Vec::new();
            tree.take_stdout().unwrap().read_to_end(&mut rest).await.unwrap();
        });
    }
}

/// P005, R057: TERM is ignored, KILL is not, and only then the tree counts as empty.
#[cfg_attr(any(), test)]
pub fn a_program_that_ignores_term_is_killed() {
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let text = "trap 'echo no' TERM; echo ready; while :; do sleep 0.02; done";
            let spawn = script(text, open(hold.clone()), dir.path());
            let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
            let mut stdout = tree.take_stdout().unwrap();
            let mut word = [0; 6];
            stdout.read_exact(&mut word).await.unwrap();
            let handle = tree.handle();
            handle.terminate().await.unwrap();
            let mut word = [0; 3];
            stdout.read_exact(&mut word).await.unwrap();
            assert_eq!((&word, tree.handle().phase()), (b"no\n", Phase::Running));
            handle.kill().await.unwrap();
            assert_eq!(tree.ended().await, (Some(Exit::Signal(9)), confirmed()), "{hold:?}");
        });
    }
}

/// R057: the first rungs are signals of their own, told as 130 and 143.
#[cfg_attr(any(), test)]
pub fn an_interrupt_reaches_the_program() {
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let start = || async {
                let spawn = script("echo ready; exec sleep 1000", open(hold.clone()), dir.path());
                let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
                let mut word = [0; 6];
                tree.take_stdout().unwrap().read_exact(&mut word).await.unwrap();
                tree
            };
            let mut tree = start().await;
            tree.handle().interrupt().await.unwrap();
            let (exit, stopped) = tree.ended().await;
            assert_eq!((exit.unwrap().shell_code(), stopped), (130, confirmed()));
            let mut tree = start().await;
            tree.handle().terminate().await.unwrap();
            let (exit, stopped) = tree.ended().await;
            assert_eq!((exit.unwrap().shell_code(), stopped), (143, confirmed()));
        });
    }
}

#[cfg_attr(any(), test)]
pub fn dropping_the_tree_ends_it() {
    for hold in holds() {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (tree, members) = family(open(hold), dir.path()).await;
            let mut handle = tree.handle();
            drop(tree);
            assert!(!handle.ended().await.1.confirmed, "nobody is left to see it");
            until("all are gone", || alive(&members).is_empty());
            assert_eq!(record(dir.path()).attempt, "build/a/1", "the sweep will look again");
        });
    }
}

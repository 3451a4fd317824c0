//! Command units: how a program's end becomes a delivery or a failure.

use std::fs;

use ganger_shared::delivery::{Change, ChangeKind};
use ganger_shared::failure::FailureClass;
use ganger_shared::ids::{CommitId, TreeId};
use ganger_worker::attempts::port::{ExecCommand, ExecEvent};
use ganger_worker::process::Exit;
use ganger_worker::workspace;

use crate::ground::{Ground, block_on, to_the_end};

/// The tree travels as a bundle: the coordinator finds in it what the command wrote.
#[cfg_attr(any(), test)]
pub fn a_command_that_exits_well_delivers_its_tree() {
    block_on(async {
        let ground = Ground::new().await;
        let went =
            ground.go(&ground.command("echo wanted > src/wanted.rs; echo done", &["src/**"])).await;
        let delivery = went.delivery();
        let commit = ground.take_in(delivery).await;
        let read = ground.mirror.read_file(&commit, "src/wanted.rs").await.unwrap();
        assert_eq!(read.as_deref(), Some(b"wanted\n".as_slice()));
        let tree = delivery.tree.clone().unwrap();
        let change = Change { path: "src/wanted.rs".to_owned(), kind: ChangeKind::Added };
        assert_eq!(tree.changes.listed, [change]);
        let patch = ground.depot.bytes(&tree.patch.unwrap());
        assert!(String::from_utf8(patch).unwrap().contains("+wanted"));
        assert_eq!(delivery.excerpt, "done");
        assert_eq!(delivery.isolated, ground.site.host.isolated);
        assert_eq!(went.evidence.usage, ganger_shared::delivery::Usage::default());
        assert!(matches!(went.events[0], ExecEvent::Started { .. }), "{:?}", went.events);
    });
}

/// R194, R108: both outputs and the true exit code are kept, and the record says so.
#[cfg_attr(any(), test)]
pub fn a_command_that_exits_otherwise_fails_with_its_last_words() {
    block_on(async {
        let ground = Ground::new().await;
        let run = "echo out; for n in 1 2 3 4 5 6; do echo err $n >&2; done; exit 7";
        let went = ground.go(&ground.command(run, &[])).await;
        let (failure, left) = went.failed();
        assert_eq!(failure.class, FailureClass::CommandFailed);
        let tail = "err 2\nerr 3\nerr 4\nerr 5\nerr 6";
        assert_eq!(failure.message, format!("the command exited with 7\n{tail}"));
        let evidence = &left.unwrap().commands[0];
        assert_eq!((evidence.pass, evidence.exit_code), (false, Some(7)));
        assert_eq!((evidence.cmd.as_str(), evidence.log_tail.as_str()), (run, tail));
        let log = ground.depot.bytes(evidence.log.as_ref().unwrap());
        let log = String::from_utf8(log).unwrap();
        assert!(log.starts_with("out\n\n--- stderr ---\nerr 1\n"), "{log}");
        let kept = |name: &str| fs::read_to_string(went.room.evidence.join(name)).unwrap();
        assert_eq!(kept("stdout.txt"), "out\n");
        assert!(kept("stderr.txt").ends_with("err 6\n"));
        assert_eq!(kept("exit_code.txt"), "7\n");
    });
}

/// P090: what is printed is never read for meaning.
#[cfg_attr(any(), test)]
pub fn words_in_the_output_change_no_class() {
    block_on(async {
        let ground = Ground::new().await;
        let well = ground.command("echo 401 Unauthorized; echo rate limit >&2", &[]);
        assert!(ground.go(&well).await.delivery().no_change);
        let nothing = ground.go(&ground.command("exit 3", &[])).await;
        assert_eq!(nothing.failed().0.message, "the command exited with 3");
    });
}

/// The environment is exactly what was allowed: own home, no names of ours, no prompt in argv.
#[cfg_attr(any(), test)]
pub fn an_attempt_gets_its_own_home_and_no_other_environment() {
    block_on(async {
        let ground = Ground::new().await;
        let run = "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo $HOME; echo $TRACEPARENT";
        let assignment = ground.command(run, &[]);
        let went = ground.go(&assignment).await;
        let out = fs::read_to_string(went.room.evidence.join("stdout.txt")).unwrap();
        let names = "ATTEMPT_MARKER HOME LANG PATH PWD TMPDIR TRACEPARENT ";
        let home = went.room.home.display();
        assert_eq!(out, format!("{names}\n{home}\n{}\n", assignment.traceparent));
        let mut asked = assignment.clone();
        asked.env = vec!["GANGER_TOKEN".to_owned()];
        asked.epoch = asked.epoch.next();
        asked.work = "build/main/2".parse().unwrap();
        let room = workspace::prepare(&ground.site, &asked).await.unwrap();
        let (send, _events) = tokio::sync::mpsc::channel(64);
        let refused =
            ganger_worker::executor::start(&ground.site, &asked, &room, send).await.unwrap_err();
        assert_eq!(refused.class, FailureClass::ConfigError);
    });
}

/// R057: an interrupted command ends with all it started.
#[cfg_attr(any(), test)]
pub fn an_interrupt_reaches_the_program() {
    block_on(async {
        let ground = Ground::new().await;
        let assignment = ground.command("sleep 1000 & echo up; wait", &[]);
        let room = workspace::prepare(&ground.site, &assignment).await.unwrap();
        let (running, mut events) = ground.start(&assignment, &room).await;
        while !matches!(events.recv().await, Some(ExecEvent::Activity { .. })) {}
        running.commands.send(ExecCommand::Interrupt).await.unwrap();
        let (_, end) = to_the_end(events).await;
        assert_eq!(end.exit, Some(Exit::Signal(2)));
        assert!(end.confirmed);
        assert_eq!(end.failure.unwrap().class, FailureClass::ProcessTerminated);
    });
}

/// Without a repository there is a directory and nothing to integrate.
#[cfg_attr(any(), test)]
pub fn without_a_repository_a_command_has_an_empty_directory() {
    block_on(async {
        let ground = Ground::new().await;
        let mut assignment = ground.command("ls -A | wc -l; echo x > made", &[]);
        assignment.source = None;
        let went = ground.go(&assignment).await;
        let delivery = went.delivery();
        assert_eq!((delivery.tree.clone(), delivery.excerpt.as_str()), (None, "0"));
    });
}

/// Nothing that an attempt puts into its own git configuration runs on the host.
#[cfg_attr(any(), test)]
pub fn hostile_configuration_is_not_executed_on_the_host() {
    block_on(async {
        let ground = Ground::new().await;
        let mark = ground.dir.path().join("executed");
        let evil = mark.display();
        let run = format!(
            "git config core.fsmonitor 'touch {evil}'; git config core.hooksPath .git/hooks
             git config filter.x.clean 'touch {evil}'; echo '* filter=x' > .gitattributes
             mkdir -p .git/hooks; for h in pre-commit post-checkout reference-transaction; do
               printf '#!/bin/sh\\ntouch {evil}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done
             echo changed >> README.md"
        );
        let went = ground.go(&ground.command(&run, &["**"])).await;
        let commit = ground.take_in(went.delivery()).await;
        let readme = ground.mirror.read_file(&commit, "README.md").await.unwrap().unwrap();
        assert_eq!(readme, b"one\ntwo\nchanged\n");
        assert!(!mark.exists());
    });
}

/// What differs in no file hands in the base itself, which the coordinator has.
#[cfg_attr(any(), test)]
pub fn an_unchanged_tree_is_the_base_itself() {
    block_on(async {
        let ground = Ground::new().await;
        let went = ground.go(&ground.command("true", &[])).await;
        let tree = went.delivery().tree.clone().unwrap();
        let base: CommitId = ground.base.clone();
        let base_tree: TreeId = ground.mirror.tree_of(&base).await.unwrap();
        assert_eq!((tree.base, tree.commit, tree.tree), (base.clone(), base, base_tree));
        assert_eq!((tree.bundle, tree.patch), (None, None));
    });
}

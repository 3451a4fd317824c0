//! Every wait and every answer has a bound with a name.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use ganger_git::{Checkout, Error, FindError, Git, Limits, Mirror, PrepareError, RefError, Source};

use crate::ground::{Ground, becomes_true, name, script};

/// P053: a held lock ends in `repo_busy`, and nothing was done without it.
#[tokio::test]
async fn a_held_lock_ends_in_repo_busy() {
    let limits = Limits { lock_wait: Duration::from_millis(100), ..Limits::default() };
    let ground = Ground::with(limits).await;
    let lock = ground.mirror.path().join("ganger-busy");
    let holder = OpenOptions::new().write(true).open(lock).unwrap();
    holder.lock().unwrap();
    let branch = name("refs/heads/x");
    let refused = ground.mirror.update_ref(&branch, &ground.base, None).await;
    let Err(RefError::Git(error @ Error::RepoBusy { .. })) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("repo_busy"), "{error}");
    assert_eq!(ground.mirror.read_ref(&branch).await.unwrap(), None);
    drop(holder);
    ground.mirror.update_ref(&branch, &ground.base, None).await.unwrap();
}

fn stand_in(path: &Path, hang_at: &str, note: &Path) {
    let note = note.display();
    script(
        path,
        &format!(
            "#!/bin/sh\ncase \"$*\" in\n*{hang_at}*)\n  sleep 1000 &\n  echo $$ $! >{note}\n  wait;;\n\
             *) exec git \"$@\";;\nesac\n"
        ),
    );
}

/// Whether the process is gone before long; one that only waits to be reaped is.
async fn is_gone(pid: &str) -> bool {
    let status = format!("/proc/{pid}/stat");
    becomes_true(|| std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")))
        .await
}

/// P055: a git that hangs is cut, with everything it started.
#[tokio::test]
async fn a_hanging_git_is_ended_at_its_deadline() {
    let ground = Ground::new().await;
    let (program, note) = (ground.path("git"), ground.path("note"));
    stand_in(&program, "commit-tree", &note);
    let limits = Limits { quick: Duration::from_secs(2), ..Limits::default() };
    let git = Git::at(program, limits).await.unwrap();
    let mirror = Mirror::open_or_create(&git, ground.mirror.path()).await.unwrap();
    let refused = mirror.empty_commit().await;
    let Err(error @ Error::Deadline { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("build a commit"), "{error}");
    for pid in std::fs::read_to_string(note).unwrap().split_whitespace() {
        assert!(is_gone(pid).await, "{pid} is still there");
    }
}

/// P062: a checkout that takes too long fails and leaves no directory behind.
#[tokio::test]
async fn a_checkout_past_its_deadline_leaves_nothing() {
    let ground = Ground::new().await;
    let (program, note) = (ground.path("git"), ground.path("note"));
    stand_in(&program, "read-tree", &note);
    let limits = Limits { bulk: Duration::from_secs(2), ..Limits::default() };
    let git = Git::at(program, limits).await.unwrap();
    let mirror = Mirror::open_or_create(&git, ground.mirror.path()).await.unwrap();
    let dest = ground.path("slow");
    let refused = Checkout::prepare(&mirror, &dest, &ground.base).await;
    let Err(PrepareError::Git(Error::Deadline { .. })) = refused else { panic!("{refused:?}") };
    assert!(!dest.exists());
}

/// A caller that gives up takes its git along.
#[tokio::test]
async fn a_dropped_call_ends_its_git() {
    let ground = Ground::new().await;
    let (program, note) = (ground.path("git"), ground.path("note"));
    stand_in(&program, "commit-tree", &note);
    let git = Git::at(program, Limits::default()).await.unwrap();
    let mirror = Mirror::open_or_create(&git, ground.mirror.path()).await.unwrap();
    let call = tokio::spawn(async move { mirror.empty_commit().await });
    let started = || std::fs::read_to_string(&note).is_ok_and(|pids| pids.ends_with('\n'));
    assert!(becomes_true(started).await, "git was never started");
    call.abort();
    for pid in std::fs::read_to_string(note).unwrap().split_whitespace() {
        assert!(is_gone(pid).await, "{pid} is still there");
    }
}

#[tokio::test]
async fn an_old_git_is_refused_with_the_version_needed() {
    let ground = Ground::new().await;
    let program = ground.path("old-git");
    script(&program, "#!/bin/sh\necho git version 2.30.1\n");
    let refused = Git::at(program, Limits::default()).await;
    let Err(error @ FindError::TooOld { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("2.39.0"), "{error}");
}

#[tokio::test]
async fn an_answer_over_its_bound_is_refused() {
    let ground = Ground::with(Limits { answer_max: 60, ..Limits::default() }).await;
    let refused = ground.mirror.list_files(&ground.base).await;
    assert!(matches!(refused, Err(Error::OutputTooLarge { max: 60, .. })), "{refused:?}");
}

/// Nothing of the caller's environment reaches git, and nothing prompts.
#[tokio::test]
async fn git_sees_only_our_environment() {
    let ground = Ground::new().await;
    let (program, note) = (ground.path("git"), ground.path("note"));
    script(&program, &format!("#!/bin/sh\nenv >{}\nexec git \"$@\"\n", note.display()));
    let git = Git::at(program, Limits::default()).await.unwrap();
    let mirror = Mirror::open_or_create(&git, ground.mirror.path()).await.unwrap();
    mirror.tree_of(&ground.base).await.unwrap();
    let environment = std::fs::read_to_string(note).unwrap();
    for line in ["GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent"] {
        assert!(environment.lines().any(|found| found == line), "{line} in {environment}");
    }
    let known = ["GIT_", "HOME=", "XDG_CONFIG_HOME=", "LC_ALL=", "PATH=", "PWD=", "_=", "SHLVL="];
    for line in environment.lines() {
        assert!(known.iter().any(|known| line.starts_with(known)), "{line}");
    }
}

/// Callers are actors and tasks: whatever they wait for here must be able to move between threads.
#[tokio::test]
async fn every_wait_can_move_between_threads() {
    fn moves<T: Send>(wait: T) -> T {
        wait
    }
    let ground = Ground::new().await;
    let checkout = moves(ground.checkout("try")).await;
    let snapshot = moves(checkout.snapshot()).await.unwrap();
    moves(checkout.residue()).await.unwrap();
    moves(checkout.rescue_commits(&ground.mirror, "x")).await.unwrap();
    moves(checkout.restore_from(&ground.base, str::is_empty)).await.unwrap();
    moves(checkout.patch(&snapshot.tree, 1)).await.unwrap();
    moves(ground.mirror.diff_paths(&ground.base, &snapshot.tree)).await.unwrap();
    moves(ground.mirror.merge(&ground.base, &ground.base)).await.unwrap();
    let out = ground.path("out.bundle");
    moves(ground.mirror.make_bundle(&out, &ground.base, &[])).await.unwrap();
    moves(ground.source.fetch_branch_from_bundle(&out, "b", &ground.base)).await.unwrap();
    moves(ground.source.hazards(&ground.base)).await.unwrap();
    moves(Source::seed(&ground.git, &ground.user(), &ground.path("seeded"))).await.unwrap();
    moves(checkout.reset_to(&ground.base)).await.unwrap();
}

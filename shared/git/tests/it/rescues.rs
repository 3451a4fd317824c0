//! Commits an attempt made for itself are kept, and what would be lost is named.

use std::fs;

use ganger_git::{Checkout, RescueError};
use ganger_shared::ids::CommitId;

use crate::ground::{Ground, git, name, write};

fn commit(checkout: &Checkout, file: &str, text: &str) -> CommitId {
    write(&checkout.tree().join(file), text);
    git(&checkout.tree(), &["add", "-A"]);
    git(&checkout.tree(), &["commit", "-q", "-m", text]);
    git(&checkout.tree(), &["rev-parse", "HEAD"]).parse().unwrap()
}

/// R041: branches, detached and abandoned commits and stashes are pinned in the mirror.
#[tokio::test]
async fn commits_of_the_attempt_are_pinned() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    let tree = checkout.tree();
    assert_eq!(checkout.rescue_commits(&ground.mirror, "r-1-a-1").await.unwrap(), []);

    let abandoned = commit(&checkout, "a.txt", "abandoned");
    git(&tree, &["reset", "-q", "--hard", "HEAD~1"]);
    commit(&checkout, "b.txt", "below the branch");
    let branch = commit(&checkout, "b.txt", "branch");
    git(&tree, &["checkout", "-q", "--detach", "HEAD~2"]);
    let detached = commit(&checkout, "c.txt", "detached");
    write(&tree.join("c.txt"), "stashed");
    git(&tree, &["stash", "-q"]);
    git(&tree, &["pack-refs", "--all"]);
    let stash: CommitId = git(&tree, &["rev-parse", "stash@{0}"]).parse().unwrap();

    let rescued = checkout.rescue_commits(&ground.mirror, "r-1-a-1").await.unwrap();
    let mut commits: Vec<CommitId> = rescued.iter().map(|one| one.commit.clone()).collect();
    commits.sort();
    let mut wanted = vec![abandoned, branch, stash];
    wanted.sort();
    assert_eq!(commits, wanted, "the detached commit {detached} is below the stash");
    for one in &rescued {
        assert_eq!(ground.mirror.read_ref(&one.name).await.unwrap(), Some(one.commit.clone()));
    }
    let again = checkout.rescue_commits(&ground.mirror, "r-1-a-1").await.unwrap();
    assert_eq!(again, rescued, "a second rescue finds the first");
    let pins = ground.mirror.refs_under(&name("refs/ganger/rescue")).await.unwrap();
    assert_eq!(pins.len(), 3);
    git(ground.mirror.path(), &["fsck", "--full", "--strict"]);
}

/// P058 (what git can know of it): dirty, untracked, ignored-but-new, stashed and detached work is all named.
#[tokio::test]
async fn what_would_be_lost_is_named() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    let tree = checkout.tree();
    assert!(checkout.residue().await.unwrap().is_empty());

    write(&tree.join("README.md"), "dirty\n");
    let residue = checkout.residue().await.unwrap();
    assert_eq!(residue.changed.len(), 1);
    git(&tree, &["stash", "-q"]);
    let residue = checkout.residue().await.unwrap();
    assert_eq!((residue.changed.len(), residue.commits.len()), (0, 1));
    git(&tree, &["stash", "drop", "-q"]);
    fs::remove_dir_all(tree.join(".git/logs")).unwrap();
    fs::remove_file(tree.join(".git/ORIG_HEAD")).unwrap_or_default();
    assert!(checkout.residue().await.unwrap().is_empty());

    write(&tree.join("untracked.txt"), "untracked\n");
    assert_eq!(checkout.residue().await.unwrap().changed.len(), 1);
    fs::remove_file(tree.join("untracked.txt")).unwrap();
    write(&tree.join("new.log"), "ignored\n");
    write(&tree.join("target/x"), "ignored\n");
    assert_eq!(checkout.residue().await.unwrap().ignored, ["new.log", "target/"]);
    fs::remove_file(tree.join("new.log")).unwrap();
    fs::remove_dir_all(tree.join("target")).unwrap();
    let detached = commit(&checkout, "d.txt", "detached");
    git(&tree, &["checkout", "-q", "--detach"]);
    git(&tree, &["reset", "-q", "--hard", ground.base.as_str()]);
    let residue = checkout.residue().await.unwrap();
    assert_eq!((residue.changed.len(), residue.commits), (0, vec![detached]));
}

#[tokio::test]
async fn a_repository_that_borrows_objects_is_refused() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    commit(&checkout, "a.txt", "mine");
    let objects = ground.user().join(".git/objects");
    let alternates = checkout.tree().join(".git/objects/info/alternates");
    write(&alternates, objects.to_str().unwrap());
    let refused = checkout.rescue_commits(&ground.mirror, "r-1-a-1").await;
    assert!(matches!(refused, Err(RescueError::Unreadable { .. })), "{refused:?}");
}

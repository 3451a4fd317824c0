//! A run's branch arrives in the user's repository, and nothing else there changes.

use std::fs;

use ganger_git::{BranchError, BranchFetched};

use crate::ground::{Ground, bytes_below, git, write};

const BRANCH: &str = "ganger/r-1";

/// P070: the user's tree, index, `HEAD`, configuration and other refs stay byte for byte.
#[tokio::test]
async fn only_the_branch_changes() {
    let ground = Ground::new().await;
    let user = ground.user();
    write(&user.join("untracked.txt"), "mine\n");
    write(&user.join("README.md"), "edited, not staged\n");
    write(&user.join("staged.txt"), "staged\n");
    git(&user, &["add", "staged.txt"]);
    let before = bytes_below(&user, &["objects"]);
    let tip = ground.commit(&ground.base, "new.txt", "new\n").await;
    let out = ground.path("run.bundle");
    ground.mirror.make_bundle(&out, &tip, std::slice::from_ref(&ground.base)).await.unwrap();

    let fetched = ground.source.fetch_branch_from_bundle(&out, BRANCH, &tip).await.unwrap();
    assert_eq!(fetched, BranchFetched::Created);
    assert_eq!(git(&user, &["rev-parse", BRANCH]), tip.as_str());
    let mut after = bytes_below(&user, &["objects"]);
    after.retain(|path, _| !path.ends_with("ganger/r-1") && !path.ends_with("ganger-busy"));
    assert_eq!(after, before);

    let again = ground.source.fetch_branch_from_bundle(&out, BRANCH, &tip).await.unwrap();
    assert_eq!(again, BranchFetched::Unchanged);
    let next = ground.commit(&tip, "new.txt", "newer\n").await;
    ground.mirror.make_bundle(&out, &next, std::slice::from_ref(&ground.base)).await.unwrap();
    let fetched = ground.source.fetch_branch_from_bundle(&out, BRANCH, &next).await.unwrap();
    assert_eq!(fetched, BranchFetched::Advanced { from: tip });
    git(&user, &["fsck", "--full", "--strict"]);
}

#[tokio::test]
async fn a_branch_somebody_works_on_is_not_moved() {
    let ground = Ground::new().await;
    let user = ground.user();
    let tip = ground.commit(&ground.base, "new.txt", "new\n").await;
    let out = ground.path("run.bundle");
    ground.mirror.make_bundle(&out, &tip, &[]).await.unwrap();
    let linked = ground.path("linked");
    git(&user, &["worktree", "add", "-q", "-b", BRANCH, linked.to_str().unwrap()]);
    let refused = ground.source.fetch_branch_from_bundle(&out, BRANCH, &tip).await;
    let Err(BranchError::CheckedOut { worktree, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(worktree, linked.canonicalize().unwrap());
    assert_eq!(git(&user, &["rev-parse", BRANCH]), ground.base.as_str());
}

#[tokio::test]
async fn a_branch_with_commits_of_its_own_is_not_moved() {
    let ground = Ground::new().await;
    let user = ground.user();
    let tip = ground.commit(&ground.base, "new.txt", "new\n").await;
    let out = ground.path("run.bundle");
    ground.mirror.make_bundle(&out, &tip, &[]).await.unwrap();
    git(&user, &["branch", BRANCH, "main"]);
    git(&user, &["checkout", "-q", BRANCH]);
    git(&user, &["commit", "-q", "--allow-empty", "-m", "the user's own"]);
    let own = git(&user, &["rev-parse", BRANCH]);
    git(&user, &["checkout", "-q", "main"]);
    let refused = ground.source.fetch_branch_from_bundle(&out, BRANCH, &tip).await;
    let Err(BranchError::Moved { actual, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(actual, own);
    assert_eq!(git(&user, &["rev-parse", BRANCH]), own);
}

#[tokio::test]
async fn a_branch_in_the_way_is_named() {
    let ground = Ground::new().await;
    git(&ground.user(), &["branch", "ganger"]);
    let out = ground.path("base.bundle");
    let refused = ground.source.fetch_branch_from_bundle(&out, BRANCH, &ground.base).await;
    let Err(BranchError::NameTaken { blocker, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(blocker, "ganger");
}

#[tokio::test]
async fn a_linked_worktree_serves_as_well() {
    let ground = Ground::new().await;
    let linked = ground.path("linked");
    let linked_text = linked.to_str().unwrap();
    git(&ground.user(), &["worktree", "add", "-q", "--detach", linked_text, "main~1"]);
    fs::create_dir(linked.join("deep")).unwrap();
    let source = ganger_git::Source::discover(&ground.git, &linked.join("deep")).await.unwrap();
    assert_eq!(source.path(), linked.canonicalize().unwrap());
    let head = source.resolve("HEAD").await.unwrap();
    assert_eq!(head, ground.source.resolve("main~1").await.unwrap());
    let tip = ground.commit(&ground.base, "new.txt", "new\n").await;
    let out = ground.path("run.bundle");
    ground.mirror.make_bundle(&out, &tip, std::slice::from_ref(&ground.base)).await.unwrap();
    let fetched = source.fetch_branch_from_bundle(&out, BRANCH, &tip).await.unwrap();
    assert_eq!(fetched, BranchFetched::Created);
    assert_eq!(git(&ground.user(), &["rev-parse", BRANCH]), tip.as_str());
}

//! Private trees: made, moved on, read, put back.

use std::fs;
use std::os::unix::fs::symlink;

use ganger_git::{Checkout, Limits, OutsideLink, OwnGit, PrepareError, SnapshotError};

use crate::ground::{Ground, bytes_below, git, write};

/// P052: any number of trees can be made at once, each whole.
#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_trees_are_made_at_once() {
    let ground = Ground::new().await;
    let mut makers = tokio::task::JoinSet::new();
    for number in 0..32 {
        let (mirror, base) = (ground.mirror.clone(), ground.base.clone());
        let dest = ground.path(&format!("trees/{number}"));
        makers.spawn(async move { Checkout::prepare(&mirror, &dest, &base).await });
    }
    let made: Vec<Checkout> = makers.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(made.len(), 32);
    for checkout in made {
        assert_eq!(git(&checkout.tree(), &["status", "--porcelain"]), "");
        assert_eq!(git(&checkout.tree(), &["rev-parse", "HEAD"]), ground.base.as_str());
        git(&checkout.tree(), &["fsck", "--full", "--strict"]);
        assert!(!checkout.is_dirty().await.unwrap());
    }
}

/// P060, P061, P068: what one attempt does to its repository, no other attempt can see.
#[tokio::test]
async fn attempts_share_nothing() {
    let ground = Ground::new().await;
    let (a, b) = (ground.checkout("a").await, ground.checkout("b").await);
    let untouched = bytes_below(b.dest(), &[]);
    let mirror = bytes_below(ground.mirror.path(), &[]);
    git(&a.tree(), &["config", "user.name", "X"]);
    write(&a.tree().join("secret.txt"), "of a\n");
    git(&a.tree(), &["add", "-A"]);
    git(&a.tree(), &["commit", "-q", "-m", "of a"]);
    git(&a.tree(), &["gc", "-q", "--prune=now", "--aggressive"]);
    assert_eq!(bytes_below(b.dest(), &[]), untouched);
    assert_eq!(bytes_below(ground.mirror.path(), &[]), mirror);
    assert_eq!(git(&b.tree(), &["config", "user.name"]), "attempt");
    let later = ground.commit(&ground.base, "other.txt", "of another attempt\n").await;
    let c = ground.checkout("c").await;
    let seen = crate::ground::plain_git(&c.tree(), &["cat-file", "-e", later.as_str()]).status();
    assert!(!seen.unwrap().success(), "the commit of another attempt is in sight");
}

#[tokio::test]
async fn a_warm_tree_moves_on_to_a_later_base() {
    let ground = Ground::new().await;
    let warm = ground.checkout("warm").await;
    let later = ground.commit(&ground.base, "later.txt", "later\n").await;
    let warm = warm.reset_to(&later).await.unwrap();
    assert_eq!(warm.base(), &later);
    assert_eq!(fs::read_to_string(warm.tree().join("later.txt")).unwrap(), "later\n");
    assert!(!warm.is_dirty().await.unwrap());
    assert_eq!(git(&warm.tree(), &["status", "--porcelain"]), "");
    assert_eq!(git(&warm.tree(), &["log", "--format=%H", "-1"]), later.as_str());
    git(&warm.tree(), &["fsck", "--full", "--strict"]);

    let warm = warm.reset_to(&ground.base).await.unwrap();
    assert!(!warm.tree().join("later.txt").exists());
    let reopened = Checkout::open(&ground.mirror, warm.dest()).unwrap();
    assert_eq!(reopened.base(), &ground.base);

    git(&warm.tree(), &["commit", "-q", "--allow-empty", "-m", "used"]);
    let refused = warm.reset_to(&later).await;
    assert!(matches!(refused, Err(PrepareError::Used { .. })), "{refused:?}");
}

#[tokio::test]
async fn many_bases_in_turn_are_all_whole() {
    let ground = Ground::new().await;
    let mut base = ground.base.clone();
    for number in 0..6 {
        let left = ground.commit(&base, "left.txt", &number.to_string()).await;
        // A base that no kept pack leads to: its history is not that of the last one.
        let first = ground.source.resolve("main~1").await.unwrap();
        base = if number % 2 == 0 { first } else { left };
        let dest = ground.path(&format!("in-turn-{number}"));
        let checkout = Checkout::prepare(&ground.mirror, &dest, &base).await.unwrap();
        git(&checkout.tree(), &["fsck", "--full", "--strict"]);
        assert_eq!(git(&checkout.tree(), &["rev-parse", "HEAD"]), base.as_str());
    }
}

#[tokio::test]
async fn past_the_history_limit_a_private_clone_is_shallow() {
    let ground = Ground::with(Limits { history_max: 0, ..Limits::default() }).await;
    let checkout = ground.checkout("shallow").await;
    assert_eq!(git(&checkout.tree(), &["rev-list", "--count", "HEAD"]), "1");
    git(&checkout.tree(), &["fsck", "--full", "--strict"]);
    let later = ground.commit(&ground.base, "later.txt", "later\n").await;
    let checkout = checkout.reset_to(&later).await.unwrap();
    assert_eq!(git(&checkout.tree(), &["rev-list", "--count", "HEAD"]), "2");
    write(&checkout.tree().join("new.txt"), "new\n");
    let snapshot = checkout.snapshot().await.unwrap();
    assert_eq!(snapshot.changed.len(), 1);
}

/// A failed preparation leaves no directory that could be taken for a tree.
#[tokio::test]
async fn a_failed_preparation_leaves_nothing() {
    let ground = Ground::new().await;
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let dest = ground.path("none");
    let refused = Checkout::prepare(&ground.mirror, &dest, &unknown).await;
    assert!(matches!(refused, Err(PrepareError::UnknownCommit { .. })), "{refused:?}");
    assert!(!dest.exists());
    fs::create_dir(&dest).unwrap();
    let refused = Checkout::prepare(&ground.mirror, &dest, &ground.base).await;
    assert!(matches!(refused, Err(PrepareError::DestinationExists { .. })), "{refused:?}");
    let refused = Checkout::open(&ground.mirror, &dest);
    assert!(matches!(refused, Err(PrepareError::HalfMade { .. })), "{refused:?}");
    let long = ground.path(&"x/".repeat(600));
    let refused = Checkout::prepare(&ground.mirror, &long, &ground.base).await;
    assert!(matches!(refused, Err(PrepareError::DestinationTooLong { .. })), "{refused:?}");
}

#[tokio::test]
async fn links_that_may_lead_out_are_reported() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    symlink("/etc/passwd", checkout.tree().join("absolute")).unwrap();
    symlink("../../up", checkout.tree().join("src/up")).unwrap();
    symlink("../README.md", checkout.tree().join("src/inside")).unwrap();
    let snapshot = checkout.snapshot().await.unwrap();
    let link = |path: &str, target: &str| OutsideLink { path: path.into(), target: target.into() };
    assert_eq!(
        snapshot.outside_links,
        [link("absolute", "/etc/passwd"), link("src/up", "../../up")]
    );
}

/// R044: another repository in the place of the attempt's own is noticed.
#[tokio::test]
async fn a_replaced_repository_is_noticed_and_does_not_count() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    assert_eq!(checkout.own_git(), OwnGit::Intact);
    fs::remove_dir_all(checkout.tree().join(".git")).unwrap();
    git(&checkout.tree(), &["init", "-q"]);
    write(&checkout.tree().join("new.txt"), "new\n");
    let snapshot = checkout.snapshot().await.unwrap();
    assert_eq!(snapshot.own_git, OwnGit::Replaced);
    assert_eq!(snapshot.changed.len(), 1);
    let refused = checkout.reset_to(&ground.base).await;
    assert!(matches!(refused, Err(PrepareError::Used { .. })), "{refused:?}");
}

/// A pinned check file counts as it was, whatever the delivery did to it.
#[tokio::test]
async fn pinned_files_are_put_back_as_they_were() {
    let ground = Ground::new().await;
    let tampered = ground.commit(&ground.base, "tests/golden/a.txt", "tampered\n").await;
    let tampered = ground.commit(&tampered, "tests/golden/extra.txt", "added\n").await;
    let dest = ground.path("check");
    let check = Checkout::prepare(&ground.mirror, &dest, &tampered).await.unwrap();
    write(&check.tree().join("tests/golden/seen.log"), "ignored\n");
    write(&check.tree().join("kept.txt"), "not pinned\n");
    let pinned = |path: &str| path.starts_with("tests/golden/");
    let restored = check.restore_from(&ground.base, pinned).await.unwrap();
    assert_eq!(restored.written, ["tests/golden/a.txt"]);
    assert_eq!(restored.removed, ["tests/golden/extra.txt", "tests/golden/seen.log"]);
    let golden = check.tree().join("tests/golden");
    assert_eq!(fs::read_to_string(golden.join("a.txt")).unwrap(), "golden\n");
    assert_eq!(fs::read_dir(&golden).unwrap().count(), 1);
    assert!(check.tree().join("kept.txt").exists());
}

#[tokio::test]
async fn files_are_put_back_never_through_a_link() {
    let ground = Ground::new().await;
    let outside = ground.path("outside");
    write(&outside.join("golden/a.txt"), "somebody else's\n");
    write(&outside.join("golden/b.txt"), "somebody else's\n");
    let check = ground.checkout("check").await;
    fs::remove_dir_all(check.tree().join("tests")).unwrap();
    symlink(&outside, check.tree().join("tests")).unwrap();
    let before = bytes_below(&outside, &[]);
    let pinned = |path: &str| path.starts_with("tests");
    check.restore_from(&ground.base, pinned).await.unwrap();
    assert_eq!(bytes_below(&outside, &[]), before);
    let golden = fs::read_to_string(check.tree().join("tests/golden/a.txt")).unwrap();
    assert_eq!(golden, "golden\n");
    assert!(!check.is_dirty().await.unwrap());
}

/// P056: what is put where the base has a submodule is refused, not dropped unseen.
#[tokio::test]
async fn submodules_stay_as_they_are_or_are_refused() {
    let ground = Ground::new().await;
    let user = ground.user();
    let link = format!("160000,{},vendor/dep", ground.base);
    git(&user, &["update-index", "--add", "--cacheinfo", &link]);
    git(&user, &["commit", "-q", "-m", "submodule"]);
    let base = ground.source.resolve("main").await.unwrap();
    let bundle = ground.path("sub.bundle");
    ground.source.bundle(&bundle, &base, std::slice::from_ref(&ground.base)).await.unwrap();
    ground.mirror.fetch_bundle(&bundle, &base).await.unwrap();
    let dest = ground.path("try");
    let checkout = Checkout::prepare(&ground.mirror, &dest, &base).await.unwrap();
    write(&checkout.tree().join("new.txt"), "new\n");
    let changed = checkout.snapshot().await.unwrap().changed;
    assert_eq!(changed.iter().map(|change| &change.path).collect::<Vec<_>>(), ["new.txt"]);

    write(&checkout.tree().join("vendor/dep/lost.txt"), "would be lost\n");
    let refused = checkout.snapshot().await;
    let Err(SnapshotError::SubmodulesTouched { paths, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(paths, ["vendor/dep"]);
}

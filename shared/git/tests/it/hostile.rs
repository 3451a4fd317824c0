//! What an attempt plants in its tree never runs on the host and never hides what it did.

use std::fs;
use std::os::unix::fs::symlink;

use ganger_git::{Checkout, SnapshotError};

use crate::ground::{Ground, git, plain_git, script, stamp, write};

/// P060: no program that the attempt names anywhere in its tree is run by the host.
#[tokio::test]
async fn nothing_planted_runs_on_the_host() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    let tree = checkout.tree();
    let ran = ground.path("ran");
    let evil = ground.path("evil");
    script(&evil, &format!("#!/bin/sh\necho \"$0 $*\" >>{}\ncat\n", ran.display()));
    let evil_text = evil.to_str().unwrap();
    // The agent's own commit comes first: its git would run these, as it may.
    write(&tree.join("committed.txt"), "by the agent\n");
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-q", "-m", "by the agent"]);
    for (name, value) in [
        ("core.fsmonitor", evil_text),
        ("core.sshCommand", evil_text),
        ("core.pager", evil_text),
        ("core.editor", evil_text),
        ("core.alternateRefsCommand", evil_text),
        ("core.hooksPath", tree.to_str().unwrap()),
        ("filter.x.clean", evil_text),
        ("filter.x.smudge", evil_text),
        ("filter.x.process", evil_text),
        ("filter.x.required", "true"),
        ("diff.external", evil_text),
        ("diff.x.command", evil_text),
        ("diff.x.textconv", evil_text),
        ("merge.x.driver", evil_text),
        ("gpg.program", evil_text),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ext::sh -c evil"),
        ("remote.origin.uploadpack", evil_text),
        ("extensions.partialClone", "origin"),
    ] {
        git(&tree, &["config", name, value]);
    }
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction"] {
        script(&tree.join(".git/hooks").join(hook), &format!("#!/bin/sh\n{evil_text}\n"));
        script(&tree.join(hook), &format!("#!/bin/sh\n{evil_text}\n"));
    }
    write(&tree.join(".gitattributes"), "* filter=x diff=x merge=x\n");
    write(&tree.join("README.md"), "changed\n");

    let snapshot = checkout.snapshot().await.unwrap();
    let out = ground.path("out.bundle");
    let delivered = checkout.bundle(&out, &snapshot.tree, &stamp()).await.unwrap();
    checkout.patch(&snapshot.tree, 1 << 20).await.unwrap();
    checkout.rescue_commits(&ground.mirror, "r-1-try").await.unwrap();
    checkout.residue().await.unwrap();
    checkout.restore_from(&ground.base, |path| path == "README.md").await.unwrap();
    ground.mirror.fetch_bundle(&out, &delivered.commit).await.unwrap();
    let check = ground.path("check");
    Checkout::prepare(&ground.mirror, &check, &delivered.commit).await.unwrap();
    ground.mirror.merge(&ground.base, &delivered.commit).await.unwrap();
    assert!(!ran.exists(), "ran: {}", fs::read_to_string(&ran).unwrap());
    let _fails_or_not = plain_git(&tree, &["status"]).output().unwrap();
    assert!(ran.exists(), "the bait was not live");
}

/// P060: a submodule of the base is never looked into, where its configuration would run.
#[tokio::test]
async fn the_configuration_of_a_submodule_does_not_run() {
    let ground = Ground::new().await;
    let user = ground.user();
    let link = format!("160000,{},dep", ground.base);
    git(&user, &["update-index", "--add", "--cacheinfo", &link]);
    git(&user, &["commit", "-q", "-m", "submodule"]);
    let base = ground.source.resolve("main").await.unwrap();
    let bundle = ground.path("sub.bundle");
    ground.source.bundle(&bundle, &base, &[]).await.unwrap();
    ground.mirror.fetch_bundle(&bundle, &base).await.unwrap();
    let dest = ground.path("try");
    let checkout = Checkout::prepare(&ground.mirror, &dest, &base).await.unwrap();
    let dep = checkout.tree().join("dep");
    let ran = ground.path("ran");
    script(&ground.path("evil"), &format!("#!/bin/sh\ntouch {}\n", ran.display()));
    git(ground.dir.path(), &["clone", "-q", "user", dep.to_str().unwrap()]);
    git(&dep, &["config", "core.fsmonitor", ground.path("evil").to_str().unwrap()]);
    let refused = checkout.snapshot().await;
    assert!(matches!(refused, Err(SnapshotError::SubmodulesTouched { .. })), "{refused:?}");
    assert!(!ran.exists());
}

#[tokio::test]
async fn repositories_inside_a_tree_are_named() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    git(&checkout.tree(), &["init", "-q", "sub/empty"]);
    let refused = checkout.snapshot().await;
    let Err(SnapshotError::NestedRepositories { paths, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(paths, ["sub/empty/"]);
    fs::remove_dir_all(checkout.tree().join("sub")).unwrap();

    let user = ground.user();
    git(&checkout.tree(), &["clone", "-q", user.to_str().unwrap(), "sub/clone"]);
    let refused = checkout.snapshot().await;
    let Err(SnapshotError::NestedRepositories { paths, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(paths, ["sub/clone"]);
    fs::rename(checkout.tree().join("sub"), checkout.tree().join("target")).unwrap();
    let snapshot = checkout.snapshot().await.unwrap();
    assert_eq!(snapshot.changed, [], "an ignored repository is no part of a delivery");
}

/// The tree is read where it was made, not where a link in its place leads.
#[tokio::test]
async fn a_tree_replaced_by_a_link_is_refused() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    fs::rename(checkout.tree(), ground.path("aside")).unwrap();
    symlink(ground.user(), checkout.tree()).unwrap();
    let refused = checkout.snapshot().await;
    assert!(matches!(refused, Err(SnapshotError::TreeReplaced { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_directory_replaced_by_a_link_is_a_link_in_the_snapshot() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    fs::remove_dir_all(checkout.tree().join("src")).unwrap();
    symlink("/etc", checkout.tree().join("src")).unwrap();
    let snapshot = checkout.snapshot().await.unwrap();
    let paths: Vec<&str> = snapshot.changed.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["src", "src/lib.rs", "src/old name.rs"]);
    assert_eq!(snapshot.outside_links.len(), 1);
}

/// A change that keeps size and time is a change all the same.
#[tokio::test]
async fn a_change_that_keeps_size_and_time_is_seen() {
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    let file = checkout.tree().join("README.md");
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    write(&file, "two\none\nthree\n");
    let opened = fs::OpenOptions::new().write(true).open(&file).unwrap();
    opened.set_modified(before).unwrap();
    assert!(checkout.is_dirty().await.unwrap());
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_refused_by_name() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new().await;
    let checkout = ground.checkout("try").await;
    let name = std::ffi::OsStr::from_bytes(b"bad-\xff");
    write(&checkout.tree().join(name), "x\n");
    let refused = checkout.snapshot().await.unwrap_err().to_string();
    assert!(refused.contains("bad-") && refused.contains("UTF-8"), "{refused}");
}

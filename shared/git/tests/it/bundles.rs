//! History goes from the user to a worker and back as bundles.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use ganger_git::{BundleError, Bundled, ChangeKind, Checkout, Limits, Mirror};

use crate::ground::{Ground, git, name, request, script, stamp, write};

/// Every kind of change arrives as the tree that was left.
#[tokio::test]
async fn a_delivery_arrives_as_exactly_the_tree_that_was_left() {
    let ground = Ground::new().await;
    let worker = Mirror::open_or_create(&ground.git, &ground.path("worker.git")).await.unwrap();
    let base = ground.path("to-worker.bundle");
    ground.mirror.make_bundle(&base, &ground.base, &[]).await.unwrap();
    worker.fetch_bundle(&base, &ground.base).await.unwrap();
    let checkout = Checkout::prepare(&worker, &ground.path("try"), &ground.base).await.unwrap();
    let tree = checkout.tree();
    write(&tree.join("image.bin"), [0, 159, 146, 150, 0, 10, 13]);
    fs::rename(tree.join("src/old name.rs"), tree.join("src/new name.rs")).unwrap();
    fs::set_permissions(tree.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("README.md", tree.join("link")).unwrap();
    fs::remove_file(tree.join("doomed.txt")).unwrap();
    write(&tree.join("größe/日本.txt"), "unicode\n");
    write(&tree.join("dos.txt"), "one\r\ntwo\r\n");
    write(&tree.join("target/junk"), "ignored\n");

    let snapshot = checkout.snapshot().await.unwrap();
    let kinds: Vec<(&str, ChangeKind)> =
        snapshot.changed.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("doomed.txt", ChangeKind::Deleted),
            ("dos.txt", ChangeKind::Added),
            ("größe/日本.txt", ChangeKind::Added),
            ("image.bin", ChangeKind::Added),
            ("link", ChangeKind::Added),
            ("run.sh", ChangeKind::Modified),
            ("src/new name.rs", ChangeKind::Added),
            ("src/old name.rs", ChangeKind::Deleted),
        ]
    );
    let out = ground.path("delivery.bundle");
    let delivered = checkout.bundle(&out, &snapshot.tree, &stamp()).await.unwrap();
    ground.mirror.fetch_bundle(&out, &delivered.commit).await.unwrap();
    assert_eq!(ground.mirror.tree_of(&delivered.commit).await.unwrap(), snapshot.tree);
    assert_eq!(
        ground.mirror.parents_of(&delivered.commit).await.unwrap(),
        *std::slice::from_ref(&ground.base)
    );
    let dos = ground.mirror.read_file(&snapshot.tree, "dos.txt").await.unwrap();
    assert_eq!(dos.as_deref(), Some(b"one\r\ntwo\r\n".as_slice()));
    assert_eq!(delivered.bytes, fs::metadata(&out).unwrap().len());

    let patch = checkout.patch(&snapshot.tree, 1 << 20).await.unwrap();
    assert!(!patch.truncated);
    let patch_file = ground.path("delivery.patch");
    fs::write(&patch_file, patch.bytes).unwrap();
    git(&ground.user(), &["apply", "--index", "--binary", patch_file.to_str().unwrap()]);
    assert_eq!(git(&ground.user(), &["write-tree"]), snapshot.tree.as_str());
}

#[tokio::test]
async fn our_bundles_are_gits_bundles_and_gits_are_ours() {
    let ground = Ground::new().await;
    let first = ground.source.resolve("main~1").await.unwrap();
    let ours = ground.path("ours.bundle");
    let written = ground.source.bundle(&ours, &ground.base, &[first]).await.unwrap();
    assert_eq!(written, Bundled::Written { bytes: fs::metadata(&ours).unwrap().len() });
    git(&ground.user(), &["bundle", "verify", "-q", ours.to_str().unwrap()]);

    let gits = ground.path("gits.bundle");
    git(&ground.user(), &["bundle", "create", "-q", gits.to_str().unwrap(), "main"]);
    let fresh = Mirror::open_or_create(&ground.git, &ground.path("fresh.git")).await.unwrap();
    fresh.fetch_bundle(&gits, &ground.base).await.unwrap();
    assert!(fresh.has_commit(&ground.base).await.unwrap());
}

#[tokio::test]
async fn what_the_other_side_has_is_not_sent_again() {
    let ground = Ground::new().await;
    let out = ground.path("nothing.bundle");
    let have = [ground.base.clone()];
    let bundled = ground.source.bundle(&out, &ground.base, &have).await.unwrap();
    assert_eq!(bundled, Bundled::NothingNew);
    assert!(!out.exists());
    let unknown = "0123456789012345678901234567890123456789".parse().unwrap();
    let bundled = ground.source.bundle(&out, &ground.base, &[unknown]).await.unwrap();
    assert!(matches!(bundled, Bundled::Written { .. }), "{bundled:?}");
}

#[tokio::test]
async fn a_bundle_on_a_missing_base_names_what_is_missing() {
    let ground = Ground::new().await;
    let first = ground.source.resolve("main~1").await.unwrap();
    let out = ground.path("thin.bundle");
    ground.source.bundle(&out, &ground.base, std::slice::from_ref(&first)).await.unwrap();
    let fresh = Mirror::open_or_create(&ground.git, &ground.path("fresh.git")).await.unwrap();
    let refused = fresh.fetch_bundle(&out, &ground.base).await;
    let Err(BundleError::MissingPrerequisite { commits, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(commits, [first]);
}

#[tokio::test]
async fn a_damaged_bundle_is_refused_wherever_it_is_damaged() {
    let ground = Ground::new().await;
    let whole = fs::read(ground.path("base.bundle")).unwrap();
    let damaged = ground.path("damaged.bundle");
    let mut cases: Vec<Vec<u8>> = Vec::new();
    for at in [0, 5, 20, 70, whole.len() / 2, whole.len() - 5] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        cases.push(bytes);
        cases.push(whole[..at].to_vec());
    }
    for (number, bytes) in cases.into_iter().enumerate() {
        let fresh = ground.path(&format!("fresh-{number}.git"));
        let fresh = Mirror::open_or_create(&ground.git, &fresh).await.unwrap();
        fs::write(&damaged, &bytes).unwrap();
        let refused = fresh.fetch_bundle(&damaged, &ground.base).await;
        let typed = matches!(
            refused,
            Err(BundleError::Damaged { .. } | BundleError::MissingPrerequisite { .. })
        );
        // A changed name of a tip changes nothing that counts.
        assert!(typed || refused.is_ok(), "{refused:?}");
        assert_eq!(refused.is_ok(), fresh.has_commit(&ground.base).await.unwrap());
    }
}

/// A commit without all its files must never look like one that is here.
#[tokio::test]
async fn a_bundle_that_leaves_files_out_leaves_nothing_behind() {
    let ground = Ground::new().await;
    let user = ground.user();
    let commit = git(&user, &["cat-file", "commit", "main"]);
    let tree = commit.lines().next().unwrap().strip_prefix("tree ").unwrap().to_owned();
    let first = git(&user, &["rev-parse", "main~1"]);
    let list = ground.path("objects");
    fs::write(&list, format!("{}\n{tree}\n", ground.base)).unwrap();
    let out = ground.path("partial.bundle");
    let pack = format!(
        "(printf '# v2 git bundle\\n-{first}\\n{} refs/heads/x\\n\\n'; \
         git pack-objects -q --stdout <{}) >{}",
        ground.base,
        list.display(),
        out.display()
    );
    let made = std::process::Command::new("sh").args(["-c", &pack]).current_dir(&user).status();
    assert!(made.unwrap().success());
    let fresh = Mirror::open_or_create(&ground.git, &ground.path("fresh.git")).await.unwrap();
    let to_first = ground.path("first.bundle");
    let first = first.parse().unwrap();
    ground.source.bundle(&to_first, &first, &[]).await.unwrap();
    fresh.fetch_bundle(&to_first, &first).await.unwrap();

    let refused = fresh.fetch_bundle(&out, &ground.base).await;
    assert!(matches!(refused, Err(BundleError::Damaged { .. })), "{refused:?}");
    assert!(!fresh.has_commit(&ground.base).await.unwrap());
    assert!(!fresh.path().join("objects/ganger-incoming").exists());
}

#[tokio::test]
async fn a_sound_bundle_without_the_wanted_commit_is_refused() {
    let ground = Ground::new().await;
    let first = ground.source.resolve("main~1").await.unwrap();
    let out = ground.path("first.bundle");
    ground.source.bundle(&out, &first, &[]).await.unwrap();
    let fresh = Mirror::open_or_create(&ground.git, &ground.path("fresh.git")).await.unwrap();
    let refused = fresh.fetch_bundle(&out, &ground.base).await;
    assert!(matches!(refused, Err(BundleError::WithoutCommit { .. })), "{refused:?}");
    assert!(!fresh.has_commit(&first).await.unwrap());
}

/// The limit on a bundle is ours, on both sides, and leaves no file.
#[tokio::test]
async fn a_bundle_over_the_limit_is_refused_by_name() {
    let ground = Ground::new().await;
    let limits = Limits { bundle_max: 300, ..Limits::default() };
    let git = ganger_git::Git::find(limits).await.unwrap();
    let small = Mirror::open_or_create(&git, ground.mirror.path()).await.unwrap();
    let out = ground.path("large.bundle");
    let refused = small.make_bundle(&out, &ground.base, &[]).await;
    assert!(matches!(refused, Err(BundleError::TooLarge { max: 300, .. })), "{refused:?}");
    assert!(!out.exists() && !ground.path("large.bundle.partial").exists());
    let refused = small.fetch_bundle(&ground.path("base.bundle"), &ground.base).await;
    assert!(matches!(refused, Err(BundleError::TooLarge { max: 300, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_shallow_clone_says_how_to_become_whole() {
    let ground = Ground::new().await;
    let url = format!("file://{}", ground.user().display());
    git(ground.dir.path(), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    let path = ground.path("shallow");
    let shallow = ganger_git::Source::discover(&ground.git, &path).await.unwrap();
    let refused = shallow.bundle(&ground.path("s.bundle"), &ground.base, &[]).await;
    assert!(matches!(refused, Err(BundleError::Shallow { .. })), "{refused:?}");
    let hazards = shallow.hazards(&ground.base).await.unwrap();
    assert_eq!(hazards, [ganger_git::Hazard::Shallow]);
}

#[tokio::test]
async fn work_can_start_from_nothing() {
    let ground = Ground::new().await;
    let empty = ground.mirror.empty_commit().await.unwrap();
    assert_eq!(ground.mirror.empty_commit().await.unwrap(), empty);
    let out = ground.path("empty.bundle");
    ground.mirror.make_bundle(&out, &empty, &[]).await.unwrap();
    let fresh = Mirror::open_or_create(&ground.git, &ground.path("fresh.git")).await.unwrap();
    fresh.fetch_bundle(&out, &empty).await.unwrap();
    let checkout = Checkout::prepare(&fresh, &ground.path("try"), &empty).await.unwrap();
    script(&checkout.tree().join("new.sh"), "#!/bin/sh\n");
    let snapshot = checkout.snapshot().await.unwrap();
    assert_eq!(snapshot.changed.len(), 1);
    let again = fresh.commit_tree(&request(snapshot.tree.clone(), &[])).await;
    assert!(again.is_err(), "a tree that was not delivered is not in the mirror");
    fresh.pin(&name("refs/ganger/empty"), &empty).await.unwrap();
}

//! Trees, merges and refs of a mirror.

use ganger_git::{ChangeKind, ChangedPath, FileMode, Merged, Mirror, RefError};

use crate::ground::{Ground, name, request};

/// P070: a ref moves only from where it was expected.
#[tokio::test]
async fn a_ref_moves_only_from_where_it_was_expected() {
    let ground = Ground::new().await;
    let (mirror, base) = (&ground.mirror, &ground.base);
    let branch = name("refs/heads/ganger/r-1");
    let winner = ground.commit(base, "README.md", "winner\n").await;
    let loser = ground.commit(base, "README.md", "loser\n").await;
    mirror.update_ref(&branch, base, None).await.unwrap();
    mirror.update_ref(&branch, &winner, Some(base)).await.unwrap();

    let refused = mirror.update_ref(&branch, &loser, Some(base)).await;
    let Err(RefError::Moved { actual, expected, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((actual, expected), (Some(winner.clone()), Some(base.clone())));
    let refused = mirror.update_ref(&branch, &loser, None).await;
    assert!(matches!(refused, Err(RefError::Moved { expected: None, .. })), "{refused:?}");
    let refused = mirror.update_ref(&name("refs/heads/none"), &loser, Some(base)).await;
    assert!(matches!(refused, Err(RefError::Moved { actual: None, .. })), "{refused:?}");
    let refused = mirror.delete_ref(&branch, base).await;
    assert!(matches!(refused, Err(RefError::Moved { .. })), "{refused:?}");
    assert_eq!(mirror.read_ref(&branch).await.unwrap(), Some(winner.clone()));

    mirror.delete_ref(&branch, &winner).await.unwrap();
    assert_eq!(mirror.read_ref(&branch).await.unwrap(), None);
}

/// P070: of many that move one ref at once, exactly one does.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_move_a_ref_at_once_one_does() {
    let ground = Ground::new().await;
    let branch = name("refs/heads/raced");
    ground.mirror.update_ref(&branch, &ground.base, None).await.unwrap();
    let mut movers = tokio::task::JoinSet::new();
    for number in 0..8 {
        let tree = ground.mirror.tree_of(&ground.base).await.unwrap();
        let mut request = request(tree, &[&ground.base]);
        request.message = number.to_string();
        let commit = ground.mirror.commit_tree(&request).await.unwrap();
        let (mirror, branch, base) = (ground.mirror.clone(), branch.clone(), ground.base.clone());
        movers.spawn(async move { mirror.update_ref(&branch, &commit, Some(&base)).await });
    }
    let moved = movers.join_all().await;
    assert_eq!(moved.iter().filter(|moved| moved.is_ok()).count(), 1, "{moved:?}");
    let refused = |moved: &&Result<(), RefError>| matches!(moved, Err(RefError::Moved { .. }));
    assert_eq!(moved.iter().filter(refused).count(), 7, "{moved:?}");
}

/// P066, P067: a conflict names its files, and nothing is moved.
#[tokio::test]
async fn a_conflict_names_its_files() {
    let ground = Ground::new().await;
    let base_files = ground.mirror.list_files(&ground.base).await.unwrap();
    let ours = ground.commit(&ground.base, "README.md", "one\ntwo\nthree\nours\n").await;
    let ours = ground.commit(&ours, "a b\tö.txt", "ours\n").await;
    let theirs = ground.commit(&ground.base, "README.md", "one\ntwo\nthree\ntheirs\n").await;
    let theirs = ground.commit(&theirs, "a b\tö.txt", "theirs\n").await;
    let merged = ground.mirror.merge(&ours, &theirs).await.unwrap();
    let files = vec!["README.md".to_owned(), "a b\tö.txt".to_owned()];
    assert_eq!(merged, Merged::Conflict { files });
    assert_eq!(ground.mirror.list_files(&ground.base).await.unwrap(), base_files);
}

/// P067: an attribute file cannot make both sides' lines disappear into one another.
#[tokio::test]
async fn attributes_do_not_resolve_a_conflict() {
    let ground = Ground::new().await;
    let base = ground.commit(&ground.base, ".gitattributes", "* merge=union\n").await;
    let ours = ground.commit(&base, "README.md", "ours\n").await;
    let theirs = ground.commit(&base, "README.md", "theirs\n").await;
    let merged = ground.mirror.merge(&ours, &theirs).await.unwrap();
    assert_eq!(merged, Merged::Conflict { files: vec!["README.md".to_owned()] });
}

#[tokio::test]
async fn changes_that_go_together_are_merged() {
    let ground = Ground::new().await;
    let ours = ground.commit(&ground.base, "ours.txt", "ours\n").await;
    let theirs = ground.commit(&ground.base, "theirs.txt", "theirs\n").await;
    let merged = ground.mirror.merge(&ours, &theirs).await.unwrap();
    let Merged::Clean { tree } = merged else { panic!("{merged:?}") };
    let changed = ground.mirror.diff_paths(&ours, &tree).await.unwrap();
    let added = ChangedPath {
        path: "theirs.txt".to_owned(),
        kind: ChangeKind::Added,
        before: None,
        after: Some(FileMode::Regular),
    };
    assert_eq!(changed, [added]);
    let ours = ground.mirror.read_file(&tree, "ours.txt").await.unwrap();
    assert_eq!(ours.as_deref(), Some(b"ours\n".as_slice()));
}

#[tokio::test]
async fn a_commit_follows_from_its_request_alone() {
    let ground = Ground::new().await;
    let tree = ground.mirror.tree_of(&ground.base).await.unwrap();
    let request = request(tree.clone(), &[&ground.base]);
    let commit = ground.mirror.commit_tree(&request).await.unwrap();
    let elsewhere = Mirror::open_or_create(&ground.git, &ground.path("b.git")).await.unwrap();
    elsewhere.fetch_bundle(&ground.path("base.bundle"), &ground.base).await.unwrap();
    assert_eq!(elsewhere.commit_tree(&request).await.unwrap(), commit);
    assert_eq!(ground.mirror.tree_of(&commit).await.unwrap(), tree);
    assert!(ground.mirror.is_ancestor(&ground.base, &commit).await.unwrap());
    assert!(!ground.mirror.is_ancestor(&commit, &ground.base).await.unwrap());
}

#[tokio::test]
async fn files_are_read_by_their_exact_path() {
    let ground = Ground::new().await;
    let (mirror, base) = (&ground.mirror, &ground.base);
    let read = mirror.read_file(base, "src/lib.rs").await.unwrap();
    assert_eq!(read.as_deref(), Some(b"fn lib() {}\n".as_slice()));
    for path in ["src", "src/none", "", "../x", "/src/lib.rs", "src/./lib.rs", "src/lib.rs\nx"] {
        assert_eq!(mirror.read_file(base, path).await.unwrap(), None, "{path:?}");
    }
}

#[tokio::test]
async fn a_patch_is_cut_at_its_bound_and_says_so() {
    let ground = Ground::new().await;
    let line = "a line of text that goes on for a while\n";
    let large = ground.commit(&ground.base, "large.txt", &line.repeat(50_000)).await;
    let patch = ground.mirror.patch(&ground.base, &large, 10_000).await.unwrap();
    assert!(patch.truncated);
    assert_eq!(patch.bytes.len(), 10_000);
}

#[tokio::test]
async fn a_mirror_whose_making_was_cut_short_is_made_again() {
    let ground = Ground::new().await;
    let path = ground.path("again.git");
    Mirror::open_or_create(&ground.git, &path).await.unwrap();
    std::fs::remove_file(path.join("ganger-mirror")).unwrap();
    std::fs::remove_file(path.join("HEAD")).unwrap();
    let again = Mirror::open_or_create(&ground.git, &path).await.unwrap();
    assert!(!again.has_commit(&ground.base).await.unwrap());
    assert_eq!(again.refs_under(&name("refs/ganger")).await.unwrap(), []);
}

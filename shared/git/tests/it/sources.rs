//! What is a source, and what it says about itself.

use std::fs;

use ganger_git::{DiscoverError, Hazard, ResolveError, SeedError, Source, enclosing_repository};

use crate::ground::{Ground, git, write};

#[tokio::test]
async fn what_is_no_repository_says_so_with_its_path() {
    let ground = Ground::new().await;
    let plain = ground.path("plain");
    fs::create_dir(&plain).unwrap();
    for path in [plain, ground.path("nowhere")] {
        let refused = Source::discover(&ground.git, &path).await;
        let Err(error @ DiscoverError::NotARepository { .. }) = refused else {
            panic!("{refused:?}")
        };
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("git init"), "{text}");
    }
    let empty = ground.path("empty");
    git(ground.dir.path(), &["init", "-q", "empty"]);
    let refused = Source::discover(&ground.git, &empty).await;
    assert!(matches!(refused, Err(DiscoverError::Empty { .. })), "{refused:?}");
    git(ground.dir.path(), &["init", "-q", "--object-format=sha256", "other"]);
    let refused = Source::discover(&ground.git, &ground.path("other")).await;
    assert!(matches!(refused, Err(DiscoverError::UnsupportedFormat { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_unknown_base_names_what_was_perhaps_meant() {
    let ground = Ground::new().await;
    git(&ground.user(), &["branch", "feature"]);
    let refused = ground.source.resolve("maim").await;
    let Err(ResolveError::UnknownBase { near, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(near, ["main", "feature"]);
    for base in ["", "--help", "main:README.md", "-x"] {
        let refused = ground.source.resolve(base).await;
        assert!(matches!(refused, Err(ResolveError::UnknownBase { .. })), "{base}: {refused:?}");
    }
    for base in ["main", "HEAD", "refs/heads/main", "feature", ground.base.as_str()] {
        assert_eq!(ground.source.resolve(base).await.unwrap(), ground.base, "{base}");
    }
    assert_eq!(ground.source.current_branch().await.unwrap().as_deref(), Some("main"));
}

#[tokio::test]
async fn history_is_named_by_its_roots_and_its_recent_commits() {
    let ground = Ground::new().await;
    let first = ground.source.resolve("main~1").await.unwrap();
    assert_eq!(ground.source.roots(&ground.base).await.unwrap(), *std::slice::from_ref(&first));
    let recent = ground.source.recent(&ground.base, 10).await.unwrap();
    assert_eq!(recent, [ground.base.clone(), first]);
    assert_eq!(ground.mirror.known(&recent).await.unwrap(), recent);
}

/// Submodules and LFS are named before anything starts.
#[tokio::test]
async fn submodules_and_lfs_are_named() {
    let ground = Ground::new().await;
    let user = ground.user();
    assert_eq!(ground.source.hazards(&ground.base).await.unwrap(), []);
    let link = format!("160000,{},vendor/dep", ground.base);
    git(&user, &["update-index", "--add", "--cacheinfo", &link]);
    write(&user.join("assets/.gitattributes"), "*.psd filter=lfs diff=lfs merge=lfs -text\n");
    git(&user, &["add", "assets"]);
    git(&user, &["commit", "-q", "-m", "hazards"]);
    let commit = ground.source.resolve("main").await.unwrap();
    let hazards = ground.source.hazards(&commit).await.unwrap();
    let paths = vec!["vendor/dep".to_owned()];
    let attributes = vec!["assets/.gitattributes".to_owned()];
    assert_eq!(hazards, [Hazard::Submodules { paths }, Hazard::Lfs { attributes }]);
}

#[tokio::test]
async fn a_plain_directory_always_seeds_the_same_commit() {
    let ground = Ground::new().await;
    let plain = ground.path("plain");
    write(&plain.join("a.txt"), "a\n");
    write(&plain.join("sub/b.txt"), "b\n");
    write(&plain.join(".git/config"), "[core]\n\tfsmonitor = /bin/false\n");
    let seed = |dest| Source::seed(&ground.git, &plain, dest);
    let (one, two) = (ground.path("one"), ground.path("two"));
    let source = seed(&one).await.unwrap();
    let commit = source.resolve("main").await.unwrap();
    assert_eq!(seed(&two).await.unwrap().resolve("main").await.unwrap(), commit);
    assert_eq!(git(&one, &["ls-files"]), "a.txt\nsub/b.txt");
    assert_eq!(git(&one, &["status", "--porcelain"]), "");
    assert_eq!(git(&one, &["branch", "--show-current"]), "main");

    let refused = seed(&one).await;
    assert!(matches!(refused, Err(SeedError::DestinationExists { .. })), "{refused:?}");
    git(&plain, &["init", "-q", "inner"]);
    let refused = seed(&ground.path("three")).await;
    let Err(SeedError::NestedRepositories { paths, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(paths, ["inner/"]);
    assert!(!ground.path("three").exists());
}

/// A place inside a repository is told apart.
#[tokio::test]
async fn a_place_inside_a_repository_is_told_apart() {
    let ground = Ground::new().await;
    assert_eq!(enclosing_repository(&ground.user().join("src/x")), Some(ground.user()));
    assert_eq!(enclosing_repository(&ground.path("mirror.git")), None);
}

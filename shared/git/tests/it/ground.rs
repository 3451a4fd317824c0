//! Repositories to test on, made by plain git as a user would.
//!
//! Not here: anything the tests prove.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ganger_git::{Checkout, CommitRequest, Git, Limits, Mirror, RefName, Source, Stamp};
use ganger_shared::ids::CommitId;
use tempfile::TempDir;

/// A temporary directory with the user's repository, and a mirror that has its `main`.
pub struct Ground {
    pub dir: TempDir,
    pub git: Git,
    pub source: Source,
    pub mirror: Mirror,
    pub base: CommitId,
}

impl Ground {
    pub async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    pub async fn with(limits: Limits) -> Self {
        let git = Git::find(limits).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().join("user");
        user_repository(&user);
        let source = Source::discover(&git, &user).await.unwrap();
        let base = source.resolve("main").await.unwrap();
        let mirror = Mirror::open_or_create(&git, &dir.path().join("mirror.git")).await.unwrap();
        let bundle = dir.path().join("base.bundle");
        source.bundle(&bundle, &base, &[]).await.unwrap();
        mirror.fetch_bundle(&bundle, &base).await.unwrap();
        mirror.pin(&name("refs/ganger/base"), &base).await.unwrap();
        Self { dir, git, source, mirror, base }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn user(&self) -> PathBuf {
        self.path("user")
    }

    pub async fn checkout(&self, name: &str) -> Checkout {
        Checkout::prepare(&self.mirror, &self.path(name), &self.base).await.unwrap()
    }

    /// A commit in the mirror on `parent` with one file changed.
    pub async fn commit(&self, parent: &CommitId, path: &str, text: &str) -> CommitId {
        let dest = self.path(&format!("commit-{}", fs::read_dir(self.dir.path()).unwrap().count()));
        let checkout = Checkout::prepare(&self.mirror, &dest, parent).await.unwrap();
        write(&checkout.tree().join(path), text);
        let tree = checkout.snapshot().await.unwrap().tree;
        let bundle = dest.join("out.bundle");
        let delivered = checkout.bundle(&bundle, &tree, &stamp()).await.unwrap();
        self.mirror.fetch_bundle(&bundle, &delivered.commit).await.unwrap();
        delivered.commit
    }
}

fn user_repository(user: &Path) {
    fs::create_dir(user).unwrap();
    git(user, &["init", "-q", "-b", "main"]);
    git(user, &["config", "user.name", "user"]);
    git(user, &["config", "user.email", "user@localhost"]);
    write(&user.join("README.md"), "one\ntwo\nthree\n");
    write(&user.join("src/lib.rs"), "fn lib() {}\n");
    write(&user.join("src/old name.rs"), "fn moved() {}\nfn along() {}\nfn whole() {}\n");
    write(&user.join("run.sh"), "#!/bin/sh\n");
    write(&user.join("tests/golden/a.txt"), "golden\n");
    write(&user.join(".gitignore"), "target/\n*.log\n");
    git(user, &["add", "-A"]);
    git(user, &["commit", "-q", "-m", "first"]);
    write(&user.join("doomed.txt"), "to be deleted\n");
    git(user, &["add", "-A"]);
    git(user, &["commit", "-q", "-m", "second"]);
}

pub fn stamp() -> Stamp {
    Stamp {
        message: "a delivery\n".to_owned(),
        author_name: "ganger".to_owned(),
        author_email: "ganger@localhost".to_owned(),
        time_unix: 1_700_000_000,
    }
}

pub fn request(tree: ganger_shared::ids::TreeId, parents: &[&CommitId]) -> CommitRequest {
    CommitRequest {
        tree,
        parents: parents.iter().map(|id| (*id).clone()).collect(),
        message: "m".to_owned(),
        author_name: "a".to_owned(),
        author_email: "a@localhost".to_owned(),
        time_unix: 1,
    }
}

pub fn name(name: &str) -> RefName {
    RefName::parse(name).unwrap()
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn script(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Plain git, as a user or an agent runs it in `dir`; gives what it says.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = plain_git(dir, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?} in {}: {said}", dir.display());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub fn plain_git(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Looks until the condition holds; false if it does not within half a minute.
#[expect(clippy::disallowed_methods, reason = "this is the polling helper: it waits for a state")]
pub async fn becomes_true(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if condition() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// All files below `dir` with their bytes, but for those under a directory named in `without`.
pub fn bytes_below(dir: &Path, without: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let skipped = without.iter().any(|name| entry.file_name() == *name);
            match entry.file_type().unwrap() {
                _ if skipped => {}
                kind if kind.is_dir() => dirs.push(entry.path()),
                kind if kind.is_symlink() => {
                    let target = fs::read_link(entry.path()).unwrap();
                    found.insert(entry.path(), target.into_os_string().into_encoded_bytes());
                }
                _file => {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    found
}

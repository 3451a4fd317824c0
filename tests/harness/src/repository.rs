//! A user's git repository for a test: made by the git a user has, and looked at through it.
//!
//! Not here: what the product does with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files by path, with their text.
pub type Files = BTreeMap<String, String>;

/// One repository with a working tree.
#[derive(Debug, Clone)]
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// Makes one with one commit of these files on branch `main`.
    pub fn make(path: &Path, files: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(path).expect("a test's own directory can be written");
        let repository = Self { path: path.to_owned() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        for (name, text) in files {
            let file = path.join(name);
            let parent = file.parent().expect("a file lies in a directory");
            std::fs::create_dir_all(parent).expect("a test's own directory can be written");
            std::fs::write(file, text).expect("a test's own directory can be written");
        }
        repository.git(&["add", "--all"]);
        repository.git(&["commit", "--quiet", "--message=base"]);
        repository
    }

    /// One that is there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What git says to these arguments.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Anna", "-c", "user.email=anna@example.org"])
            .args(arguments)
            .current_dir(&self.path)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?} in {}: {said}", self.path.display());
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Every file of a revision.
    pub fn files(&self, revision: &str) -> Files {
        let names = self.git(&["ls-tree", "-r", "--name-only", revision]);
        let text = |name: &str| self.git(&["show", &format!("{revision}:{name}")]);
        names.lines().map(|name| (name.to_owned(), text(name))).collect()
    }

    /// The names of all branches.
    pub fn branches(&self) -> Vec<String> {
        let names = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        names.lines().map(str::to_owned).collect()
    }

    /// Everything a user sees of the working tree: the branch, the commit, and what is not committed.
    pub fn work_tree(&self) -> String {
        let head = self.git(&["symbolic-ref", "HEAD"]);
        let commit = self.git(&["rev-parse", "HEAD"]);
        let status = self.git(&["status", "--porcelain=v1", "--ignored"]);
        format!("{head}\n{commit}\n{status}")
    }
}

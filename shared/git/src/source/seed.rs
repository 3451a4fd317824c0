//! Makes a repository out of a plain directory.
//!
//! The same files always give the same commit, so a plan that is submitted twice finds its history.

use std::path::{Path, PathBuf};

use super::{DiscoverError, Source};
use crate::command::{Call, Place};
use crate::error::Error;
use crate::mirror::{CommitRequest, commit_tree, tree};
use crate::program::Git;

/// 2000-01-01: a fixed time, so that the commit follows from the files alone.
const SEEDED_AT: i64 = 946_684_800;

/// Why a directory could not be made into a repository.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// There is nothing to take files from.
    #[error("seed a repository from {dir}: it is not a directory")]
    NotADirectory {
        /// The path.
        dir: PathBuf,
    },
    /// There is something at the destination.
    #[error("seed a repository at {dest}: there is something there already")]
    DestinationExists {
        /// The path.
        dest: PathBuf,
    },
    /// The directory has repositories inside, whose files would not come along.
    #[error(
        "seed a repository from {dir}: there are git repositories inside ({}); \
         remove their .git or leave them out",
        paths.join(", ")
    )]
    NestedRepositories {
        /// The directory.
        dir: PathBuf,
        /// Where in it they are.
        paths: Vec<String>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
    /// What was made could not be opened.
    #[error(transparent)]
    Open(#[from] DiscoverError),
}

impl Source {
    /// Commits the files of `dir` (but for `.git` and what its `.gitignore` names) as branch `main`
    /// of a fresh repository at `dest`, with its files checked out there.
    pub async fn seed(git: &Git, dir: &Path, dest: &Path) -> Result<Self, SeedError> {
        const OPERATION: &str = "seed a repository";
        if !dir.is_dir() {
            return Err(SeedError::NotADirectory { dir: dir.to_owned() });
        }
        let dir = dir.canonicalize().map_err(Error::files(OPERATION, dir))?;
        if dest.exists() {
            return Err(SeedError::DestinationExists { dest: dest.to_owned() });
        }
        std::fs::create_dir_all(dest).map_err(Error::files(OPERATION, dest))?;
        let seeded = fill(git, &dir, dest).await;
        if seeded.is_err() {
            // Half a repository would be taken for a whole one the next time.
            let _keeps_the_error = std::fs::remove_dir_all(dest);
        }
        seeded?;
        Ok(Self::discover(git, dest).await?)
    }
}

async fn fill(git: &Git, dir: &Path, dest: &Path) -> Result<(), SeedError> {
    const OPERATION: &str = "seed a repository";
    let dest = dest.canonicalize().map_err(Error::files(OPERATION, dest))?;
    let git_dir = dest.join(".git");
    let init = ["init", "--quiet", "--template=", "--initial-branch=main", "--object-format=sha1"];
    Call::new(git, OPERATION, &Place::discover(&dest)).args(init).run().await?;
    let there = Place::work_tree(&git_dir, dir);
    let listed = Call::new(git, OPERATION, &there)
        .args(["ls-files", "-z", "--others", "--exclude-standard"])
        .bulk()
        .run()
        .await?;
    let nested = listed.parts().filter(|path| path.ends_with(b"/"));
    let paths: Vec<String> =
        nested.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    if !paths.is_empty() {
        return Err(SeedError::NestedRepositories { dir: dir.to_owned(), paths });
    }
    Call::new(git, OPERATION, &there).args(["add", "--all"]).bulk().run().await?;
    let here = Place::work_tree(&git_dir, &dest);
    let written = Call::new(git, OPERATION, &here).args(["write-tree"]).run().await?;
    let request = CommitRequest {
        tree: tree(OPERATION, &here, &written.text())?,
        parents: Vec::new(),
        message: "seed".to_owned(),
        author_name: "ganger".to_owned(),
        author_email: "ganger@localhost".to_owned(),
        time_unix: SEEDED_AT,
    };
    let commit = commit_tree(git, &here, &request).await?;
    let set = ["update-ref", "refs/heads/main", commit.as_str()];
    Call::new(git, OPERATION, &here).args(set).run().await?;
    let fill = ["read-tree", "--reset", "-u", commit.as_str()];
    Call::new(git, OPERATION, &here).args(fill).bulk().run().await?;
    Ok(())
}

//! The user's repository, as the client reads it.
//!
//! Read only, with one exception: a finished run's branch is brought in (`source/branch.rs`)
//! without touching the work tree, the index, `HEAD` or any other ref.

use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;
use ganger_shared::nearest::nearest;

use crate::bundle::{self, BundleError, Bundled};
use crate::command::{Call, Place};
use crate::error::Error;
use crate::mirror::commits;
use crate::program::Git;

mod branch;
mod hazards;
mod seed;

pub use branch::{BranchError, BranchFetched};
pub use hazards::Hazard;
pub use seed::SeedError;

/// A repository of the user's.
#[derive(Debug, Clone)]
pub struct Source {
    git: Git,
    place: Place,
    path: PathBuf,
    common: PathBuf,
}

/// Why a path cannot serve as a source.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// There is no repository at the path or above it.
    #[error(
        "use {path} as the repository: it is not inside a git repository; \
         run `git init` and commit there, name another path, or use `seed:` for a plain directory"
    )]
    NotARepository {
        /// The path.
        path: PathBuf,
    },
    /// The repository has no commit yet.
    #[error("use {path} as the repository: it has no commit yet; commit something first")]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// The repository names its objects in a way that is not supported.
    #[error(
        "use {path} as the repository: its objects are named by {format}, only sha1 is supported"
    )]
    UnsupportedFormat {
        /// The path.
        path: PathBuf,
        /// The repository's format.
        format: String,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

/// Why a base could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No commit has that name.
    #[error("find base `{base}` in {dir}: no branch, tag or commit of that name{}", offer(near))]
    UnknownBase {
        /// What was asked for.
        base: String,
        /// The repository.
        dir: PathBuf,
        /// Names that were perhaps meant: the nearest first, then some that exist.
        near: Vec<String>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

fn offer(near: &[String]) -> String {
    if near.is_empty() {
        return "; the repository has none at all".to_owned();
    }
    format!("; there is {}", near.join(", "))
}

/// How many names are offered for an unknown one.
const OFFERED_MAX: usize = 5;

impl Source {
    /// Finds the repository that `path` is in.
    pub async fn discover(git: &Git, path: &Path) -> Result<Self, DiscoverError> {
        const OPERATION: &str = "open the repository";
        let nowhere = || DiscoverError::NotARepository { path: path.to_owned() };
        let real = path.canonicalize().map_err(|_| nowhere())?;
        let top = real.ancestors().find(|dir| looks_like_repository(dir)).ok_or_else(nowhere)?;
        let place = Place::discover(top);
        let answer = Call::new(git, OPERATION, &place)
            .args(["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"])
            .args(["--show-object-format"])
            .run()
            .await?;
        let text = answer.text();
        let [git_dir, common, format] = text.lines().collect::<Vec<_>>()[..] else {
            return Err(place.unexpected(OPERATION, &answer.stdout).into());
        };
        if format != "sha1" {
            let (path, format) = (path.to_owned(), format.to_owned());
            return Err(DiscoverError::UnsupportedFormat { path, format });
        }
        let source = Self {
            git: git.clone(),
            place: Place::repository(Path::new(git_dir)),
            path: top.to_owned(),
            common: PathBuf::from(common),
        };
        if source.first_commit().await?.is_none() {
            return Err(DiscoverError::Empty { path: path.to_owned() });
        }
        Ok(source)
    }

    /// The top of the repository's tree (of a bare one, its directory).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The commit that `base` names: a branch, a tag, a commit or anything else git resolves.
    pub async fn resolve(&self, base: &str) -> Result<CommitId, ResolveError> {
        const OPERATION: &str = "resolve the base";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let name = format!("{base}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let answer = call.args(args).run_any().await?;
        if answer.code == Some(0) && !base.is_empty() {
            let id = answer.text();
            let id = CommitId::parse(&id);
            return Ok(id.map_err(|_| self.place.unexpected(OPERATION, &answer.stdout))?);
        }
        let near = self.near(base).await?;
        Err(ResolveError::UnknownBase { base: base.to_owned(), dir: self.path.clone(), near })
    }

    /// The branch that is checked out, as a name for [`Source::resolve`]; none if `HEAD` is detached.
    pub async fn current_branch(&self) -> Result<Option<String>, Error> {
        let call = Call::new(&self.git, "read the current branch", &self.place);
        let answer = call.args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run_any().await?;
        Ok((answer.code == Some(0)).then(|| answer.text()))
    }

    /// The commits without parents that `commit` reaches, sorted: what all clones have in common.
    pub async fn roots(&self, commit: &CommitId) -> Result<Vec<CommitId>, Error> {
        const OPERATION: &str = "find the first commits";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let args = ["rev-list", "--max-parents=0", commit.as_str()];
        let mut roots =
            commits(OPERATION, &self.place, &call.args(args).bulk().run().await?.text())?;
        roots.sort();
        Ok(roots)
    }

    /// The last `count` commits that `commit` reaches, the newest first.
    pub async fn recent(&self, commit: &CommitId, count: u32) -> Result<Vec<CommitId>, Error> {
        const OPERATION: &str = "list recent commits";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let args = ["rev-list", &format!("--max-count={count}"), commit.as_str()];
        commits(OPERATION, &self.place, &call.args(args).bulk().run().await?.text())
    }

    /// Writes what `commit` has and `have` has not to the file `out`.
    pub async fn bundle(
        &self,
        out: &Path,
        commit: &CommitId,
        have: &[CommitId],
    ) -> Result<Bundled, BundleError> {
        if self.is_shallow() {
            let (commit, dir) = (commit.clone(), self.path.clone());
            return Err(BundleError::Shallow { commit, dir });
        }
        bundle::write(&self.git, &self.place, out, std::slice::from_ref(commit), have).await
    }

    async fn first_commit(&self) -> Result<Option<String>, Error> {
        let call = Call::new(&self.git, "look for a commit", &self.place);
        let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let head = call.args(args).run_any().await?;
        if head.code == Some(0) {
            return Ok(Some(head.text()));
        }
        Ok(self.names().await?.into_iter().next())
    }

    async fn names(&self) -> Result<Vec<String>, Error> {
        let call = Call::new(&self.git, "list branches and tags", &self.place);
        let args = ["for-each-ref", "--format=%(refname:short)", "--sort=-creatordate"];
        let kinds = ["refs/heads", "refs/remotes", "refs/tags"];
        let answer = call.args(args).args(kinds).run().await?;
        Ok(answer.text().lines().map(str::to_owned).collect())
    }

    async fn near(&self, base: &str) -> Result<Vec<String>, Error> {
        let mut names = self.names().await?;
        let meant = nearest(base, names.iter().map(String::as_str)).map(str::to_owned);
        names.retain(|name| Some(name) != meant.as_ref());
        Ok(meant.into_iter().chain(names).take(OFFERED_MAX).collect())
    }
}

/// Whether a repository begins here: a tree with `.git`, or a bare repository.
fn looks_like_repository(dir: &Path) -> bool {
    let bare =
        || dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir();
    dir.join(".git").exists() || bare()
}

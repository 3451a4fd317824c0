//! Brings a run's branch into the user's repository.
//!
//! Objects are added and one branch is created or moved forward. The work tree, the index, `HEAD`
//! and all other refs stay as they are, byte for byte; whatever would need more is refused.

use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use super::Source;
use crate::bundle::{self, BundleError};
use crate::command::Call;
use crate::error::Error;
use crate::lock;
use crate::mirror::{RefError, compare_and_set, is_ancestor, read_ref};
use crate::name::{InvalidRefName, RefName};

/// What came of bringing a branch in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchFetched {
    /// The branch is new.
    Created,
    /// The branch was moved forward.
    Advanced {
        /// Where it was.
        from: CommitId,
    },
    /// The branch was there already.
    Unchanged,
}

/// Why a branch was not brought in.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// Somebody works on the branch; moving it would make their tree look changed.
    #[error(
        "update branch {branch}: it is checked out at {worktree}; switch to another branch there, \
         then fetch again"
    )]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The tree it is checked out in.
        worktree: PathBuf,
    },
    /// The branch has commits of its own, or somebody moved it meanwhile.
    #[error(
        "update branch {branch}: it is at {actual}, which {offered} does not follow; \
         rename or delete that branch, then fetch again"
    )]
    Moved {
        /// The branch.
        branch: String,
        /// Where it is.
        actual: String,
        /// Where it was to go.
        offered: CommitId,
    },
    /// A branch of a shorter name stands where a directory is needed.
    #[error("create branch {branch}: branch {blocker} is in its way; rename that branch")]
    NameTaken {
        /// The branch.
        branch: String,
        /// The branch in its way.
        blocker: String,
    },
    /// The name is no branch's.
    #[error(transparent)]
    Name(#[from] InvalidRefName),
    /// The bundle could not be taken in.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

impl Source {
    /// Creates the branch at `commit`, or moves it forward to it, from a bundle.
    pub async fn fetch_branch_from_bundle(
        &self,
        bundle: &Path,
        branch: &str,
        commit: &CommitId,
    ) -> Result<BranchFetched, BranchError> {
        let name = RefName::branch(branch)?;
        let wait_max = self.git.limits().lock_wait;
        let _held = lock::take("bring a branch in", &self.common, wait_max).await?;
        self.refuse_blocked(&name, branch).await?;
        let current = read_ref(&self.git, &self.place, &name).await?;
        if current.as_ref() == Some(commit) {
            return Ok(BranchFetched::Unchanged);
        }
        self.refuse_checked_out(&name, branch).await?;
        let wants = std::slice::from_ref(commit);
        let objects = self.common.join("objects");
        bundle::take_in(&self.git, &self.place, &objects, bundle, wants).await?;
        if let Some(current) = &current
            && !is_ancestor(&self.git, &self.place, current, commit).await?
        {
            return Err(moved(branch, Some(current), commit));
        }
        match compare_and_set(&self.git, &self.place, &name, (commit, current.as_ref())).await {
            Ok(()) => Ok(match current {
                Some(from) => BranchFetched::Advanced { from },
                None => BranchFetched::Created,
            }),
            Err(RefError::Moved { actual, .. }) => Err(moved(branch, actual.as_ref(), commit)),
            Err(RefError::Git(error)) => Err(error.into()),
        }
    }

    /// `ganger/x` cannot be created where a branch `ganger` is.
    async fn refuse_blocked(&self, name: &RefName, branch: &str) -> Result<(), BranchError> {
        for (end, _) in branch.match_indices('/') {
            let blocker = &branch[..end];
            let shorter = RefName::branch(blocker)?;
            if read_ref(&self.git, &self.place, &shorter).await?.is_some() {
                let (branch, blocker) = (branch.to_owned(), blocker.to_owned());
                return Err(BranchError::NameTaken { branch, blocker });
            }
        }
        debug_assert_eq!(name.branch_name(), Some(branch));
        Ok(())
    }

    async fn refuse_checked_out(&self, name: &RefName, branch: &str) -> Result<(), BranchError> {
        let call = Call::new(&self.git, "list the work trees", &self.place);
        let answer = call.args(["worktree", "list", "--porcelain", "-z"]).run().await?;
        let mut worktree = PathBuf::new();
        for line in answer.parts() {
            let line = String::from_utf8_lossy(line);
            if let Some(path) = line.strip_prefix("worktree ") {
                worktree = PathBuf::from(path);
            } else if line.strip_prefix("branch ") == Some(name.as_str()) {
                let branch = branch.to_owned();
                return Err(BranchError::CheckedOut { branch, worktree });
            }
        }
        Ok(())
    }
}

fn moved(branch: &str, actual: Option<&CommitId>, offered: &CommitId) -> BranchError {
    let actual = actual.map_or("no commit (deleted)", CommitId::as_str).to_owned();
    BranchError::Moved { branch: branch.to_owned(), actual, offered: offered.clone() }
}

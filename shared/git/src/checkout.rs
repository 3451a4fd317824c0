//! The private tree of one attempt or one check.
//!
//! Three things lie in a checkout's directory. `tree/` is what the attempt gets: the files of the
//! base and a `.git` of its own that shares nothing with anybody, so the agent may do with git what
//! it likes. `host.git/` is ours: its own configuration, index and objects over the same files;
//! host-side git only ever works with this one and never opens `tree/.git`. `base` names the base
//! commit; it is written last, so a directory without it is half made.
//!
//! Only `tree/` is to be shown to an attempt. Not here: when a checkout is made, kept or removed.

use std::path::{Path, PathBuf};

use ganger_shared::ids::{CommitId, TreeId};

use crate::bundle::{self, BundleError, Bundled};
use crate::command::{Call, Place};
use crate::diff::{self, Patch};
use crate::error::Error;
use crate::lock;
use crate::mirror::{CommitRequest, Mirror, commit_tree, tree_of};

mod layout;
mod private;
mod rescue;
mod restore;
mod snapshot;

pub use layout::enclosing_repository;
pub use rescue::{RescueError, Rescued};
pub use restore::Restored;
pub use snapshot::{OutsideLink, OwnGit, Residue, Snapshot, SnapshotError};

/// Longer paths leave no room for the names of files inside.
const DEST_MAX: usize = 1024;

/// A private tree and the host-side repository over it.
#[derive(Debug, Clone)]
pub struct Checkout {
    mirror: Mirror,
    place: Place,
    dest: PathBuf,
    base: CommitId,
}

/// Why a checkout could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// There is something at the destination.
    #[error("prepare a tree at {dest}: there is something there already")]
    DestinationExists {
        /// The path.
        dest: PathBuf,
    },
    /// The path leaves no room for the names of files inside.
    #[error("prepare a tree at {dest}: the path is longer than {DEST_MAX} bytes")]
    DestinationTooLong {
        /// The path.
        dest: PathBuf,
    },
    /// The base is not in the mirror.
    #[error("prepare a tree at {dest}: commit {commit} is not in the mirror; send it first")]
    UnknownCommit {
        /// The path.
        dest: PathBuf,
        /// The base.
        commit: CommitId,
    },
    /// The directory is not a finished checkout.
    #[error("open the tree at {dest}: its making was cut short; remove it")]
    HalfMade {
        /// The path.
        dest: PathBuf,
    },
    /// Somebody worked in the tree, so it cannot be moved to another base.
    #[error("move the tree at {dest} to another base: its repository was used already")]
    Used {
        /// The path.
        dest: PathBuf,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

/// Who a commit says it is from, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Its message.
    pub message: String,
    /// The name of its author and committer.
    pub author_name: String,
    /// The mail address of its author and committer.
    pub author_email: String,
    /// Its time, in seconds since 1970, UTC.
    pub time_unix: i64,
}

/// A snapshot as a commit on the base, in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The commit; its only parent is the base.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// The size of the bundle.
    pub bytes: u64,
}

impl Checkout {
    /// Makes a private tree of `commit` at `dest`, which must not exist yet.
    ///
    /// A failure leaves nothing behind. Any number may be prepared at once.
    pub async fn prepare(
        mirror: &Mirror,
        dest: &Path,
        commit: &CommitId,
    ) -> Result<Self, PrepareError> {
        if dest.as_os_str().len() > DEST_MAX {
            return Err(PrepareError::DestinationTooLong { dest: dest.to_owned() });
        }
        if !mirror.has_commit(commit).await? {
            let (dest, commit) = (dest.to_owned(), commit.clone());
            return Err(PrepareError::UnknownCommit { dest, commit });
        }
        let dest = layout::claim(dest)?;
        let checkout = Self::at(mirror, dest, commit.clone());
        let filled = checkout.fill().await;
        if filled.is_err() {
            // The reason of the failure is what counts; a rest would be seen as half made.
            let _rest = std::fs::remove_dir_all(&checkout.dest);
        }
        filled?;
        Ok(checkout)
    }

    /// Opens a checkout made earlier.
    pub fn open(mirror: &Mirror, dest: &Path) -> Result<Self, PrepareError> {
        let half_made = || PrepareError::HalfMade { dest: dest.to_owned() };
        let dest = dest.canonicalize().map_err(|_| half_made())?;
        let base = layout::read_base(&dest).ok_or_else(half_made)?;
        Ok(Self::at(mirror, dest, base))
    }

    /// The directory that holds everything of this checkout.
    pub fn dest(&self) -> &Path {
        &self.dest
    }

    /// The attempt's tree.
    pub fn tree(&self) -> PathBuf {
        layout::tree(&self.dest)
    }

    /// The commit it started from.
    pub fn base(&self) -> &CommitId {
        &self.base
    }

    /// The tree of the commit it started from.
    pub async fn base_tree(&self) -> Result<TreeId, Error> {
        tree_of(&self.mirror.git, &self.place, &self.base).await
    }

    /// Moves a checkout that nobody has used yet to another base.
    pub async fn reset_to(self, commit: &CommitId) -> Result<Self, PrepareError> {
        let dest = self.dest.clone();
        if !private::is_unused(&self.tree(), &self.base) {
            return Err(PrepareError::Used { dest });
        }
        if self.base == *commit {
            return Ok(self);
        }
        if !self.mirror.has_commit(commit).await? {
            return Err(PrepareError::UnknownCommit { dest, commit: commit.clone() });
        }
        layout::forget_base(&dest)?;
        let moved = Self { base: commit.clone(), ..self.clone() };
        moved.check_out().await?;
        private::advance(&moved.mirror, &moved.place, &moved.tree(), (&self.base, commit)).await?;
        moved.share_index()?;
        layout::write_base(&dest, commit)?;
        Ok(moved)
    }

    /// Writes `tree` as a commit on the base into a bundle against the base.
    pub async fn bundle(
        &self,
        out: &Path,
        tree: &TreeId,
        stamp: &Stamp,
    ) -> Result<Delivered, BundleError> {
        let Stamp { message, author_name, author_email, time_unix } = stamp.clone();
        let (git, tree, parents) = (&self.mirror.git, tree.clone(), vec![self.base.clone()]);
        let request =
            CommitRequest { tree, parents, message, author_name, author_email, time_unix };
        let commit = commit_tree(git, &self.place, &request).await?;
        let (tips, have) = (std::slice::from_ref(&commit), std::slice::from_ref(&self.base));
        let bytes = match bundle::write(git, &self.place, out, tips, have).await? {
            Bundled::Written { bytes } => bytes,
            Bundled::NothingNew => 0,
        };
        Ok(Delivered { commit, tree: request.tree, bytes })
    }

    /// A patch from the base to `tree` for people, of at most `max` bytes.
    pub async fn patch(&self, tree: &TreeId, max: u64) -> Result<Patch, Error> {
        let ends = (self.base.as_str(), tree.as_str());
        diff::patch(&self.mirror.git, &self.place, ends, max).await
    }

    fn at(mirror: &Mirror, dest: PathBuf, base: CommitId) -> Self {
        let place = Place::work_tree(&layout::host(&dest), &layout::tree(&dest));
        Self { mirror: mirror.clone(), place, dest, base }
    }

    async fn fill(&self) -> Result<(), Error> {
        layout::make_host(&self.dest, &self.mirror.objects())?;
        self.check_out().await?;
        private::make(&self.mirror, &self.place, &self.tree(), &self.base).await?;
        self.share_index()?;
        layout::write_base(&self.dest, &self.base)
    }

    async fn check_out(&self) -> Result<(), Error> {
        let call = Call::new(&self.mirror.git, "check out the base", &self.place);
        let args = ["read-tree", "--reset", "-u", self.base.as_str()];
        call.args(args).bulk().run().await?;
        Ok(())
    }

    /// Gives the attempt's repository a copy of our index, so that its first `git status` is quick.
    fn share_index(&self) -> Result<(), Error> {
        layout::copy_index(&self.index(), &self.tree().join(".git").join("index"))
    }

    fn index(&self) -> PathBuf {
        layout::host(&self.dest).join("index")
    }

    /// Keeps other host-side work on this checkout out.
    async fn lock(&self, operation: &'static str) -> Result<lock::Held, Error> {
        let wait_max = self.mirror.git.limits().lock_wait;
        lock::take(operation, &layout::host(&self.dest), wait_max).await
    }
}

//! The bare repository that the coordinator and the workers keep of a source.
//!
//! Nothing is ever pruned from it: attempts' trees read its objects. Its `HEAD` names a branch that
//! never exists, so that no branch's attributes silently change how trees are merged.
//!
//! Not here: which branch is moved when, and for whom.

use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use crate::bundle::{self, BundleError, Bundled};
use crate::command::{Call, Place};
use crate::error::Error;
use crate::lock;
use crate::name::RefName;
use crate::program::Git;

mod refs;
mod trees;

pub use refs::RefError;
pub(crate) use refs::{compare_and_set, read_ref};
pub use trees::{CommitRequest, Merged, Treeish};
pub(crate) use trees::{commit_tree, commits, is_ancestor, tree, tree_of};

/// What stands here is what runs answer for: it is on the disk before anybody is told.
const SETTINGS: &[(&str, &str)] =
    &[("core.fsync", "all"), ("core.logAllRefUpdates", "false"), ("gc.pruneExpire", "never")];

/// A bare repository of ours.
#[derive(Debug, Clone)]
pub struct Mirror {
    pub(crate) git: Git,
    pub(crate) place: Place,
    path: PathBuf,
}

impl Mirror {
    /// Opens the mirror at `path`, creating an empty one where there is none.
    pub async fn open_or_create(git: &Git, path: &Path) -> Result<Self, Error> {
        const OPERATION: &str = "open a mirror";
        std::fs::create_dir_all(path).map_err(Error::files(OPERATION, path))?;
        let path = path.canonicalize().map_err(Error::files(OPERATION, path))?;
        let mirror = Self { git: git.clone(), place: Place::repository(&path), path };
        if !mirror.is_made() {
            let _held = mirror.lock(OPERATION).await?;
            mirror.make(OPERATION).await?;
        }
        Ok(mirror)
    }

    /// The directory it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the commit is here, with all it reaches.
    pub async fn has_commit(&self, commit: &CommitId) -> Result<bool, Error> {
        let here = bundle::present(&self.git, &self.place, std::slice::from_ref(commit)).await?;
        Ok(here == [true])
    }

    /// Those of `commits` that are here, in the same order.
    pub async fn known(&self, commits: &[CommitId]) -> Result<Vec<CommitId>, Error> {
        let here = bundle::present(&self.git, &self.place, commits).await?;
        let known = commits.iter().zip(here).filter(|(_, here)| *here);
        Ok(known.map(|(commit, _)| commit.clone()).collect())
    }

    /// Takes in the objects of a bundle and proves that `want` is whole.
    ///
    /// No ref is made: [`Mirror::pin`] what is to be kept.
    pub async fn fetch_bundle(&self, bundle: &Path, want: &CommitId) -> Result<(), BundleError> {
        self.fetch_bundle_of(bundle, std::slice::from_ref(want)).await
    }

    pub(crate) async fn fetch_bundle_of(
        &self,
        bundle: &Path,
        wants: &[CommitId],
    ) -> Result<(), BundleError> {
        let _held = self.lock("take in a bundle").await?;
        bundle::take_in(&self.git, &self.place, &self.objects(), bundle, wants).await
    }

    /// Writes what `tip` has and `have` has not to the file `out`.
    ///
    /// Of `have` only what is here counts, so a peer's whole list may be given.
    pub async fn make_bundle(
        &self,
        out: &Path,
        tip: &CommitId,
        have: &[CommitId],
    ) -> Result<Bundled, BundleError> {
        bundle::write(&self.git, &self.place, out, std::slice::from_ref(tip), have).await
    }

    pub(crate) async fn lock(&self, operation: &'static str) -> Result<lock::Held, Error> {
        let held = lock::take(operation, &self.path, self.git.limits().lock_wait).await?;
        for name in ["config", "HEAD", "packed-refs"] {
            self.forget_lock(name);
        }
        Ok(held)
    }

    /// Removes git's own lock of a file, left by a git that was ended half way: every writer holds
    /// our lock, so nobody is at the file now. Without this, one killed git blocks it for good.
    fn forget_lock(&self, name: &str) {
        let _none_left = std::fs::remove_file(self.path.join(format!("{name}.lock")));
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// The marker is written last, so a mirror whose making was cut short is made again.
    fn is_made(&self) -> bool {
        self.path.join("ganger-mirror").is_file()
    }

    async fn make(&self, operation: &'static str) -> Result<(), Error> {
        if self.is_made() {
            return Ok(());
        }
        Call::new(&self.git, operation, &self.place)
            .args(["init", "--quiet", "--bare", "--template=", "--object-format=sha1"])
            .args(["--initial-branch=ganger-has-no-head"])
            .run()
            .await?;
        for (name, value) in SETTINGS {
            let call = Call::new(&self.git, operation, &self.place);
            call.args(["config", "--local", name, value]).run().await?;
        }
        let made = self.path.join("ganger-mirror");
        std::fs::write(&made, "1\n").map_err(Error::files(operation, &made))
    }

    /// Keeps `commit` by giving it the name `name`, wherever that pointed before.
    pub async fn pin(&self, name: &RefName, commit: &CommitId) -> Result<(), Error> {
        let _held = self.lock("pin a commit").await?;
        self.forget_lock(name.as_str());
        refs::set(&self.git, &self.place, name, commit).await
    }
}

//! What an attempt's tree holds now, as a git tree.
//!
//! The files are read by the host-side repository into a copy of the index of the base, so nothing
//! that the attempt configured in its own `.git` counts and nothing of it runs. Ignored is what the
//! tree's own `.gitignore` files say now: what is ignored is not delivered, and a change of those
//! files is in the list of changes like any other.
//!
//! Not here: whether the changes were allowed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ganger_shared::ids::{CommitId, TreeId};

use super::{Checkout, layout, private};
use crate::command::{self, Call, Place};
use crate::diff::{self, ChangedPath, FileMode, RawChange};
use crate::error::Error;
use crate::mirror::tree;

/// The content of a tree and how it differs from its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The tree.
    pub tree: TreeId,
    /// What differs from the base, sorted by path.
    pub changed: Vec<ChangedPath>,
    /// New or changed symbolic links that may lead out of the tree.
    pub outside_links: Vec<OutsideLink>,
    /// Whether the attempt still has the repository it was given (R044).
    pub own_git: OwnGit,
}

/// A symbolic link that may lead out of its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideLink {
    /// Where it is.
    pub path: String,
    /// Where it leads.
    pub target: String,
}

/// What became of the repository an attempt was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnGit {
    /// It is there.
    Intact,
    /// It is gone, or another is in its place.
    Replaced,
}

/// What would be lost if a checkout were removed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residue {
    /// Files that differ from the base, new ones included.
    pub changed: Vec<ChangedPath>,
    /// New files and directories that are ignored; a directory ends in `/`.
    pub ignored: Vec<String>,
    /// Commits of the attempt's own repository (stashes too) that the base does not reach.
    pub commits: Vec<CommitId>,
}

impl Residue {
    /// Whether nothing would be lost.
    pub fn is_empty(&self) -> bool {
        let Self { changed, ignored, commits } = self;
        changed.is_empty() && ignored.is_empty() && commits.is_empty()
    }
}

/// Why a tree could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There are repositories inside the tree whose files would not come along.
    #[error(
        "read the tree at {tree}: there are git repositories inside ({}); \
         remove their .git, or ignore them",
        paths.join(", ")
    )]
    NestedRepositories {
        /// The tree.
        tree: PathBuf,
        /// Where in it they are.
        paths: Vec<String>,
    },
    /// Something was put where the base has a submodule, and would not come along.
    #[error(
        "read the tree at {tree}: submodules were changed ({}); that is not supported",
        paths.join(", ")
    )]
    SubmodulesTouched {
        /// The tree.
        tree: PathBuf,
        /// Where in it they are.
        paths: Vec<String>,
    },
    /// The tree is not a directory any more.
    #[error("read the tree at {tree}: it was replaced by something that is not a directory")]
    TreeReplaced {
        /// The tree.
        tree: PathBuf,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

const OPERATION: &str = "read the tree";

impl Checkout {
    /// Reads the attempt's tree.
    pub async fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        let _held = self.lock(OPERATION).await?;
        let place = self.snapshot_place()?;
        let submodules = self.untouched_submodules(&place).await?;
        let names: Vec<&str> = submodules.keys().map(String::as_str).collect();
        // Git looks into a submodule it knows of, with a git of its own that reads the
        // configuration in there: it must not know of any while it reads the files.
        self.index_paths(&place, &["update-index", "--force-remove", "-z", "--stdin"], &names)
            .await?;
        self.add_all(&place).await?;
        let entries: Vec<String> =
            submodules.iter().map(|(path, id)| format!("160000 {id}\t{path}")).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        self.index_paths(&place, &["update-index", "-z", "--index-info"], &entries).await?;
        let git = &self.mirror.git;
        let written = Call::new(git, OPERATION, &place).args(["write-tree"]).bulk().run().await?;
        let tree = tree(OPERATION, &place, &written.text())?;
        let raw = diff::raw(git, &place, self.base.as_str(), tree.as_str()).await?;
        self.refuse_new_submodules(&raw)?;
        let outside_links = self.outside_links(&place, &raw).await?;
        let own_git = self.own_git();
        let changed = raw.into_iter().map(|raw| raw.change).collect();
        Ok(Snapshot { tree, changed, outside_links, own_git })
    }

    /// Whether any file differs from the base; ignored files do not count.
    pub async fn is_dirty(&self) -> Result<bool, SnapshotError> {
        Ok(!self.snapshot().await?.changed.is_empty())
    }

    /// Whether the attempt still has the repository it was given.
    pub fn own_git(&self) -> OwnGit {
        if private::is_ours(&self.tree()) { OwnGit::Intact } else { OwnGit::Replaced }
    }

    /// New files and directories that are ignored; a directory ends in `/`.
    pub(super) async fn ignored(&self) -> Result<Vec<String>, Error> {
        let call = Call::new(&self.mirror.git, "list ignored files", &self.place);
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let answer = call.args(args).bulk().run().await?;
        Ok(answer.parts().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// The place with an index of its own, which begins as that of the base every time.
    fn snapshot_place(&self) -> Result<Place, SnapshotError> {
        let tree = self.tree();
        // A link in its place would have us read and deliver somebody else's files.
        if !fs::symlink_metadata(&tree).is_ok_and(|about| about.is_dir()) {
            return Err(SnapshotError::TreeReplaced { tree });
        }
        let index = layout::host(&self.dest).join("snapshot.index");
        // Left by a git that was ended; we hold the lock, so nobody uses it.
        let _none_left = fs::remove_file(index.with_extension("index.lock"));
        layout::copy_index(&self.index(), &index)?;
        Ok(self.place.clone().index(&index))
    }

    /// The submodules of the base with their commits, proved to be empty directories or gone.
    async fn untouched_submodules(
        &self,
        place: &Place,
    ) -> Result<BTreeMap<String, String>, SnapshotError> {
        let call = Call::new(&self.mirror.git, OPERATION, place);
        let staged = call.args(["ls-files", "-z", "--stage"]).bulk().run().await?;
        let mut submodules = BTreeMap::new();
        for entry in staged.parts().filter(|entry| entry.starts_with(b"160000 ")) {
            let entry = diff::utf8(OPERATION, place, entry)?;
            let read = entry.split_once('\t').zip(entry.split(' ').nth(1));
            let ((_, path), id) =
                read.ok_or_else(|| place.unexpected(OPERATION, entry.as_bytes()))?;
            submodules.insert(path.to_owned(), id.to_owned());
        }
        let tree = self.tree();
        let touched = submodules.keys().filter(|path| !is_empty_or_gone(&tree.join(path)));
        let paths: Vec<String> = touched.cloned().collect();
        if paths.is_empty() {
            Ok(submodules)
        } else {
            Err(SnapshotError::SubmodulesTouched { tree, paths })
        }
    }

    /// Runs an index command over NUL-ended lines; without lines there is nothing to run.
    async fn index_paths(&self, place: &Place, args: &[&str], lines: &[&str]) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        let input = command::lines("", lines, '\0');
        Call::new(&self.mirror.git, OPERATION, place).args(args).input(input).run().await?;
        Ok(())
    }

    async fn add_all(&self, place: &Place) -> Result<(), SnapshotError> {
        let call = Call::new(&self.mirror.git, OPERATION, place);
        let Err(error) = call.args(["add", "--all"]).bulk().run().await else { return Ok(()) };
        if !matches!(error, Error::Failed { .. }) {
            return Err(error.into());
        }
        // A repository without a commit makes git fail; say so rather than what git says.
        let call = Call::new(&self.mirror.git, OPERATION, place);
        let args = ["ls-files", "-z", "--others", "--exclude-standard"];
        let others = call.args(args).bulk().run().await?;
        let nested = others.parts().filter(|path| path.ends_with(b"/"));
        let paths: Vec<String> =
            nested.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        if paths.is_empty() {
            return Err(error.into());
        }
        Err(SnapshotError::NestedRepositories { tree: self.tree(), paths })
    }

    fn refuse_new_submodules(&self, raw: &[RawChange]) -> Result<(), SnapshotError> {
        let new = raw.iter().map(|raw| &raw.change);
        let new = new.filter(|change| change.after == Some(FileMode::Submodule));
        let paths: Vec<String> = new.map(|change| change.path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(SnapshotError::NestedRepositories { tree: self.tree(), paths })
    }

    async fn outside_links(
        &self,
        place: &Place,
        raw: &[RawChange],
    ) -> Result<Vec<OutsideLink>, Error> {
        let mut outside = Vec::new();
        for raw in raw.iter().filter(|raw| raw.change.after == Some(FileMode::Symlink)) {
            // From the snapshot, not from the tree: what is judged is what is delivered.
            let call = Call::new(&self.mirror.git, OPERATION, place);
            let answer = call.args(["cat-file", "blob", &raw.object]).run().await?;
            let target = String::from_utf8_lossy(&answer.stdout).into_owned();
            let path = raw.change.path.clone();
            if leads_outside(&path, &target) {
                outside.push(OutsideLink { path, target });
            }
        }
        Ok(outside)
    }
}

fn is_empty_or_gone(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(_) => true,
        Ok(about) if about.is_dir() => {
            fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        }
        Ok(_) => false,
    }
}

/// Whether a link at `path` cannot be proved to stay inside by looking at its target alone.
///
/// A `..` after a name is taken to lead outside: that name may be a link itself.
fn leads_outside(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = path.split('/').count() - 1;
    let mut named = false;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if named || depth == 0 => return true,
            ".." => depth -= 1,
            _name => named = true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::leads_outside;

    #[test]
    fn links_are_judged_by_where_they_may_lead() {
        for (path, target) in
            [("a", "b"), ("a", "./b/c"), ("d/a", "../b"), ("d/e/a", "../../b"), ("a", "b/..c")]
        {
            assert!(!leads_outside(path, target), "{path} -> {target}");
        }
        for (path, target) in
            [("a", "/etc"), ("a", ".."), ("d/a", "../../b"), ("a", "b/../c"), ("d/a", ".././../b")]
        {
            assert!(leads_outside(path, target), "{path} -> {target}");
        }
    }
}

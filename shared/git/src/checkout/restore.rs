//! Puts chosen files of a checkout back to how another commit has them.
//!
//! For pinned check files: the delivery's own version of them must not count. Which paths those are
//! is the caller's rule.

use std::fs;
use std::path::{Component, Path, PathBuf};

use ganger_shared::ids::CommitId;

use super::{Checkout, layout};
use crate::command::{Call, lines};
use crate::diff;
use crate::error::Error;

const OPERATION: &str = "restore files";

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Files that are now as the commit has them, changed or not before.
    pub written: Vec<String>,
    /// Files the commit does not have, which were removed.
    pub removed: Vec<String>,
}

impl Checkout {
    /// Makes all paths that `chosen` picks the same as in `from`: written, or removed if they are
    /// not there. Ignored and untracked files count too.
    pub async fn restore_from(
        &self,
        from: &CommitId,
        chosen: impl Fn(&str) -> bool + Send + Sync,
    ) -> Result<Restored, Error> {
        let _held = self.lock(OPERATION).await?;
        let index = layout::host(&self.dest).join("restore.index");
        let _none_left = fs::remove_file(index.with_extension("index.lock"));
        let there = self.place.clone().index(&index);
        let git = &self.mirror.git;
        let read = ["read-tree", from.as_str()];
        Call::new(git, OPERATION, &there).args(read).bulk().run().await?;
        let list = ["ls-files", "-z", "--cached"];
        let wanted = Call::new(git, OPERATION, &there).args(list).bulk().run().await?;
        let mut written = Vec::new();
        for path in wanted.parts() {
            let path = diff::utf8(OPERATION, &there, path)?;
            written.extend(chosen(&path).then_some(path));
        }
        let removed = self.remove_others(&chosen, &written).await?;
        let input = lines("", &written, '\0');
        let put = ["checkout-index", "--force", "-z", "--stdin"];
        Call::new(git, OPERATION, &there).args(put).input(input).bulk().run().await?;
        Ok(Restored { written, removed })
    }

    async fn remove_others(
        &self,
        chosen: &(impl Fn(&str) -> bool + Send + Sync),
        wanted: &[String],
    ) -> Result<Vec<String>, Error> {
        let call = Call::new(&self.mirror.git, OPERATION, &self.place);
        let list = ["ls-files", "-z", "--cached", "--others"];
        let answer = call.args(list).bulk().run().await?;
        let tree = self.tree();
        let mut removed = Vec::new();
        for path in answer.parts() {
            let path = String::from_utf8_lossy(path).into_owned();
            if wanted.binary_search(&path).is_err() && is_chosen(&path, chosen) {
                remove(&tree, &path)?;
                removed.push(path);
            }
        }
        removed.sort();
        removed.dedup();
        Ok(removed)
    }
}

/// A repository inside the tree is one entry that ends in `/`; it is chosen if a file in it were.
fn is_chosen(path: &str, chosen: &impl Fn(&str) -> bool) -> bool {
    match path.strip_suffix('/') {
        Some(dir) => chosen(dir) || chosen(&format!("{dir}/file")),
        None => chosen(path),
    }
}

/// Removes one path, never through a symbolic link on the way to it.
fn remove(tree: &Path, path: &str) -> Result<(), Error> {
    let mut real = PathBuf::from(tree);
    let mut parts = Path::new(path).components().peekable();
    while let Some(Component::Normal(part)) = parts.next() {
        real.push(part);
        let Ok(about) = fs::symlink_metadata(&real) else { return Ok(()) };
        let last = parts.peek().is_none();
        let gone = match (last, about.is_dir()) {
            (true, true) => fs::remove_dir_all(&real),
            (true, false) => fs::remove_file(&real),
            (false, true) => continue,
            (false, false) => return Ok(()),
        };
        return gone.map_err(Error::files(OPERATION, &real));
    }
    Ok(())
}

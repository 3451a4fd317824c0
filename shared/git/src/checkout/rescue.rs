//! Keeps the commits an attempt made in its own repository (R041).
//!
//! That repository is not opened: its refs and logs are read as text, and its objects are read as
//! objects, beside our own, by the host-side repository. Its configuration, hooks and the rest of it
//! are never looked at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use super::{Checkout, Residue, SnapshotError, layout};
use crate::bundle::{self, BundleError};
use crate::command::{Call, Place};
use crate::error::Error;
use crate::mirror::{Mirror, RefError, commits};
use crate::name::{InvalidRefName, RefName};

const OPERATION: &str = "look for commits of the attempt";
const PINS: &str = "refs/ganger/rescue";
/// How much of a hostile repository is read at most.
const FILES_MAX: usize = 20_000;
const FILE_BYTES_MAX: u64 = 16 << 20;
const COMMITS_MAX: usize = 1_000;

/// A commit that was kept, and the ref that keeps it in the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// The ref.
    pub name: RefName,
    /// The commit.
    pub commit: CommitId,
}

/// Why an attempt's commits could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The repository is not laid out as the one we made.
    #[error("look for commits in {git_dir}: {reason}; keep the tree and look by hand")]
    Unreadable {
        /// The attempt's repository.
        git_dir: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The prefix gives no name for a ref.
    #[error(transparent)]
    Name(#[from] InvalidRefName),
    /// The commits could not be brought over.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A ref could not be made.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The tree could not be read.
    #[error(transparent)]
    Tree(#[from] SnapshotError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

impl Checkout {
    /// Brings the attempt's commits that the base does not reach into `mirror` and pins each at
    /// `refs/ganger/rescue/<prefix>-<n>`; one pinned there already is not pinned again.
    pub async fn rescue_commits(
        &self,
        mirror: &Mirror,
        prefix: &str,
    ) -> Result<Vec<Rescued>, RescueError> {
        let place = self.beside_own_git();
        let tips = self.own_commits().await?;
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let out = layout::host(&self.dest).join("rescue.bundle");
        let have = std::slice::from_ref(&self.base);
        bundle::write(&self.mirror.git, &place, &out, &tips, have).await?;
        let fetched = mirror.fetch_bundle_of(&out, &tips).await;
        let _stays_with_the_tree = fs::remove_file(&out);
        fetched?;
        pin_all(mirror, prefix, tips).await
    }

    /// What would be lost if this checkout were removed now.
    pub async fn residue(&self) -> Result<Residue, RescueError> {
        let changed = self.snapshot().await?.changed;
        let ignored = self.ignored().await?;
        let commits = self.own_commits().await?;
        Ok(Residue { changed, ignored, commits })
    }

    /// The attempt's commits that neither the base nor another of them reaches.
    async fn own_commits(&self) -> Result<Vec<CommitId>, RescueError> {
        let git_dir = self.tree().join(".git");
        if !git_dir.exists() {
            return Ok(Vec::new());
        }
        let named: Vec<CommitId> = named_objects(&git_dir)?.into_iter().collect();
        let place = self.beside_own_git();
        let here = bundle::present(&self.mirror.git, &place, &named).await?;
        let named = named.into_iter().zip(here).filter(|(id, here)| *here && *id != self.base);
        let named: Vec<CommitId> = named.map(|(id, _)| id).collect();
        if named.is_empty() {
            return Ok(named);
        }
        if named.len() > COMMITS_MAX {
            let reason = "it names more commits than are looked at";
            return Err(RescueError::Unreadable { git_dir, reason });
        }
        let mut tips = self.independent(&place, &named).await?;
        tips.retain(|tip| *tip != self.base);
        tips.sort();
        Ok(tips)
    }

    async fn independent(&self, place: &Place, named: &[CommitId]) -> Result<Vec<CommitId>, Error> {
        let ids = named.iter().chain([&self.base]).map(CommitId::as_str);
        let call = Call::new(&self.mirror.git, OPERATION, place);
        let answer = call.args(["merge-base", "--independent"]).args(ids).bulk().run().await?;
        commits(OPERATION, place, &answer.text())
    }

    fn beside_own_git(&self) -> Place {
        self.place.clone().beside_objects(&self.tree().join(".git").join("objects"))
    }
}

async fn pin_all(
    mirror: &Mirror,
    prefix: &str,
    tips: Vec<CommitId>,
) -> Result<Vec<Rescued>, RescueError> {
    let mut pinned = mirror.refs_under(&RefName::parse(PINS)?).await?;
    let ours = format!("{PINS}/{prefix}-");
    pinned.retain(|(name, _)| name.as_str().starts_with(&ours));
    let mut number = pinned.len();
    let mut rescued = Vec::new();
    for commit in tips {
        if let Some((name, _)) = pinned.iter().find(|(_, kept)| *kept == commit) {
            rescued.push(Rescued { name: name.clone(), commit });
            continue;
        }
        let name = loop {
            number += 1;
            let name = RefName::parse(&format!("{ours}{number}"))?;
            if pinned.iter().all(|(taken, _)| *taken != name) {
                break name;
            }
        };
        mirror.update_ref(&name, &commit, None).await?;
        rescued.push(Rescued { name, commit });
    }
    Ok(rescued)
}

/// All object ids that the refs, heads and logs of a repository name.
fn named_objects(git_dir: &Path) -> Result<BTreeSet<CommitId>, RescueError> {
    let unreadable = |reason| RescueError::Unreadable { git_dir: git_dir.to_owned(), reason };
    let is_dir = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    if !is_dir(git_dir) || !is_dir(&git_dir.join("objects")) {
        return Err(unreadable("it is not a plain directory with objects of its own"));
    }
    if git_dir.join("objects/info/alternates").exists() {
        return Err(unreadable("it borrows objects from elsewhere"));
    }
    if git_dir.join("reftable").exists() {
        return Err(unreadable("its refs are not kept as text"));
    }
    let mut ids = BTreeSet::new();
    let mut seen = 0;
    let mut dirs = vec![git_dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(Error::files(OPERATION, &dir))? {
            let entry = entry.map_err(Error::files(OPERATION, &dir))?;
            let about = entry.metadata().map_err(Error::files(OPERATION, &dir))?;
            seen += 1;
            if seen > FILES_MAX {
                return Err(unreadable("it has more files than are looked at"));
            }
            let path = entry.path();
            if about.is_dir() && !holds_no_refs(&entry.file_name().to_string_lossy()) {
                dirs.push(path);
            } else if about.is_file() && about.len() <= FILE_BYTES_MAX && names_refs(git_dir, &path)
            {
                let bytes = fs::read(&path).map_err(Error::files(OPERATION, &path))?;
                collect_ids(&bytes, &mut ids);
            }
        }
    }
    Ok(ids)
}

fn holds_no_refs(dir: &str) -> bool {
    matches!(dir, "objects" | "hooks" | "modules" | "lfs")
}

fn names_refs(git_dir: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(git_dir).unwrap_or(path);
    let name = inside.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with("HEAD")
        || name == "packed-refs"
        || inside
            .components()
            .any(|part| matches!(part.as_os_str().to_str(), Some("refs" | "logs")))
}

fn collect_ids(bytes: &[u8], ids: &mut BTreeSet<CommitId>) {
    let words = bytes.split(|byte| !byte.is_ascii_alphanumeric());
    let words = words.filter_map(|word| std::str::from_utf8(word).ok());
    ids.extend(words.filter(|word| word.len() == 40).filter_map(|word| CommitId::parse(word).ok()));
}

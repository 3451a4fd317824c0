//! Finds rooms that are left and removes those from which nothing would be lost (P058).
//!
//! Refuses whatever is dirty, ignored but new, stashed, unreachable or alive. A directory that does
//! not say that it is ours is reported and never touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_git::Residue;
use ganger_shared::failure::Failure;
use ganger_shared::ids::CommitId;
use ganger_shared::link::Lease;
use thiserror::Error;

use super::{ABOUT, About, CHECKOUT, checkout, keep_for_people, now_secs, read_about, remove};
use crate::attempts::port::Site;

/// A directory among the rooms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// One of ours.
    Room {
        /// Where.
        dir: PathBuf,
        /// What it says of itself.
        about: Box<About>,
    },
    /// Nobody knows whose it is; it is left alone.
    Unknown {
        /// Where.
        dir: PathBuf,
    },
}

/// A living process that works in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alive {
    /// Its id.
    pub pid: i32,
}

/// Why a room stays: what would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Processes work in it.
    Alive(Vec<Alive>),
    /// It was not kept for people: its attempt is not over.
    InUse,
    /// Its tree differs from what was handed in.
    Dirty {
        /// Changed and new files.
        changed: Vec<String>,
    },
    /// There are new files that are ignored.
    Ignored {
        /// Which.
        paths: Vec<String>,
    },
    /// Its own repository holds stashed changes.
    Stashed,
    /// Its own repository holds commits that no ref of the mirror keeps.
    Unreachable {
        /// Which.
        commits: Vec<CommitId>,
    },
}

/// Why a room was not removed.
#[derive(Debug, Error)]
pub enum ReclaimError {
    /// Something would be lost, or is in use.
    #[error("reclaim {}: {refusal:?}", dir.display())]
    Refused {
        /// The room.
        dir: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// It does not say that it is a room of this worker.
    #[error("reclaim {}: it is no room of this worker; look at it and remove it by hand", dir.display())]
    Unknown {
        /// The directory.
        dir: PathBuf,
    },
    /// It could not be looked at or removed.
    #[error("reclaim {}: {}", dir.display(), failure.message)]
    Failed {
        /// The room.
        dir: PathBuf,
        /// Why.
        failure: Failure,
    },
}

/// Everything that lies among the rooms.
pub fn survey(site: &Site) -> Vec<Found> {
    let entries = fs::read_dir(site.attempts()).into_iter().flatten().flatten();
    let mut found: Vec<Found> = entries
        .map(|entry| {
            let dir = entry.path();
            match read_about(&dir) {
                Ok(about) => Found::Room { dir, about: Box::new(about) },
                Err(_) => Found::Unknown { dir },
            }
        })
        .collect();
    found.sort_by(|a, b| place(a).cmp(place(b)));
    found
}

/// At a worker's start: rooms of no live lease are kept for people from now on, and transfers that
/// were cut short are cleared. Gives what lies there that nobody knows.
pub fn keep_orphans(site: &Site, live: &[Lease]) -> Vec<PathBuf> {
    for entry in fs::read_dir(site.transfers()).into_iter().flatten().flatten() {
        // What stays only takes room.
        let _ = fs::remove_file(entry.path());
    }
    let mut unknown = Vec::new();
    for found in survey(site) {
        match found {
            Found::Unknown { dir } => unknown.push(dir),
            Found::Room { dir, about } if about.kept_since.is_none() => {
                if live.contains(&about.lease) {
                    continue;
                }
                if let Err(failure) = keep_for_people(&dir) {
                    tracing::warn!(message = failure.message, "a room is not marked as kept");
                }
            }
            Found::Room { .. } => {}
        }
    }
    unknown
}

/// What became of one kept room.
pub type Reclaimed = (PathBuf, Result<(), ReclaimError>);

/// Reclaims the rooms that were kept for longer than `age`; those that refuse are named.
pub async fn reclaim_kept(site: &Site, age: Duration) -> Vec<Reclaimed> {
    let before = now_secs().saturating_sub(age.as_secs());
    let mut reclaimed = Vec::new();
    for found in survey(site) {
        let Found::Room { dir, about } = found else { continue };
        if about.kept_since.is_some_and(|since| since <= before) {
            let result = reclaim(site, &dir).await;
            reclaimed.push((dir, result));
        }
    }
    reclaimed
}

fn place(found: &Found) -> &Path {
    match found {
        Found::Room { dir, .. } | Found::Unknown { dir } => dir,
    }
}

/// Removes a kept room if nothing is lost by it.
pub async fn reclaim(site: &Site, dir: &Path) -> Result<(), ReclaimError> {
    let about = own_room(site, dir)?;
    let refused = |refusal| Err(ReclaimError::Refused { dir: dir.to_owned(), refusal });
    let failed = |failure| ReclaimError::Failed { dir: dir.to_owned(), failure };
    let alive = alive_in(dir);
    if !alive.is_empty() {
        return refused(Refusal::Alive(alive));
    }
    if about.kept_since.is_none() {
        return refused(Refusal::InUse);
    }
    if let Some(source) = about.source.as_ref().filter(|_| dir.join(CHECKOUT).exists()) {
        let (mirror, checkout) = checkout(site, source, dir).await.map_err(failed)?;
        let residue = checkout.residue().await;
        let tree = checkout.snapshot().await;
        let (Residue { changed, ignored, commits }, snapshot) = match (residue, tree) {
            (Ok(residue), Ok(snapshot)) => (residue, snapshot),
            (Err(error), _) => return Err(failed(unreadable(&error))),
            (_, Err(error)) => return Err(failed(unreadable(&error))),
        };
        let handed_in = about.handed_in.as_ref() == Some(&snapshot.tree);
        if !changed.is_empty() && !handed_in {
            let changed = changed.into_iter().map(|change| change.path).collect();
            return refused(Refusal::Dirty { changed });
        }
        if !ignored.is_empty() {
            return refused(Refusal::Ignored { paths: ignored });
        }
        if has_stash(&checkout.tree()) {
            return refused(Refusal::Stashed);
        }
        let kept = mirror.known(&commits).await.map_err(|error| failed(unreadable(&error)))?;
        if kept.len() < commits.len() {
            let commits = commits.into_iter().filter(|commit| !kept.contains(commit)).collect();
            return refused(Refusal::Unreachable { commits });
        }
    } else if has_files(&dir.join(CHECKOUT)) {
        let changed = vec![CHECKOUT.to_owned()];
        return refused(Refusal::Dirty { changed });
    }
    remove(dir.to_owned()).await.map_err(failed)
}

fn own_room(site: &Site, dir: &Path) -> Result<About, ReclaimError> {
    let unknown = || ReclaimError::Unknown { dir: dir.to_owned() };
    let real = dir.canonicalize().map_err(|_| unknown())?;
    let rooms = site.attempts().canonicalize().map_err(|_| unknown())?;
    let plain = fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir());
    if !plain || real.parent() != Some(&rooms) || !dir.join(ABOUT).is_file() {
        return Err(unknown());
    }
    read_about(dir).map_err(|_| unknown())
}

fn unreadable(error: &dyn std::error::Error) -> Failure {
    crate::executor::failed(ganger_shared::failure::FailureClass::WorkspaceFailed, error)
}

fn has_stash(tree: &Path) -> bool {
    let git_dir = tree.join(".git");
    let packed = fs::read_to_string(git_dir.join("packed-refs")).unwrap_or_default();
    git_dir.join("refs/stash").exists() || packed.contains(" refs/stash")
}

fn has_files(dir: &Path) -> bool {
    fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| !kind.is_dir()) || has_files(&entry.path())
    })
}

/// Processes whose directory lies in the room: looked up by place, never by name.
fn alive_in(dir: &Path) -> Vec<Alive> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let at = fs::read_link(entry.path().join("cwd")).ok()?;
            at.starts_with(&real).then_some(Alive { pid })
        })
        .collect()
}

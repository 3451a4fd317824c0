//! The places that attempts and checks work in: made, kept, removed.
//!
//! A room is a directory per lease with a private tree, a home, a temporary directory and the
//! evidence. Sources come from the coordinator into a bare mirror per repository; trees are taken
//! from a pool prepared ahead (`warm`). All git is `ganger-git`'s. Not here: what a tree's changes
//! are worth (`evidence`), and when a room is made or removed (the worker's core).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ganger_git::{Checkout, Git, Limits, Mirror, RefName};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{RepositoryId, TreeId};
use ganger_shared::limits;
use ganger_shared::link::Lease;
use ganger_shared::spec::{Assignment, Body, Source};
use serde::{Deserialize, Serialize};

use crate::attempts::port::{Keep, Room, Site, lease_of};
use crate::executor::{failed, file_failed, scripted};

mod measure;
mod reclaim;
mod source;
mod warm;

pub(crate) use measure::drift;
pub use measure::{Baseline, Drift};
pub use reclaim::{
    Alive, Found, ReclaimError, Reclaimed, Refusal, keep_orphans, reclaim, reclaim_kept, survey,
};
pub use warm::{WARM_MAX, refill};

/// The file in a room that says whose it is; a directory without it is a stranger's.
const ABOUT: &str = "room.json";
/// The checkout's directory in a room, or the bare tree of a run without a repository.
const CHECKOUT: &str = "checkout";

/// What a room says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Whose it is.
    pub lease: Lease,
    /// Where its source comes from; absent without one.
    pub source: Option<Source>,
    /// Where it was kept for people: since when, in seconds since 1970.
    pub kept_since: Option<u64>,
    /// The tree that was handed in, so that it is lost by no removal.
    pub handed_in: Option<TreeId>,
}

/// Makes the room of a lease: tree, home, temporary directory, and what its executor reads.
///
/// Nothing stays behind where it fails or is dropped half way.
pub async fn prepare(site: &Site, assignment: &Assignment) -> Result<Room, Failure> {
    let lease = lease_of(assignment);
    let dir = site.attempt(&lease);
    let unfinished = Unfinished::claim(&dir)?;
    let dir = dir.canonicalize().map_err(|error| file_failed("find", &dir, &error))?;
    let room = room(&dir, assignment.source.is_some());
    let source = assignment.source.clone();
    write_about(&dir, &About { lease, source, kept_since: None, handed_in: None })?;
    for path in [&room.home, &room.tmp, &room.evidence] {
        make_private(path).map_err(|error| file_failed("make", path, &error))?;
    }
    match &assignment.source {
        None => {
            fs::create_dir_all(&room.tree).map_err(|e| file_failed("make", &room.tree, &e))?;
        }
        Some(source) => {
            let mirror = source::mirror_with(site, source).await?;
            if let Body::Check(task) = &assignment.body {
                source::also(site, source, &task.pinned_from).await?;
            }
            let checkout = warm::take(site, &mirror, source, &dir.join(CHECKOUT)).await?;
            if let Body::Check(task) = &assignment.body {
                measure::make_ready(&checkout, task, &room).await?;
            }
            leak_guard(site, &mirror, &room).await?;
        }
    }
    fetch_script(site, assignment, &room).await?;
    unfinished.finished();
    Ok(room)
}

/// Removes the room of a lease, or keeps its tree for people. Its own commits are pinned first, and
/// the pool it may have taken its tree from is filled again last.
///
/// What was never made, or is gone, is removed already.
pub async fn discard(site: &Site, assignment: &Assignment, keep: Keep) -> Result<(), Failure> {
    let lease = lease_of(assignment);
    let dir = site.attempt(&lease);
    if !dir.exists() {
        return Ok(());
    }
    if let Some(source) = &assignment.source
        && let Err(failure) = rescue(site, source, &lease, &dir).await
    {
        // What cannot be looked through may hold work: people decide.
        keep_for_people(&dir)?;
        return Err(failure);
    }
    match keep {
        Keep::Nothing => remove(dir).await?,
        Keep::Tree => {
            keep_for_people(&dir)?;
            for part in ["tmp", "caches"] {
                remove(dir.join(part)).await?;
            }
        }
    }
    if let Some(source) = &assignment.source
        && let Err(failure) = refill(site, source).await
    {
        // The next attempt makes its tree itself.
        tracing::warn!(message = failure.message, "no tree is prepared ahead");
    }
    Ok(())
}

fn keep_for_people(dir: &Path) -> Result<(), Failure> {
    let about = read_about(dir)?;
    write_about(dir, &About { kept_since: Some(now_secs()), ..about })
}

/// The checkout of a room with a source.
pub(crate) async fn checkout(
    site: &Site,
    source: &Source,
    dir: &Path,
) -> Result<(Mirror, Checkout), Failure> {
    let mirror = open_mirror(site, &source.repository).await?;
    let checkout = Checkout::open(&mirror, &dir.join(CHECKOUT))
        .map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    Ok((mirror, checkout))
}

/// Remembers that this tree was handed in, so that removing the room loses nothing of it.
pub(crate) fn handed_in(room: &Room, tree: &TreeId) -> Result<(), Failure> {
    let about = read_about(&room.dir)?;
    write_about(&room.dir, &About { handed_in: Some(tree.clone()), ..about })
}

fn room(dir: &Path, with_source: bool) -> Room {
    let checkout = dir.join(CHECKOUT);
    Room {
        dir: dir.to_owned(),
        tree: checkout.join("tree"),
        home: dir.join("home"),
        tmp: dir.join("tmp"),
        evidence: dir.join("evidence"),
        git: with_source.then(|| checkout.join("host.git")),
    }
}

/// A directory that is removed again unless it is finished.
struct Unfinished(Option<PathBuf>);

impl Unfinished {
    fn claim(dir: &Path) -> Result<Self, Failure> {
        let parent = dir.parent().unwrap_or(dir);
        make_private(parent).map_err(|error| file_failed("make", parent, &error))?;
        fs::create_dir(dir).map_err(|error| file_failed("make", dir, &error))?;
        Ok(Self(Some(dir.to_owned())))
    }

    fn finished(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // What stays is found by the survey at the next start.
            let _ = fs::remove_dir_all(dir);
        }
    }
}

async fn fetch_script(site: &Site, assignment: &Assignment, room: &Room) -> Result<(), Failure> {
    let Body::Agent(task) = &assignment.body else { return Ok(()) };
    let Some(script) = &task.script else { return Ok(()) };
    if script.bytes > scripted::SCRIPT_BYTES_MAX as u64 {
        let message = format!(
            "the script has {} bytes, where {} are the most",
            script.bytes,
            scripted::SCRIPT_BYTES_MAX
        );
        return Err(Failure::new(FailureClass::ConfigError, message));
    }
    let to = room.evidence.join(scripted::SCRIPT_FILE);
    site.bulk
        .download(script, &to)
        .await
        .map_err(|error| failed(FailureClass::WorkspaceFailed, &error))
}

/// Remembers what the mirror's refs are; an attempt that can see it must not change them (R039).
async fn leak_guard(site: &Site, mirror: &Mirror, room: &Room) -> Result<(), Failure> {
    if site.host.isolated {
        return Ok(());
    }
    let refs = source::refs(mirror).await?;
    let path = room.evidence.join(source::REFS_FILE);
    let bytes = serde_json::to_vec(&refs).expect("names and commits always have a JSON form");
    fs::write(&path, bytes).map_err(|error| file_failed("write", &path, &error))
}

/// Those refs of the mirror that are not any more what they were when the room was made.
pub(crate) async fn leaked_refs(mirror: &Mirror, room: &Room) -> Result<Vec<String>, Failure> {
    let path = room.evidence.join(source::REFS_FILE);
    let Ok(bytes) = fs::read(&path) else { return Ok(Vec::new()) };
    let before: Vec<(String, String)> = serde_json::from_slice(&bytes).unwrap_or_default();
    let now = source::refs(mirror).await?;
    let changed = before.into_iter().filter(|old| !now.contains(old));
    Ok(changed.map(|(name, _)| name).collect())
}

/// Pins what an attempt committed in its own repository, so that no removal loses it (R041).
async fn rescue(site: &Site, source: &Source, lease: &Lease, dir: &Path) -> Result<(), Failure> {
    if !dir.join(CHECKOUT).join("base").is_file() {
        return Ok(());
    }
    let (mirror, checkout) = checkout(site, source, dir).await?;
    let prefix = rescue_prefix(lease);
    let rescued = checkout.rescue_commits(&mirror, &prefix).await;
    let rescued = rescued.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    for each in rescued {
        tracing::info!(name = %each.name, commit = %each.commit, "an attempt's commit is kept");
    }
    Ok(())
}

fn rescue_prefix(lease: &Lease) -> String {
    let work = lease.work.to_string();
    let plain = work.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("run-{}-{}-{}-orphan", lease.run, plain.collect::<String>(), lease.epoch)
}

/// Removes a directory of ours without blocking the others.
async fn remove(dir: PathBuf) -> Result<(), Failure> {
    let path = dir.clone();
    let removed = tokio::task::spawn_blocking(move || {
        let first = fs::remove_dir_all(&path);
        if first.is_err() {
            // Package caches write-protect their directories.
            unlock(&path);
            return fs::remove_dir_all(&path);
        }
        first
    });
    let removed = removed.await.expect("removing files does not panic");
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file_failed("remove", &dir, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Gives the owner back the right to remove what lies in directories; links are not followed.
fn unlock(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // What cannot be changed is named by the removal that follows.
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

async fn open_git() -> Result<Git, Failure> {
    let bounds = Limits { bundle_max: limits::ARTIFACT_BYTES, ..Limits::default() };
    Git::find(bounds).await.map_err(|error| failed(FailureClass::PreflightFailed, &error))
}

async fn open_mirror(site: &Site, repository: &RepositoryId) -> Result<Mirror, Failure> {
    let git = open_git().await?;
    let mirrors = site.mirrors();
    make_private(&mirrors).map_err(|error| file_failed("make", &mirrors, &error))?;
    let path = mirrors.join(format!("{repository}.git"));
    let opened = Mirror::open_or_create(&git, &path).await;
    opened.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))
}

fn write_about(dir: &Path, about: &About) -> Result<(), Failure> {
    let (path, draft) = (dir.join(ABOUT), dir.join("room.draft"));
    let bytes = serde_json::to_vec(about).expect("a room's words always have a JSON form");
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path));
    written.map_err(|error| file_failed("write", &path, &error))
}

fn read_about(dir: &Path) -> Result<About, Failure> {
    let path = dir.join(ABOUT);
    let bytes = fs::read(&path).map_err(|error| file_failed("read", &path, &error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| file_failed("read", &path, &io::Error::other(error)))
}

/// A directory that only the worker's user may enter.
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn our_refs() -> RefName {
    RefName::parse("refs/ganger").expect("a constant name in the right form")
}

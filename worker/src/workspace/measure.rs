//! The tree of a check: the subject's own tree with the pinned files put back, and the proof that
//! the program measured that tree and no other.
//!
//! A program that measures may add files (build output); it may not change or remove any it was
//! given. Not here: what the measurement says.

use std::fs;
use std::path::Path;

use ganger_git::{ChangeKind, ChangedPath, Checkout, Snapshot};
use ganger_shared::digest::Digest;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::TreeId;
use ganger_shared::spec::CheckTask;
use globset::GlobSet;
use serde::{Deserialize, Serialize};

use crate::attempts::port::Room;
use crate::evidence::scope;
use crate::executor::{failed, file_failed};

/// Where the baseline lies, out of the program's sight.
const FILE: &str = "baseline.json";

/// What was about to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The tree with its pinned files put back.
    pub tree: TreeId,
    /// What was put back or removed, with its content's digest; none where it is gone.
    pub restored: Vec<(String, Option<Digest>)>,
}

/// What a measuring program changed of the tree it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The paths.
    pub paths: Vec<String>,
}

/// Makes the tree exactly what the check is to measure.
pub(super) async fn make_ready(
    checkout: &Checkout,
    task: &CheckTask,
    room: &Room,
) -> Result<(), Failure> {
    let wrong = |error: &dyn std::error::Error| failed(FailureClass::WorkspaceFailed, error);
    let tree = checkout.base_tree().await.map_err(|error| wrong(&error))?;
    if tree != task.tree {
        let commit = checkout.base();
        let message = format!("commit {commit} has tree {tree}, where {} was promised", task.tree);
        return Err(Failure::new(FailureClass::TreeDrift, message));
    }
    if !task.pinned.is_empty() {
        let pinned = scope::globs(&task.pinned)?;
        let restored = checkout.restore_from(&task.pinned_from, |path| pinned.is_match(path)).await;
        restored.map_err(|error| wrong(&error))?;
    }
    let snapshot = checkout.snapshot().await.map_err(|error| wrong(&error))?;
    let restored = digests(checkout, &snapshot.changed);
    let stranger = restored.iter().find(|(path, _)| !is_pinned(&task.pinned, path));
    if let Some((path, _)) = stranger {
        let message = format!("{path} differs from the tree before anything was measured");
        return Err(Failure::new(FailureClass::TreeDrift, message));
    }
    let baseline = Baseline { tree: snapshot.tree, restored };
    let bytes = serde_json::to_vec(&baseline).expect("paths and digests have a JSON form");
    let path = room.evidence.join(FILE);
    fs::write(&path, bytes).map_err(|error| file_failed("write", &path, &error))
}

/// What the program changed, if it changed anything it was given.
pub(crate) async fn drift(checkout: &Checkout, room: &Room) -> Result<Option<Drift>, Failure> {
    let path = room.evidence.join(FILE);
    let bytes = fs::read(&path).map_err(|error| file_failed("read", &path, &error))?;
    let baseline: Baseline = serde_json::from_slice(&bytes)
        .map_err(|error| file_failed("read", &path, &std::io::Error::other(error)))?;
    let snapshot = checkout.snapshot().await;
    let Snapshot { tree, changed, .. } =
        snapshot.map_err(|error| failed(FailureClass::TreeDrift, &error))?;
    if tree == baseline.tree {
        return Ok(None);
    }
    let was_restored = |path: &str| baseline.restored.iter().any(|(known, _)| known == path);
    let mut paths: Vec<String> = changed
        .iter()
        .filter(|change| change.kind != ChangeKind::Added && !was_restored(&change.path))
        .map(|change| change.path.clone())
        .collect();
    for (path, digest) in &baseline.restored {
        if content(&checkout.tree(), path) != *digest {
            paths.push(path.clone());
        }
    }
    paths.sort();
    Ok((!paths.is_empty()).then_some(Drift { paths }))
}

fn digests(checkout: &Checkout, changed: &[ChangedPath]) -> Vec<(String, Option<Digest>)> {
    let tree = checkout.tree();
    changed.iter().map(|change| (change.path.clone(), content(&tree, &change.path))).collect()
}

/// A link is what it points to: what lies behind it is not of this tree.
fn content(tree: &Path, path: &str) -> Option<Digest> {
    let path = tree.join(path);
    let about = fs::symlink_metadata(&path).ok()?;
    if about.is_symlink() {
        return Some(Digest::of(fs::read_link(&path).ok()?.as_os_str().as_encoded_bytes()));
    }
    fs::read(&path).ok().map(|bytes| Digest::of(&bytes))
}

fn is_pinned(pinned: &[String], path: &str) -> bool {
    scope::globs(pinned).is_ok_and(|pinned: GlobSet| pinned.is_match(path))
}

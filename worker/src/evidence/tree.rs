//! The tree an attempt left: read by host-side git, compared with its base, handed over as a thin
//! bundle for machines and a patch for people.

use std::fs;
use std::time::SystemTime;

use ganger_git::{ChangeKind, ChangedPath, Checkout, Snapshot, SnapshotError, Stamp};
use ganger_shared::delivery::{Change, ChangeKind as Listed, Changes, TreeDelivery};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{TreeId, WorkId};

use super::{Case, output, scope};
use crate::executor::{failed, file_failed};
use crate::workspace;

/// A longer patch is cut: the bundle holds everything.
const PATCH_BYTES_MAX: u64 = 16 << 20;

/// What an attempt's tree is now.
pub(super) struct Tree {
    checkout: Checkout,
    id: TreeId,
    pub(super) changed: Vec<ChangedPath>,
    /// What it changed that it may not, if it did.
    pub(super) violation: Option<Failure>,
}

/// Reads the tree; `None` where the run has no repository.
pub(super) async fn read(case: &Case<'_>) -> Result<Option<Tree>, Failure> {
    let Some(source) = &case.assignment.source else { return Ok(None) };
    let (mirror, checkout) = workspace::checkout(case.site, source, &case.room.dir).await?;
    let snapshot = checkout.snapshot().await.map_err(|error| unreadable(&error))?;
    let mut violation = scope::violation(&case.assignment.body, &snapshot)?;
    let leaked = workspace::leaked_refs(&mirror, case.room).await?;
    if !leaked.is_empty() {
        let message = format!("the worker's own mirror was changed: {}", leaked.join(", "));
        violation = Some(Failure::new(FailureClass::ScopeViolation, message));
    }
    let Snapshot { tree, changed, .. } = snapshot;
    Ok(Some(Tree { checkout, id: tree, changed, violation }))
}

/// Hands the tree over.
pub(super) async fn hand_over(case: &Case<'_>, tree: Tree) -> Result<TreeDelivery, Failure> {
    let Tree { checkout, id: tree, changed, violation: _ } = tree;
    let base = checkout.base().clone();
    if changed.is_empty() {
        workspace::handed_in(case.room, &tree)?;
        let (commit, changes) = (base.clone(), Changes::default());
        return Ok(TreeDelivery { base, tree, commit, bundle: None, patch: None, changes });
    }
    let wrong = |error: &dyn std::error::Error| failed(FailureClass::InvalidResult, error);
    let out = case.room.evidence.join("delivery.bundle");
    let bundled = checkout.bundle(&out, &tree, &stamp(case)).await;
    let commit = bundled.map_err(|error| wrong(&error))?.commit;
    let bundle = Some(output::upload(case, &out).await?);
    let patch = checkout.patch(&tree, PATCH_BYTES_MAX).await.map_err(|error| wrong(&error))?;
    let shown = case.room.evidence.join("delivery.patch");
    let bytes = case.redactor.bytes(&patch.bytes);
    fs::write(&shown, bytes).map_err(|error| file_failed("write", &shown, &error))?;
    let patch = Some(output::upload(case, &shown).await?);
    workspace::handed_in(case.room, &tree)?;
    let changes = Changes::list(changed.into_iter().map(listed));
    Ok(TreeDelivery { base, tree, commit, bundle, patch, changes })
}

fn unreadable(error: &SnapshotError) -> Failure {
    let class = match error {
        SnapshotError::NestedRepositories { .. }
        | SnapshotError::SubmodulesTouched { .. }
        | SnapshotError::TreeReplaced { .. } => FailureClass::ScopeViolation,
        SnapshotError::Git(_) => FailureClass::InvalidResult,
    };
    failed(class, error)
}

fn stamp(case: &Case<'_>) -> Stamp {
    let unit = match &case.assignment.work {
        WorkId::Attempt(id) => id.unit.clone(),
        WorkId::Check(id) => id.unit.clone(),
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Stamp {
        message: format!("{unit}\n\n{} of run {}\n", case.assignment.work, case.assignment.run),
        author_name: format!("ganger {unit}"),
        author_email: "ganger@localhost".to_owned(),
        time_unix: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
    }
}

fn listed(change: ChangedPath) -> Change {
    let kind = match change.kind {
        ChangeKind::Added => Listed::Added,
        ChangeKind::Modified | ChangeKind::Retyped => Listed::Modified,
        ChangeKind::Deleted => Listed::Deleted,
    };
    Change { path: change.path, kind }
}

//! What a successful attempt hands in, and what is measured of it.

use serde::{Deserialize, Serialize};

use crate::digest::ArtifactRef;
use crate::ids::{CommitId, TreeId};
use crate::limits;
use crate::text;
use crate::time::DurationMs;

/// How one path differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Not in the base.
    Added,
    /// In both, with other content, mode or type.
    Modified,
    /// Only in the base.
    Deleted,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    /// Relative to the root of the tree, `/` between the parts.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
}

/// What changed, listed as far as the bound allows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// The first changes in path order.
    pub listed: Vec<Change>,
    /// How many there are in all.
    pub total: u64,
}

impl Changes {
    /// The list of these changes, cut to `limits::CHANGED_BYTES` of path text.
    pub fn list(all: impl IntoIterator<Item = Change>) -> Self {
        let mut changes = Self::default();
        let mut room = limits::CHANGED_BYTES;
        let mut full = false;
        for change in all {
            changes.total += 1;
            full = full || change.path.len() + 1 > room;
            if !full {
                room -= change.path.len() + 1;
                changes.listed.push(change);
            }
        }
        changes
    }
}

/// The tree a delivery hands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeDelivery {
    /// The commit the attempt began from.
    pub base: CommitId,
    /// The tree at its end; the evidence everything else is bound to.
    pub tree: TreeId,
    /// A commit of that tree whose parent is the base.
    pub commit: CommitId,
    /// The thin bundle that carries the commit; absent where the tree equals the base's.
    pub bundle: Option<ArtifactRef>,
    /// The same as a patch, for people.
    pub patch: Option<ArtifactRef>,
    /// What changed.
    pub changes: Changes,
}

/// One program that ran, and how it ended (R108).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEvidence {
    /// The command as given to the shell.
    pub cmd: String,
    /// Whether it ended as expected.
    pub pass: bool,
    /// Its exit code; absent where a signal ended it.
    pub exit_code: Option<i32>,
    /// The end of its output: five lines, 500 characters.
    pub log_tail: String,
    /// All of its output, as far as it was kept.
    pub log: Option<ArtifactRef>,
    /// How long it ran.
    pub duration_ms: DurationMs,
}

/// What was used. Absent is unknown, never zero (R142).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Tokens read from a cache.
    pub tokens_cached: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

/// What a successful attempt hands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The tree, where the run has a repository.
    pub tree: Option<TreeDelivery>,
    /// The attempt said that nothing had to change.
    pub no_change: bool,
    /// What was done, in the attempt's words; at most 8 KiB.
    pub summary: String,
    /// The end of its output (R180).
    pub excerpt: String,
    /// The programs it ran that are evidence.
    pub commands: Vec<CommandEvidence>,
    /// What it used.
    pub usage: Usage,
    /// The agent's session, where it has one.
    pub session: Option<String>,
    /// Whether the attempt saw only its own directory (worker label `isolated`).
    pub isolated: bool,
}

impl Delivery {
    /// An empty delivery with this summary, cut to its bound.
    pub fn new(summary: impl Into<String>) -> Self {
        Self {
            tree: None,
            no_change: false,
            summary: text::cut_bytes(summary.into(), limits::SUMMARY_BYTES),
            excerpt: String::new(),
            commands: Vec::new(),
            usage: Usage::default(),
            session: None,
            isolated: false,
        }
    }
}

/// A fact about a subject: three values, of which `not_measured` opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is so.
    Pass,
    /// It is not so.
    Fail,
    /// It was not found out.
    NotMeasured,
}

/// Why something was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotMeasured {
    /// The check's own machinery failed.
    HarnessDefect,
    /// The check ran longer than it may.
    Timeout,
    /// The run ended first.
    Withdrawn,
}

/// Where a check was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On a worker that did not write the delivery.
    OtherWorker,
    /// On the author's worker, in a tree the author could not touch.
    OtherTree,
}

/// How one measuring of a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The fact.
    pub outcome: Outcome,
    /// Why there is none, if there is none.
    pub not_measured: Option<NotMeasured>,
    /// The program that measured, if it ran.
    pub evidence: Option<CommandEvidence>,
    /// The tree that was really measured.
    pub tree: TreeId,
    /// What went wrong, for people.
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_changes_is_cut_and_counted() {
        let many = (0..10_000)
            .map(|n| Change { path: format!("src/file-{n:05}.rs"), kind: ChangeKind::Added });
        let changes = Changes::list(many);
        assert_eq!(changes.total, 10_000);
        let bytes: usize = changes.listed.iter().map(|change| change.path.len() + 1).sum();
        assert!(bytes <= limits::CHANGED_BYTES && bytes > limits::CHANGED_BYTES - 40);
    }
}

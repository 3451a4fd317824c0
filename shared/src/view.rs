//! What people and programs are shown: the shapes behind `-o json` and the API's answers.
//!
//! `state` is always the bare word; what a state carries stands beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::delivery::{CheckResult, Delivery, Place};
use crate::digest::{ArtifactRef, Digest};
use crate::event::Conflict;
use crate::failure::Failure;
use crate::ids::{
    AttemptId, CheckId, CommitId, Epoch, ProjectId, RunId, TaskId, TreeId, UnitId, WorkerId,
};
use crate::ledger::{Account, Dimension};
use crate::link::Progress;
use crate::time::{DurationMs, Timestamp};
use crate::verdict::Verdict;

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The plan's name.
    pub name: String,
    /// Its project.
    pub project: ProjectId,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// `active`, `paused`, `held`, `budget_limited`, `stopping`, `completed`, `failed`, `aborted`.
    pub state: String,
    /// Why, where the state has a reason.
    pub reason: Option<String>,
    /// How many units are in which state.
    pub counts: BTreeMap<String, u32>,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The sequence of its last event.
    pub sequence: u64,
    /// Its trace, as 32 hex digits.
    pub trace_id: String,
}

/// One run, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub row: RunRow,
    /// The user's words.
    pub goal: String,
    /// The frozen contract.
    pub contract_hash: Digest,
    /// The plan text as sent.
    pub plan: ArtifactRef,
    /// The plan revision in force.
    pub revision: u32,
    /// Where the user's repository is, as the submitting client saw it.
    pub repository: Option<String>,
    /// The repository's id.
    pub repository_id: Option<String>,
    /// The pinned base.
    pub base: Option<CommitId>,
    /// `ganger/<run>`, where there is a repository.
    pub branch: Option<String>,
    /// Where that branch stands in the coordinator's mirror.
    pub tip: Option<CommitId>,
    /// `hold` or `branch`.
    pub delivery: String,
    /// The account of every dimension.
    pub ledger: BTreeMap<Dimension, Account>,
    /// Every unit.
    pub units: Vec<UnitView>,
    /// Checks of the final tree.
    pub final_checks: Vec<CheckView>,
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitView {
    /// Its id.
    pub id: UnitId,
    /// The task it belongs to.
    pub task: Option<TaskId>,
    /// `command`, `agent`, …
    pub kind: String,
    /// What it depends on.
    pub after: Vec<UnitId>,
    /// `pending`, `blocked`, `ready`, `running`, `delivered`, `accepted`, `rejected`, `failed`,
    /// `stopping`, `cancelled`, `skipped`.
    pub state: String,
    /// Why, where the state has a reason; for `blocked`, the path to what blocks it.
    pub reason: Option<String>,
    /// Of `accepted`: `pending`, `done` or `conflict`.
    pub integration: Option<String>,
    /// Of a conflict.
    pub conflict: Option<Conflict>,
    /// The commit that holds it.
    pub commit: Option<CommitId>,
    /// The gate: `open`, `closed` or `held`; absent before a delivery.
    pub gate: Option<String>,
    /// Why no attempt runs, where one is wanted.
    pub waiting_for: Option<String>,
    /// The sequence of the last event that touched it.
    pub sequence: u64,
    /// Attempts lost so far.
    pub losses: u32,
    /// Every attempt.
    pub attempts: Vec<AttemptView>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its id.
    pub id: AttemptId,
    /// Its fence.
    pub epoch: Epoch,
    /// `leased`, `preparing`, `running`, `stopping`, `delivered`, `failed`, `lost`, `cancelled`.
    pub state: String,
    /// Where.
    pub worker: WorkerId,
    /// The commit it began from.
    pub base: Option<CommitId>,
    /// When it was leased.
    pub leased_at: Timestamp,
    /// When its program started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it was at work.
    pub active_ms: Option<DurationMs>,
    /// What it handed in.
    pub delivery: Option<Delivery>,
    /// How it failed.
    pub failure: Option<Failure>,
    /// All output that was kept.
    pub output: Option<ArtifactRef>,
    /// What was measured of it.
    pub checks: Vec<CheckView>,
    /// What was judged of it.
    pub verdicts: Vec<Verdict>,
    /// How far it is, while it runs; from the last beat.
    pub progress: Option<Progress>,
}

/// One measuring of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckView {
    /// Its id.
    pub id: CheckId,
    /// Whether the gate needs it.
    pub required: bool,
    /// `wanted`, `leased`, `pass`, `fail`, `not_measured`, `lost`.
    pub state: String,
    /// Where it is measured.
    pub worker: Option<WorkerId>,
    /// Relative to the author.
    pub place: Option<Place>,
    /// The tree measured.
    pub tree: TreeId,
    /// What came out.
    pub result: Option<CheckResult>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// The name people see.
    pub name: String,
    /// `live`, `suspect`, `lost`, `draining`, `left`.
    pub state: String,
    /// What it offers.
    pub labels: BTreeMap<String, String>,
    /// Attempts it runs at once.
    pub slots: u32,
    /// Of them, in use.
    pub busy: u32,
    /// The agents that run there, `name version`.
    pub agents: Vec<String>,
    /// Its build.
    pub build: String,
    /// When the last beat arrived.
    pub last_beat: Option<Timestamp>,
    /// Its clock less the coordinator's, in milliseconds, at the last beat.
    pub skew_ms: i64,
}

/// Where a unit stands in the queue, and why it does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The unit.
    pub unit: UnitId,
    /// Its state.
    pub state: String,
    /// Its place among everything that waits for a slot, from 1.
    pub position: Option<u64>,
    /// Why, a line each.
    pub reasons: Vec<String>,
}

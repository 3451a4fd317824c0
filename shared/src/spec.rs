//! What the coordinator asks a worker to do, whole: an assignment needs nothing else to be run.

use serde::{Deserialize, Serialize};

use crate::delivery::Place;
use crate::digest::ArtifactRef;
use crate::ids::{CommitId, Epoch, RepositoryId, RunId, TreeId, WorkId};
use crate::plan::OnDisconnect;
use crate::time::DurationMs;

/// Where the tree comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The repository; the coordinator ships bundles of it.
    pub repository: RepositoryId,
    /// The commit to begin from.
    pub commit: CommitId,
}

/// One leased piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The run it belongs to.
    pub run: RunId,
    /// The attempt or the check.
    pub work: WorkId,
    /// The fence of this lease.
    pub epoch: Epoch,
    /// W3C `traceparent` of the span it belongs under.
    pub traceparent: String,
    /// The tree it works in; absent where the run has no repository.
    pub source: Option<Source>,
    /// How long it may take, from its start.
    pub timeout_ms: DurationMs,
    /// How long it may print nothing; absent for no limit.
    pub silence_ms: Option<DurationMs>,
    /// How long each rung of the stop ladder waits.
    pub grace_ms: DurationMs,
    /// What happens while the worker is cut off.
    pub on_disconnect: OnDisconnect,
    /// Names of environment variables let through from the worker's own environment.
    pub env: Vec<String>,
    /// What to do.
    pub body: Body,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Body {
    /// Change the tree by a program.
    Command {
        /// Given to `/bin/sh -c`.
        run: String,
        /// Globs the program may write; empty for none.
        files: Vec<String>,
    },
    /// Change the tree by an agent.
    Agent(AgentTask),
    /// Measure a check in a tree its author cannot touch.
    Check(CheckTask),
}

/// An agent's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTask {
    /// The agent's name in the worker's catalogue.
    pub agent: String,
    /// The model tier asked for.
    pub tier: Option<String>,
    /// The run's goal, verbatim (R204).
    pub goal: String,
    /// The unit's one objective (R206).
    pub objective: String,
    /// Rules of the contract every unit keeps.
    pub invariants: Vec<String>,
    /// The language everything is written in.
    pub language: Option<String>,
    /// Globs the agent may write; empty for none.
    pub files: Vec<String>,
    /// The script of a `scripted` agent.
    pub script: Option<ArtifactRef>,
}

/// One measuring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckTask {
    /// Given to `/bin/sh -c`.
    pub run: String,
    /// The exit code that passes.
    pub expect_exit: i32,
    /// The tree to measure: the source's commit must have it.
    pub tree: TreeId,
    /// Globs put back to `pinned_from` before measuring (P097).
    pub pinned: Vec<String>,
    /// The commit the pinned files come from.
    pub pinned_from: CommitId,
    /// Where it is measured, relative to the delivery's author.
    pub place: Place,
}

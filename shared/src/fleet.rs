//! What a worker offers, and what is remembered of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{InstanceId, WorkerId};

/// What a worker is and can do, as it says at every attach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFacts {
    /// Its lasting identity.
    pub worker: WorkerId,
    /// This start of its process.
    pub instance: InstanceId,
    /// The name people see.
    pub name: String,
    /// What it offers, matched against a unit's `requires.labels`.
    pub labels: BTreeMap<String, String>,
    /// Attempts it runs at once. One check slot is beside them.
    pub slots: u32,
    /// The agents that run there.
    pub agents: Vec<AgentFacts>,
    /// The worker's build, for people.
    pub build: String,
}

/// One agent on one worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentFacts {
    /// The name plans use.
    pub name: String,
    /// The adapter that drives it.
    pub adapter: String,
    /// Its version as probed; absent where it has none.
    pub version: Option<String>,
}

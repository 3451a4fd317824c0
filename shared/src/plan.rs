//! The plan file: what a person or a supervising agent asks for, as they wrote it.
//!
//! Types of the whole schema, one file per group of keys; reading with all problems at once
//! ([`read()`]), what is not built yet ([`unsupported`]), defaults
//! ([`PlanFile::resolved_units`]), and checks that prove nothing ([`cannot_fail()`]). Rules over the graph
//! (cycles, unknown names, evidence) are not here: they belong to the checker in the coordinator's
//! core.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ProjectId;

pub mod agent;
pub mod budgets;
mod cannot_fail;
pub mod check;
pub mod contract;
mod form;
mod kinds;
pub mod path;
pub mod ports;
pub mod read;
pub mod repository;
pub mod resolve;
pub mod retry;
pub mod scalar;
pub mod schema;
mod schema_view;
pub mod shape;
mod shell;
pub mod support;
pub mod task;
mod tree;
pub mod unit;
mod walk;

pub use agent::{Agent, Tier};
pub use budgets::{Budgets, Calls};
pub use cannot_fail::{Reason, cannot_fail};
pub use check::{Category, Check, Exit, Gate, Rule, Where};
pub use contract::{
    Acceptance, Contract, Profile, Protect, ProtectClass, Risk, RiskAction, SourceCoverage,
};
pub use ports::{Class, Input, InputDelivery, Merge, Output, PortRef};
pub use read::{Reading, Spans, read, read_all};
pub use repository::{Repository, Seed, Source};
pub use resolve::Resolved;
pub use retry::{Defaults, Retry};
pub use scalar::{Length, Size, Usd};
pub use schema::schema;
pub use shape::{
    Condition, FailureMode, Fork, Insert, Join, Lane, Loop, Moment, Pick, Question, QuestionClass,
    Race, Trigger,
};
pub use support::unsupported;
pub use task::Task;
pub use unit::{
    Accept, Continue, Effects, Hooks, Kind, OnCheckFailure, OnDisconnect, Requires, RunOn, Unit,
};

/// A plan as written: everything a run needs to know before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Version of this format; always 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// A short name for people; 1 to 63 of a-z, 0-9 and `-`.
    pub name: PlanName,
    /// The project the run belongs to, for fairness, caps and permissions. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// Free labels, to find the run by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the whole plan is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Where the source comes from. Left out: each unit gets an empty directory and nothing is
    /// integrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Repository>,
    /// Who judges deliveries. Default: `supervised`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether ready units start by themselves. Default: `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<Dispatch>,
    /// Rank among runs, -100 to 100; above 0 needs role operate. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i32>,
    /// What the run may spend in all.
    #[serde(default, skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// The part that is frozen by hash when the run starts.
    #[serde(default, skip_serializing_if = "Contract::is_empty")]
    pub contract: Contract,
    /// What units have that do not say otherwise.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// Human groupings of units: phases, waves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Task>,
    /// The units of work; at most 64 unless `budgets.units` or the operator allows more.
    #[schemars(length(min = 1))]
    pub units: Vec<Unit>,
    /// Units the coordinator adds by itself when something happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insert: Vec<Insert>,
    /// What happens with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// A plan's short name has the form of every other name.
pub type PlanName = ProjectId;

/// Who judges deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A named person or agent accepts each delivery.
    #[default]
    Supervised,
    /// Policy accepts a delivery once every gate of its unit is open.
    Autonomous,
}

/// Whether ready units start by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// As soon as they are ready and there is room.
    #[default]
    Auto,
    /// Only by the command `ready`, which starts exactly the ready set.
    OnCommand,
}

/// What happens with the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// How far the result goes by itself; what lies past `branch` asks first. Default: `hold`.
    pub mode: DeliveryMode,
}

/// How far the result goes by itself.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// It stays with the coordinator.
    #[default]
    Hold,
    /// Branch `ganger/<run>` stands in the coordinator's mirror and may be fetched.
    Branch,
    /// The branch is pushed to the repository.
    Push,
    /// A pull request is opened.
    Pr,
    /// It is merged into the base branch.
    Merge,
}

impl PlanFile {
    /// The project the run belongs to.
    pub fn project(&self) -> ProjectId {
        self.project
            .clone()
            .unwrap_or_else(|| ProjectId::parse("default").expect("`default` is a name"))
    }

    /// Who judges deliveries.
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }

    /// Whether ready units start by themselves.
    pub fn dispatch(&self) -> Dispatch {
        self.dispatch.unwrap_or_default()
    }

    /// Rank among runs.
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or_default()
    }

    /// How far the result goes by itself.
    pub fn delivery_mode(&self) -> DeliveryMode {
        self.delivery.as_ref().map(|delivery| delivery.mode).unwrap_or_default()
    }
}

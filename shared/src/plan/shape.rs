//! Keys that shape the graph: races, loops, forks, joins, questions, insertions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Agent, Length, PortRef, Unit};
use crate::ids::{LaneId, UnitId};

/// Several candidates for one unit, of which one is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Race {
    /// The lanes, 2 to 5.
    #[schemars(length(min = 2, max = 5))]
    pub lanes: Vec<Lane>,
    /// Who or what picks the winner. Default: `judge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// Lanes that must have delivered before one is picked. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5))]
    pub min_lanes: Option<u32>,
}

/// One lane of a race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Its name. Default: `lane-a`, `lane-b` and so forth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<LaneId>,
    /// The agent that runs in it.
    pub agent: Agent,
}

/// Who or what picks the winner of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// A named person or agent.
    Judge,
    /// The first delivery whose required checks pass.
    FirstPass,
    /// The delivery with the most checks passed.
    BestCheck,
}

/// A body of units that is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// The units, in this order.
    #[schemars(length(min = 1))]
    pub body: Vec<UnitId>,
    /// Ends when this command exits 0; given to `/bin/sh -c`. Excludes `condition`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Ends when a unit of the body delivers this value. Excludes `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// How often the body is run at most. Default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u32>,
}

/// A value that ends a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A unit of the loop's body.
    pub unit: UnitId,
    /// The field of its delivery.
    pub field: String,
    /// The value that ends the loop.
    pub equals: String,
}

/// A unit that becomes one sibling for each branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The branches by name. Excludes `from`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
    /// A port whose value lists the branches. Excludes `branches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PortRef>,
    /// Branches running at once. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrent: Option<u32>,
}

/// The point where the branches of a fork come together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The forked unit.
    pub of: UnitId,
    /// What a failed branch means. Default: `fail_fast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<FailureMode>,
}

/// What a failed branch means for the join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// It fails at the first failed branch.
    FailFast,
    /// It takes what succeeded.
    Collect,
    /// It waits for all and fails if one failed.
    AllOrNothing,
}

/// Something only a person, or a declared policy, may answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What kind of question it is; says who may answer and whether a default may be taken.
    pub class: QuestionClass,
    /// The question.
    pub text: String,
    /// The answers to choose from. Default: free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The option taken at the deadline, in class `permission` only; `none` for no default.
    /// Default: the first option in class `permission`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// How long an answer is waited for. Default: `2h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Length>,
}

/// What kind of question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionClass {
    /// May something be done; a declared default may be taken.
    Permission,
    /// What is meant; unanswered, the unit fails.
    Clarification,
    /// The owner's decision; unanswered, the run is held.
    Owner,
    /// What lies past the branch; unanswered, the run is held.
    Git,
    /// A safeguard spoke; unanswered, the run is held.
    Safeguard,
}

/// A unit the coordinator adds by itself when something happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// When.
    pub trigger: Trigger,
    /// What.
    pub unit: Unit,
}

/// What makes the coordinator add a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The unit it happens to. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitId>,
    /// What becomes of the unit.
    #[serde(rename = "is")]
    pub moment: Moment,
    /// Only if a changed file matches one of these globs. Default: whatever was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// What becomes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// It failed.
    Failed,
    /// A required check of it failed.
    CheckFailed,
    /// It delivered.
    Delivered,
    /// Its delivery was accepted.
    Accepted,
    /// Its delivery was rejected.
    Rejected,
}

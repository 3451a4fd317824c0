//! Human groupings of units: phases, waves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Gate, Race};
use crate::ids::TaskId;

/// A group of units; a wave when it comes after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name within the plan.
    pub id: TaskId,
    /// A title for people. Default: the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Tasks all of whose units come before all of this one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
    /// What must hold when all its units are done, before any later task; closed, it holds the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Units of this task running at once. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fan_out: Option<u32>,
    /// Every unit of this task is raced in these lanes; a race counts as two of `fan_out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
}

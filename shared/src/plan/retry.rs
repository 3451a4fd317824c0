//! When a failed unit is tried again, and what units have that do not say otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Agent, Length};

/// When a failed unit is tried again by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all, the first included; 1 to 20. Default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub attempts: Option<u32>,
    /// Pause before the next attempt. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Length>,
    /// No further attempt once this long has passed since the first one started. Default: no such
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Length>,
}

/// What units have that do not say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The agent of units that need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// How long an attempt may take. Default: `30m`; an agent never above `2h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Length>,
    /// How long an attempt may be without output. Default: `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Length>,
    /// When a failed unit is tried again by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

impl Defaults {
    /// Whether nothing is said here.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

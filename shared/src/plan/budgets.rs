//! What a run may spend in all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Length, Usd};

/// Limits over the whole run; each left out has the operator's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// Units ever planned, insertions included. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// Attempts ever granted, over all units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Tokens of all calls of all attempts. Default: 2000000; never above 50000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars for all calls of all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// Time in which something ran; waiting for people does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Length>,
    /// Calls of agents, in profile `managed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
}

/// Calls of agents, by what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Calls that do work. In profile `managed`: 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<u32>,
    /// Calls that judge work. In profile `managed`: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<u32>,
    /// All calls. In profile `managed`: 12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl Budgets {
    /// Whether nothing is limited here.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

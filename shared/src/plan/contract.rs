//! The frozen part of a plan: what may not change while the run lasts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is frozen by hash when the run starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Language of prompts, reports and errors meant for people. Default: `en`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How much evidence is owed. Default: `engineering`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What must stay true whatever is changed, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<String>,
    /// What reviews must cover besides the invariants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Acceptance>,
    /// Files that may not be changed, or not deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<Protect>,
    /// Files whose change is refused, or asks a person first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk: Vec<Risk>,
}

impl Contract {
    /// Whether nothing is frozen here.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much evidence is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Little: small changes.
    Quick,
    /// At least two of build, test and runtime.
    Engineering,
    /// As engineering, with frozen documents first.
    Sdd,
    /// Watching, without changes.
    Monitor,
    /// Engineering under hard call budgets, always with delivery mode `hold`.
    Managed,
}

/// What reviews must cover besides the invariants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// Which sources must be covered; each target must exist in the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceCoverage>,
    /// What must be there at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliverables: Vec<String>,
    /// How it is shown to work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verification: Vec<String>,
    /// What is not part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<String>,
}

/// Sources that must be covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceCoverage {
    /// What part of the work the sources are about.
    pub scope: String,
    /// Paths in the repository.
    pub targets: Vec<String>,
}

/// A protected part of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Protect {
    /// Which files: a glob over paths from the top of the tree.
    pub path: String,
    /// What may still be done to them.
    pub class: ProtectClass,
}

/// What may still be done to protected files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProtectClass {
    /// Nothing.
    Immutable,
    /// Updating, not deleting.
    Retain,
}

/// A part of the tree whose change is a risk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Which files: globs over paths from the top of the tree.
    pub paths: Vec<String>,
    /// What happens when one of them is changed.
    pub action: RiskAction,
}

/// What happens when a risky file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskAction {
    /// The delivery is refused.
    Deny,
    /// A person is asked.
    Ask,
}

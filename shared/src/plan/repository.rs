//! Where a run's source comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of a run: an existing repository, or a directory made into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Repository {
    /// An existing repository.
    Source(Source),
    /// A directory that becomes a fresh repository.
    Seed(Seed),
}

/// An existing repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A git URL, or a local path relative to the plan file.
    pub url: String,
    /// The branch, tag or commit to start from; pinned when submitted. Default: the repository's
    /// own default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A directory that becomes a fresh repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The directory, relative to the plan file; the client commits it into a fresh repository
    /// under the state directory.
    pub seed: String,
}

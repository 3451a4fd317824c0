//! Facts a unit must show: checks in a tree its author cannot touch, rules inside the attempt, gates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Length;
use crate::ids::{CheckName, UnitId};

/// A fact about a delivery, measured by a command in a tree its author cannot touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name within the unit.
    pub name: CheckName,
    /// What it is evidence of. Default: none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The command, given to `/bin/sh -c` at the top of the tree; it must be able to fail.
    pub run: String,
    /// How long it may take. Default: `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Length>,
    /// Files put back as they are in the base before it runs, so that the author cannot weaken
    /// them: globs over paths from the top of the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// Whether the unit's gate stays closed without its pass. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Where it is measured. Default: `other_worker` when another capable worker is attached, else
    /// `other_tree`.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<Where>,
    /// The exit code that is a pass, 0 to 255. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub expect_exit: Option<u8>,
}

impl Check {
    /// Whether the unit's gate stays closed without its pass.
    pub fn required(&self) -> bool {
        self.required.unwrap_or(true)
    }

    /// The exit code that is a pass.
    pub fn expect_exit(&self) -> u8 {
        self.expect_exit.unwrap_or(0)
    }
}

/// What a check is evidence of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// It builds.
    Build,
    /// Its tests pass.
    Test,
    /// Types, format and lints are in order.
    Lint,
    /// It starts.
    Startup,
    /// It can be called.
    Invocation,
    /// It behaves when it runs.
    Runtime,
}

/// Where a check is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// On another worker than the author's; waits until there is one.
    OtherWorker,
    /// In another tree, on any worker.
    OtherTree,
}

/// A condition without which a unit is not done, shown to people when it is not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// What must be so, in a few words.
    pub description: String,
    /// The command that shows it, given to `/bin/sh -c`.
    pub check: String,
}

/// Which judgements must be there before dependants may start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Units of kind `review` that must have passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<UnitId>,
    /// Units of kind `verify` that must have passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verifies: Vec<UnitId>,
}

/// A mechanical rule inside the attempt; a failure continues the attempt, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// This path exists.
    FileExists(String),
    /// This file exists and is not empty.
    FileNotEmpty(String),
    /// A document has a section of this title.
    ContainsSection(Section),
    /// A document's front matter has a field.
    FrontmatterField(FrontmatterField),
    /// A document has all of these sections and fields.
    Artifact(ArtifactRule),
    /// This command exits 0; given to `/bin/sh -c`.
    Command(String),
    /// Whether the working tree must be clean.
    GitWorktreeClean(bool),
    /// Whether nothing outside `files` may be changed.
    ScopeCheck(bool),
}

/// A section of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The document.
    pub path: String,
    /// The section's title.
    pub title: String,
}

/// A field in a document's front matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontmatterField {
    /// The document.
    pub path: String,
    /// The field.
    pub field: String,
    /// The values it may have. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
}

/// A document with sections and fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRule {
    /// The document.
    pub path: String,
    /// Titles of its sections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// Fields of its front matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

//! What a unit hands over to others: named outputs, and inputs bound to them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Size;
use crate::ids::{InvalidId, PortName, UnitId};

/// A named output of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name: a letter, then up to 63 of a-z, 0-9, `.`, `_` and `-`.
    pub port: PortName,
    /// JSON Schema of its value; a value that fails it is an invalid delivery. Default: any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// How far it may travel. Default: `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// How large it may be. Default: `64MiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Size>,
}

/// How far a value may travel; a unit takes what is at most of its clearance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Anywhere.
    Public,
    /// Within the project.
    Internal,
    /// To units cleared for it.
    Sensitive,
    /// To units cleared for secrets.
    Secret,
}

/// An input of a unit, bound to another unit's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name in this unit.
    pub port: PortName,
    /// The output it is bound to, as `unit.port`.
    pub from: PortRef,
    /// How the value is handed over. Default: `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<InputDelivery>,
    /// How several values become one. Default: `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// A JSON Pointer to the part that is wanted. Default: the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// Whether the unit cannot start without it. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// How an input's value is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputDelivery {
    /// Inline where it fits, else by reference.
    Auto,
    /// As an entry in the manifest.
    Manifest,
    /// As its summary.
    Summary,
    /// In the prompt.
    Inline,
    /// As a file.
    Reference,
}

/// How several values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// A list, in the order of the plan.
    List,
    /// A map from unit to value.
    MapByUnit,
    /// One text after the other.
    ConcatText,
    /// The first.
    First,
    /// More than one is an error.
    Error,
}

/// A port of a unit, written `unit.port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRef {
    /// The unit.
    pub unit: UnitId,
    /// Its output.
    pub port: PortName,
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.unit, self.port)
    }
}

impl FromStr for PortRef {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (unit, port) = text.split_once('.').ok_or_else(|| InvalidId {
            text: text.to_owned(),
            kind: "port of a unit",
            expected: "`unit.port`",
        })?;
        Ok(Self { unit: UnitId::parse(unit)?, port: PortName::parse(port)? })
    }
}

impl TryFrom<String> for PortRef {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<PortRef> for String {
    fn from(port: PortRef) -> String {
        port.to_string()
    }
}

impl JsonSchema for PortRef {
    fn schema_name() -> Cow<'static, str> {
        "PortRef".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A port of a unit, written `unit.port`." })
    }
}

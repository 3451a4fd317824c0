//! Which agent does a unit: a bare name, or a name with what it is to be given.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The agent of a unit; written as its name alone where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Agent {
    /// The agent's name as workers offer it: `claude`, `codex`, `scripted` …
    pub name: String,
    /// How capable a model it should use. Default: the agent's own.
    pub tier: Option<Tier>,
    /// The model by the vendor's name; goes before `tier`.
    pub model: Option<String>,
    /// What the agent `scripted` does: a file, relative to the plan file.
    pub script: Option<String>,
}

/// How capable a model is wanted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Mechanical work and looking things up.
    Low,
    /// Implementation.
    Mid,
    /// Judgement.
    Top,
}

impl Agent {
    /// The agent of this name, with nothing else said.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), tier: None, model: None, script: None }
    }
}

/// An agent with what it is to be given.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename = "AgentDetails", deny_unknown_fields)]
struct Details {
    /// The agent's name as workers offer it: `claude`, `codex`, `scripted` …
    name: String,
    /// How capable a model it should use. Default: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    /// The model by the vendor's name; goes before `tier`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// What the agent `scripted` does: a file, relative to the plan file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Details(Details),
}

impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Name(name) => Self::named(name),
            Written::Details(Details { name, tier, model, script }) => {
                Self { name, tier, model, script }
            }
        })
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { name, tier, model, script } = self.clone();
        if tier.is_none() && model.is_none() && script.is_none() {
            serializer.serialize_str(&name)
        } else {
            Details { name, tier, model, script }.serialize(serializer)
        }
    }
}

impl JsonSchema for Agent {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let details = generator.subschema_for::<Details>();
        json_schema!({
            "description": "An agent's name, or its name with tier, model or script.",
            "anyOf": [ { "type": "string" }, details ]
        })
    }
}

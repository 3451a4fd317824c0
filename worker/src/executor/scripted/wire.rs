//! What the scripted agent and its adapter say to each other, one JSON object a line.
//!
//! Both are the same build, so there is no versioning. The words are those of `ExecEvent` and
//! `ExecCommand`, as a program of its own would say them.

use std::path::PathBuf;

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::time::DurationMs;
use serde::{Deserialize, Serialize};

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Say {
    Started { session: String },
    Activity,
    Text { text: String },
    ToolStart { id: String, name: String },
    ToolEnd { id: String, ok: bool },
    Permission { tool: String, allowed: bool },
    Usage { usage: Usage },
    Context { percent: u8 },
    Retry { class: FailureClass, wait_ms: DurationMs },
    RateLimit { wait_ms: Option<DurationMs> },
    Artifact { path: PathBuf },
    Ended { failure: Option<Failure>, summary: Option<String>, no_change: bool },
}

impl Say {
    /// What people are shown of it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Started { .. } => "started".to_owned(),
            Self::Activity => "working".to_owned(),
            Self::Text { text } => text.clone(),
            Self::ToolStart { name, .. } => format!("{name} …"),
            Self::ToolEnd { ok: true, .. } => "done".to_owned(),
            Self::ToolEnd { ok: false, .. } => "failed".to_owned(),
            Self::Permission { tool, allowed: true } => format!("{tool}: allowed"),
            Self::Permission { tool, allowed: false } => format!("{tool}: denied"),
            Self::Usage { .. } => "usage".to_owned(),
            Self::Context { percent } => format!("context {percent} %"),
            Self::Retry { class, .. } => format!("trying again after {class}"),
            Self::RateLimit { .. } => "asked to slow down".to_owned(),
            Self::Artifact { path } => format!("made {}", path.display()),
            Self::Ended { failure: None, .. } => "ended".to_owned(),
            Self::Ended { failure: Some(failure), .. } => format!("failed: {}", failure.message),
        }
    }
}

/// What the agent is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(super) enum Told {
    Begin(Box<Begin>),
    Prompt { text: String },
    Answer { id: String, text: String },
    Interrupt,
    Steer { text: String },
    Compact,
    Stop,
}

/// The first command: everything the agent is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    pub(super) heading: Heading,
    /// JSON in a text of its own: number keys do not survive inside a tagged object.
    pub(super) script: String,
    pub(super) prompt: String,
}

/// Which attempt this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Heading {
    pub(super) unit: String,
    pub(super) lane: String,
    pub(super) attempt: u32,
    pub(super) epoch: u64,
}

/// One value as the bytes of its line.
pub(super) fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("these types always have a JSON form");
    bytes.push(b'\n');
    bytes
}

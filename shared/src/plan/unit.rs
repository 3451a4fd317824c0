//! A schedulable node of the graph, as written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Agent, Check, Class, Exit, Fork, Gate, Input, Join, Length, Loop, Output, Question, Race,
    Retry, Rule,
};
use crate::ids::{TaskId, UnitId};

/// One unit of work: exactly one bounded objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Its name within the plan.
    pub id: UnitId,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What kind of work it is.
    pub kind: Kind,
    /// What is to be reached, bounded so that it can be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// Units that must be accepted and integrated before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<UnitId>,
    /// The unit whose delivery a `review` or `verify` unit reads; a subject, not a dependency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<UnitId>,
    /// The unit whose failure this one repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixes: Option<UnitId>,
    /// The failed, cancelled, rejected or unstarted unit of the same kind this one stands in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<UnitId>,
    /// Which files it may write: globs over paths from the top of the tree. Units whose files
    /// overlap never run at once. Default: everything, with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// What a worker must offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Requires>,
    /// Environment variables of the worker that are let through, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Secrets by name; their values are resolved on the worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What it takes from other units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// What it hands to other units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// The highest class of input it may read. Default: `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clearance: Option<Class>,
    /// Facts about its delivery, measured where its author cannot touch them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Mechanical rules inside the attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<Rule>,
    /// A condition without which it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Judgements that must be there before dependants may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Several candidates, of which one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
    /// The agent that does it. Default: `defaults.agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The command of a `command` unit, given to `/bin/sh -c` at the top of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A predicate: the unit is skipped unless this command exits 0; given to `/bin/sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Runs after the rest of the graph, depending on how that went. Default: part of the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_on: Option<RunOn>,
    /// Who accepts its delivery. Default: `judge` in mode supervised, `auto` in mode autonomous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<Accept>,
    /// What a failed required check leads to. Default: `hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_check_failure: Option<OnCheckFailure>,
    /// What an attempt does while its worker has lost the coordinator. Default: `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// Whether it may run beside other units. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// Rank within the run, -100 to 100. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i32>,
    /// When it is tried again by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long an attempt may take. Default: `defaults.timeout`, else `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Length>,
    /// How long an attempt may be without output. Default: `defaults.silence`, else `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Length>,
    /// Whether it acts on the world outside its tree. Default: `contained`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// The body of a `loop` unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#loop: Option<Loop>,
    /// The branches of a `fork` unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What a `join` unit brings together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// What a `question` unit asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Commands before and after each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
}

/// What kind of work a unit is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An agent changes a tree.
    Agent,
    /// A program changes a tree.
    Command,
    /// An agent makes a document; no tree.
    Write,
    /// An agent judges a delivery.
    Review,
    /// An agent measures a delivery.
    Verify,
    /// Waits for its rule.
    Gate,
    /// Asks a person.
    Question,
    /// Repeats a body.
    Loop,
    /// Becomes one sibling for each branch.
    Fork,
    /// Brings branches together.
    Join,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Command => "command",
            Self::Write => "write",
            Self::Review => "review",
            Self::Verify => "verify",
            Self::Gate => "gate",
            Self::Question => "question",
            Self::Loop => "loop",
            Self::Fork => "fork",
            Self::Join => "join",
        }
    }
}

/// What a worker must offer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// When a unit outside the graph runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOn {
    /// Whatever became of the graph.
    Always,
    /// If every unit was accepted or skipped.
    Success,
    /// If one failed.
    Failure,
    /// After every attempt.
    EveryAttempt,
}

/// Who accepts a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// A named person or agent.
    Judge,
    /// Policy, once every gate of the unit is open.
    Auto,
}

/// What a failed required check leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnCheckFailure {
    /// The unit stays delivered with its gate closed.
    Hold,
    /// The same attempt goes on with what the check said.
    Continue(Continue),
}

/// How often an attempt goes on after a failed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Continue {
    /// At most this often.
    #[schemars(range(min = 1, max = 20))]
    pub max: u32,
}

/// What an attempt does while its worker has lost the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// Goes on; the result is handed in later.
    #[default]
    Continue,
    /// Ends when its lease does.
    Stop,
}

/// Whether a unit acts on the world outside its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// No: it may be rerun.
    #[default]
    Contained,
    /// Yes: never rerun after it started, except by command.
    External,
}

/// Commands before and after each attempt; a failure is `hook_failure`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Before the agent starts; given to `/bin/sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// After it ended; given to `/bin/sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Unit {
    /// What an attempt does while its worker has lost the coordinator.
    pub fn on_disconnect(&self) -> OnDisconnect {
        self.on_disconnect.unwrap_or_default()
    }

    /// Whether it acts on the world outside its tree.
    pub fn effects(&self) -> Effects {
        self.effects.unwrap_or_default()
    }

    /// Rank within the run.
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or_default()
    }

    /// The labels a worker must offer.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.requires.as_ref().map(|requires| requires.labels.clone()).unwrap_or_default()
    }
}

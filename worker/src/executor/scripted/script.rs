//! What a script may say: the steps of the scripted agent.
//!
//! Only the words and their reading; `steps.rs` carries them out. An unknown word is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ganger_shared::failure::FailureClass;
use ganger_shared::plan::{Length, Size};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest script.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// The most steps of a script, those of all branches together.
const STEPS_MAX: usize = 10_000;
/// How deep branches may lie in branches.
const DEPTH_MAX: usize = 8;

/// Why a text is not a script.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// It is too long.
    #[error("read the script: it has {bytes} bytes, where {SCRIPT_BYTES_MAX} are the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is no list of known steps.
    #[error("read the script: {reason}")]
    Malformed {
        /// Where and why.
        reason: String,
    },
    /// It has too many steps.
    #[error(
        "read the script: it has more than {STEPS_MAX} steps or {DEPTH_MAX} levels of branches"
    )]
    TooManySteps,
}

/// A list of steps, done one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script(pub Vec<Step>);

impl Script {
    /// Reads the written form: YAML, or the same as JSON.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLong { bytes: text.len() });
        }
        let script: Self = serde_saphyr::from_str(text)
            .map_err(|error| ScriptError::Malformed { reason: error.to_string() })?;
        match count(&script.0, 0) {
            Some(steps) if steps <= STEPS_MAX => Ok(script),
            Some(_) | None => Err(ScriptError::TooManySteps),
        }
    }
}

fn count(steps: &[Step], depth: usize) -> Option<usize> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut all = steps.len();
    for step in steps {
        for branch in step.branches() {
            all += count(branch, depth + 1)?;
        }
    }
    Some(all)
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Says something; the last thing said is the summary.
    Say(String),
    /// Is visibly at work for so long.
    Work(Length),
    /// Writes a file whole, with the directories that lead to it.
    Write(Text),
    /// Adds to the end of a file.
    Append(Text),
    /// Deletes a file or a directory with all in it.
    Delete(PathBuf),
    /// Moves a file or directory.
    Move(Move),
    /// Runs a command by `/bin/sh -c`.
    Run(Run),
    /// Tells what was used since the last such step.
    Usage(Used),
    /// Tells how full the context is, in percent.
    Context(u8),
    /// Says that it tries something again.
    Retry(Retrying),
    /// Says that the provider asked to slow down.
    RateLimit(Length),
    /// Names a file worth keeping.
    Artifact(PathBuf),
    /// Does nothing and prints nothing for so long.
    Silent(Length),
    /// Never goes on, whoever asks: only SIGKILL ends it.
    Hang(True),
    /// Asks whether it may use a tool.
    Permission(Permission),
    /// Says that nothing has to change, and why.
    DeclareNoChange(String),
    /// Ends well at once.
    Finish(String),
    /// Ends with a failure it says itself.
    Fail(Failing),
    /// Ends without a word: an exit code, or the name of a signal.
    Crash(Crash),
    /// Prints one line of this length.
    HugeLine(Size),
    /// Prints bytes that are no events.
    Noise(Noise),
    /// Connects once and writes `unit attempt epoch`, so that starts can be counted.
    Connect(String),
    /// Steps for this number of attempt; without it, those of the next lower number.
    Attempt(BTreeMap<u32, Vec<Step>>),
    /// Steps for this unit.
    Unit(BTreeMap<String, Vec<Step>>),
    /// Steps for this lane.
    Lane(BTreeMap<String, Vec<Step>>),
}

impl Step {
    /// The lists of steps inside this one.
    pub(super) fn branches(&self) -> Vec<&Vec<Step>> {
        if let Self::Attempt(branches) = self {
            branches.values().collect()
        } else if let Self::Unit(branches) | Self::Lane(branches) = self {
            branches.values().collect()
        } else {
            Vec::new()
        }
    }
}

/// A path and what to write there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Where, relative to the tree.
    pub path: PathBuf,
    /// What.
    pub text: String,
}

/// From where to where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The old place.
    pub from: PathBuf,
    /// The new place.
    pub to: PathBuf,
}

/// A command, alone or with what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Run {
    /// The command; the agent fails if it does.
    Plain(String),
    /// The command with more.
    Detailed(RunDetails),
}

/// A command with what is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDetails {
    /// The command.
    pub command: String,
    /// Go on if it fails.
    #[serde(default)]
    pub may_fail: bool,
}

/// What was used since the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Tokens read from a cache.
    pub tokens_cached: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

/// A retry by the agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrying {
    /// Why.
    pub class: FailureClass,
    /// How long it waits; it really does.
    pub wait: Length,
}

/// A permission asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permission {
    /// The tool.
    pub tool: String,
    /// What the answer is.
    pub allowed: bool,
}

/// A failure the agent says itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failing {
    /// Its class.
    pub class: FailureClass,
    /// What happened.
    #[serde(default)]
    pub message: String,
}

/// An end without a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Crash {
    /// By this exit code.
    Code(u8),
    /// By this signal, such as `SIGKILL`.
    Signal(String),
}

/// Bytes that are no events; the same ones every time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// How many.
    pub bytes: Size,
    /// Whether they include what is not UTF-8.
    #[serde(default)]
    pub invalid_utf8: bool,
}

/// The word `true`, for a step that says nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;
    fn try_from(word: bool) -> Result<Self, &'static str> {
        if word { Ok(Self) } else { Err("only `true` can be written here; leave the step out") }
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]

    use super::*;

    const WHOLE: &str = r#"
- say: hello
- work: 200ms
- write: { path: a/b.txt, text: "x\n" }
- append: { path: a/b.txt, text: y }
- move: { from: a, to: b }
- delete: b
- run: "true"
- run: { command: "false", may_fail: true }
- usage: { tokens_in: 10, usd_micros: 5 }
- context: 80
- retry: { class: overloaded, wait: 10ms }
- rate_limit: 1s
- artifact: out/report.md
- silent: 5s
- permission: { tool: Bash, allowed: false }
- declare_no_change: nothing to do
- finish: done
- hang: true
- fail: { class: task_failed, message: no }
- crash: 3
- crash: SIGKILL
- huge_line: 64MiB
- noise: { bytes: 1KiB, invalid_utf8: true }
- connect: "127.0.0.1:1"
- attempt:
    1: [ { fail: { class: cli_crash } } ]
    2: [ { say: again } ]
- unit: { build: [ { say: build } ] }
- lane: { lane-a: [ { say: a } ] }
"#;

    #[test]
    fn every_step_is_read_and_survives_the_wire() {
        let script = Script::parse(WHOLE).unwrap();
        assert_eq!(script.0.len(), 27);
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }

    #[test]
    fn what_is_not_a_step_is_refused() {
        for text in [
            "- dance: yes",
            "- write: { path: a, text: b, mode: 7 }",
            "say: no list",
            "- hang: false",
            "- fail: { class: bad_luck }",
            "- work: long",
        ] {
            assert!(Script::parse(text).is_err(), "{text} was taken");
        }
        let many = "- say: x\n".repeat(STEPS_MAX + 1);
        assert!(matches!(Script::parse(&many), Err(ScriptError::TooManySteps)));
    }
}

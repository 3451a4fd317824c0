//! The deterministic agent that ships with the product: for demos, tests and dry runs, no network.
//!
//! It is a real program, `ganger __scripted`, started under the shim like any agent, and speaks JSON
//! lines: events on its standard output, commands on its standard input. Here is its adapter on the
//! worker's side; `script` is what a script may say, `wire` the two languages, `program` the agent
//! itself. How scripts are written stands in `docs/scripted.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::WorkId;
use ganger_shared::spec::{AgentTask, Assignment};

use super::{Conclusion, Executor, Heard, Program, Reply, file_failed};
use crate::attempts::port::{ExecCommand, ExecEvent, Room, Site};
use crate::isolation::{Access, Bind};
use crate::output::{Line, Stream};
use crate::process::Exit;

mod program;
mod script;
mod steps;
mod wire;

pub use program::main;
pub use script::{Failing, Noise, Run, SCRIPT_BYTES_MAX, Script, ScriptError, Step};

use wire::{Begin, Heading, Say, Told};

/// The hidden argument that makes a `ganger` process a scripted agent.
pub const SCRIPTED_ARGUMENT: &str = "__scripted";

/// Where `workspace::prepare` puts the script of an attempt, below its evidence.
pub const SCRIPT_FILE: &str = "script.yaml";

/// The worker's side of one scripted agent.
pub(super) struct Scripted {
    program: PathBuf,
    env: BTreeMap<String, String>,
    opening: Vec<u8>,
    denied: Vec<String>,
    usage: Usage,
    session: Option<String>,
    said: String,
    end: Option<End>,
}

/// What it said of its own end.
struct End {
    failure: Option<Failure>,
    summary: Option<String>,
    no_change: bool,
}

impl Scripted {
    /// The agent for this attempt; a script that is not one is refused before anything starts.
    pub(super) fn new(
        site: &Site,
        assignment: &Assignment,
        task: &AgentTask,
        (room, env): (&Room, BTreeMap<String, String>),
    ) -> Result<Self, Failure> {
        let wrong = |message: String| Failure::new(FailureClass::ConfigError, message);
        let path = room.evidence.join(SCRIPT_FILE);
        let text = match &task.script {
            None => return Err(wrong("a scripted agent needs a script: agent.script".to_owned())),
            Some(_) => fs::read_to_string(&path)
                .map_err(|error| file_failed("read the script at", &path, &error))?,
        };
        let script = Script::parse(&text).map_err(|error| wrong(format!("failed to {error}")))?;
        let heading = match &assignment.work {
            WorkId::Attempt(id) => Heading {
                unit: id.unit.to_string(),
                lane: id.lane.to_string(),
                attempt: id.n,
                epoch: assignment.epoch.0,
            },
            WorkId::Check(id) => {
                return Err(wrong(format!("{id} is a check, which no agent measures")));
            }
        };
        let script = serde_json::to_string(&script).expect("a script always has a JSON form");
        let begin = Begin { heading, script, prompt: prompt(task) };
        let program = fs::canonicalize(&site.config.shim)
            .map_err(|error| file_failed("find the program", &site.config.shim, &error))?;
        Ok(Self {
            program,
            env,
            opening: wire::line(&Told::Begin(Box::new(begin))),
            denied: Vec::new(),
            usage: Usage::default(),
            session: None,
            said: String::new(),
            end: None,
        })
    }

    fn take(&mut self, say: Say) -> Option<ExecEvent> {
        match say {
            Say::Started { session } => {
                self.session = Some(session.clone());
                let model = Some("scripted".to_owned());
                Some(ExecEvent::Started { session: Some(session), model })
            }
            Say::Activity => None,
            Say::Text { text } => {
                self.said.clone_from(&text);
                Some(ExecEvent::Text { text })
            }
            Say::ToolStart { id, name } => Some(ExecEvent::ToolStart { id, name }),
            Say::ToolEnd { id, ok } => Some(ExecEvent::ToolEnd { id, ok }),
            Say::Permission { tool, allowed } => {
                if !allowed {
                    self.denied.push(tool.clone());
                }
                Some(ExecEvent::Permission { tool, allowed })
            }
            Say::Usage { usage } => {
                self.usage = usage;
                Some(ExecEvent::Usage(usage))
            }
            Say::Context { percent } => Some(ExecEvent::Context { percent }),
            Say::Retry { class, wait_ms } => Some(ExecEvent::Retry { class, wait_ms }),
            Say::RateLimit { wait_ms } => Some(ExecEvent::RateLimit { wait_ms }),
            Say::Artifact { path } => Some(ExecEvent::Artifact { path }),
            Say::Ended { failure, summary, no_change } => {
                self.end = Some(End { failure, summary, no_change });
                None
            }
        }
    }
}

/// What an agent is told to do, in the words every agent gets (R204, R206).
fn prompt(task: &AgentTask) -> String {
    let mut prompt = format!("Goal: {}\n\nYour objective: {}\n", task.goal, task.objective);
    for rule in &task.invariants {
        prompt.push_str("\nKeep: ");
        prompt.push_str(rule);
    }
    prompt
}

impl Executor for Scripted {
    fn program(&self) -> Program {
        let program = self.program.display().to_string();
        Program {
            argv: vec![program, SCRIPTED_ARGUMENT.to_owned()],
            env: self.env.clone(),
            opening: Some(self.opening.clone()),
            binds: vec![Bind::at_its_place(&self.program, Access::ReadOnly)],
            greets: true,
        }
    }

    /// Any other line is noise that a program under it printed: kept in the file, worth nothing.
    fn heard(&mut self, line: &Line) -> Heard {
        if line.stream != Stream::Stdout {
            return Heard::default();
        }
        let plain = Heard { progress: true, ..Heard::default() };
        if line.cut.is_some() {
            return plain;
        }
        let Ok(say) = serde_json::from_str::<Say>(&line.text) else { return plain };
        let shown = Some(say.words());
        Heard { shown, events: self.take(say).into_iter().collect(), ..plain }
    }

    fn told(&mut self, command: ExecCommand) -> Reply {
        Reply::Say(wire::line(&match command {
            ExecCommand::Prompt { text } => Told::Prompt { text },
            ExecCommand::Answer { id, text } => Told::Answer { id, text },
            ExecCommand::Interrupt => Told::Interrupt,
            ExecCommand::Steer { text } => Told::Steer { text },
            ExecCommand::Compact => Told::Compact,
            ExecCommand::Stop => Told::Stop,
        }))
    }

    fn ended(&mut self, exit: Option<Exit>, tail: &str) -> Conclusion {
        let end = self.end.take();
        let said = |class, how: String| {
            let message = if tail.is_empty() { how } else { format!("{how}\n{tail}") };
            Some(Failure::new(class, message))
        };
        let failure = match (&end, exit) {
            (Some(End { failure: Some(failure), .. }), _) => Some(failure.clone()),
            (Some(End { failure: None, .. }), Some(Exit::Code(0))) => None,
            (_, Some(Exit::Code(code))) => said(
                FailureClass::CliCrash,
                format!("the agent exited with {code} without saying how it ended"),
            ),
            (_, Some(Exit::Signal(signal))) => said(
                FailureClass::ProcessTerminated,
                format!("the agent was ended by signal {signal}"),
            ),
            (_, None) => said(
                FailureClass::ProcessTerminated,
                "the agent's shim was ended before it could say how the agent did".to_owned(),
            ),
        };
        let no_change = end.as_ref().is_some_and(|end| end.no_change);
        let summary = end.and_then(|end| end.summary);
        Conclusion {
            failure,
            summary: summary.unwrap_or_else(|| std::mem::take(&mut self.said)),
            no_change,
            denied: std::mem::take(&mut self.denied),
            usage: self.usage,
            session: self.session.take(),
        }
    }
}

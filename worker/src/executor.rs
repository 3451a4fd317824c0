//! Drives what does the work of one attempt: a program, a scripted agent, a coding agent.
//!
//! An `Executor` knows the language of one kind of program: what to start, what its lines mean, how
//! to tell it something, what its end means. `drive.rs` does everything else the same for all of
//! them. Everything above sees only `ExecEvent` and `ExecCommand`. Deliberately not here: when an
//! attempt is stopped (the worker's core), and whether what it left is a success (`evidence`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::fleet::AgentFacts;
use ganger_shared::link::Started;
use ganger_shared::redact::Redactor;
use ganger_shared::spec::{Assignment, Body};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::attempts::port::{
    COMMANDS_WAITING_MAX, ExecCommand, ExecEnd, ExecEvent, Room, Running, Site,
};
use crate::config::Config;
use crate::isolation::{Bind, Hold};
use crate::output::Line;
use crate::process::{Exit, ProcessTree, Spawn, Stdin};

mod command;
mod drive;
pub mod environment;
pub mod scripted;
pub(crate) mod tail;
mod view;

/// The adapter a worker has without being told of any agent.
const SCRIPTED: &str = "scripted";

/// One kind of program: its language, and nothing of how it is run.
pub trait Executor: Send {
    /// What is started.
    fn program(&self) -> Program;

    /// What one line of its output says.
    fn heard(&mut self, line: &Line) -> Heard;

    /// How it is told something.
    fn told(&mut self, command: ExecCommand) -> Reply;

    /// What its end means; the tree is over and every line was heard.
    fn ended(&mut self, exit: Option<Exit>, tail: &str) -> Conclusion;
}

/// What an executor has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments; never a prompt.
    pub argv: Vec<String>,
    /// Variables it gets beside those of every attempt.
    pub env: BTreeMap<String, String>,
    /// What it is given to read first; `None` closes its input.
    pub opening: Option<Vec<u8>>,
    /// Paths it must see beside its own directories.
    pub binds: Vec<Bind>,
    /// It says itself when it is there; a plain program is there at once.
    pub greets: bool,
}

/// What a line says.
#[derive(Debug, Default)]
pub struct Heard {
    /// It shows that work goes on.
    pub progress: bool,
    /// What people are shown of it, where that is not the line itself.
    pub shown: Option<String>,
    /// What it tells.
    pub events: Vec<ExecEvent>,
}

/// How a program is told something.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// These bytes on its input.
    Say(Vec<u8>),
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// It has no ear for this.
    Nothing,
}

/// What the end of a program means.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// `None`: protocol and program ended well.
    pub failure: Option<Failure>,
    /// What it did, in its own words.
    pub summary: String,
    /// It declared that nothing had to change.
    pub no_change: bool,
    /// Permissions that were denied to it.
    pub denied: Vec<String>,
    /// What it used.
    pub usage: ganger_shared::delivery::Usage,
    /// Its session.
    pub session: Option<String>,
}

impl Conclusion {
    /// The end of a program that says nothing of itself.
    pub fn silent(failure: Option<Failure>) -> Self {
        Self { failure, ..Self::default() }
    }

    /// The same in words that may be logged and shown.
    fn without_secrets(self, redactor: &Redactor) -> Self {
        let clean = |failure: Failure| Failure::new(failure.class, redactor.text(&failure.message));
        Self {
            failure: self.failure.map(clean),
            summary: redactor.text(&self.summary),
            denied: self.denied.iter().map(|tool| redactor.text(tool)).collect(),
            ..self
        }
    }
}

/// Starts what does the work of `assignment` in `room`; events come until `ExecEvent::Ended`.
pub async fn start(
    site: &Site,
    assignment: &Assignment,
    room: &Room,
    events: mpsc::Sender<ExecEvent>,
) -> Result<Running, Failure> {
    let executor = executor_for(site, assignment, room)?;
    let spawn = spawn(site, assignment, room, &executor.program())?;
    let hold = spawn.containment.hold.clone();
    let isolated = spawn.containment.isolated();
    let tree = ProcessTree::spawn(&site.config.shim, spawn).await;
    let mut tree = tree.map_err(|error| failed(FailureClass::PreflightFailed, &error))?;
    let started = Started {
        pid: tree.started().program.pid.unsigned_abs(),
        isolated,
        containment: hold_name(&hold).to_owned(),
    };
    let (commands, orders) = mpsc::channel(COMMANDS_WAITING_MAX);
    let redactor = environment::redactor(site, assignment);
    let begun = drive::begin(&mut tree, &room.evidence).await;
    let streams = begun.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    let handle = tree.handle();
    let course = drive::Course::new(executor, tree, streams, redactor);
    let driver = tokio::spawn(course.follow(orders, events));
    Ok(Running { started, commands, tree: Some(handle), driver: AbortOnDropHandle::new(driver) })
}

/// The agents this worker can run, with what is known of them without starting one.
pub fn agents(config: &Config) -> Vec<AgentFacts> {
    let version = || Some(env!("CARGO_PKG_VERSION").to_owned());
    let ours =
        AgentFacts { name: SCRIPTED.to_owned(), adapter: SCRIPTED.to_owned(), version: version() };
    let mut agents: Vec<AgentFacts> = config
        .agents
        .iter()
        .filter(|agent| agent.adapter == SCRIPTED)
        .map(|agent| AgentFacts {
            name: agent.name.clone(),
            adapter: agent.adapter.clone(),
            version: version(),
        })
        .collect();
    if !agents.iter().any(|agent| agent.name == SCRIPTED) {
        agents.push(ours);
    }
    agents.sort();
    agents
}

fn executor_for(
    site: &Site,
    assignment: &Assignment,
    room: &Room,
) -> Result<Box<dyn Executor>, Failure> {
    match &assignment.body {
        Body::Command { run, .. } => Ok(Box::new(command::Command::unit(run))),
        Body::Check(task) => Ok(Box::new(command::Command::check(&task.run))),
        Body::Agent(task) => {
            let configured = site.config.agents.iter().find(|agent| agent.name == task.agent);
            let adapter = configured.map_or(task.agent.as_str(), |agent| agent.adapter.as_str());
            if adapter == SCRIPTED {
                let env = configured.map(|agent| agent.env.clone()).unwrap_or_default();
                let agent = scripted::Scripted::new(site, assignment, task, (room, env))?;
                return Ok(Box::new(agent));
            }
            Err(Failure::new(
                FailureClass::LaneUnavailable,
                format!("this worker does not run the agent {} (adapter {adapter})", task.agent),
            ))
        }
    }
}

fn spawn(
    site: &Site,
    assignment: &Assignment,
    room: &Room,
    program: &Program,
) -> Result<Spawn, Failure> {
    let mut env = environment::of(assignment, room)?;
    env.extend(program.env.clone());
    let stdin = if program.opening.is_some() { Stdin::Pipe } else { Stdin::Null };
    fs::create_dir_all(site.records())
        .map_err(|error| file_failed("prepare", &site.records(), &error))?;
    Ok(Spawn {
        attempt: format!("{}/{}", assignment.run, assignment.work),
        argv: program.argv.clone(),
        cwd: room.tree.clone(),
        containment: view::containment(site, assignment, room, &program.binds)?,
        env,
        stdin,
        records: site.records(),
    })
}

/// The word for what holds a tree of processes together.
fn hold_name(hold: &Hold) -> &'static str {
    match hold {
        Hold::PidNamespace { .. } => "pid_namespace",
        Hold::Cgroup { .. } => "cgroup",
        Hold::Descendants => "descendants",
    }
}

/// A failure with the whole chain of its reasons.
pub(crate) fn failed(class: FailureClass, error: &dyn std::error::Error) -> Failure {
    let mut message = format!("failed to {error}");
    let mut source = error.source();
    while let Some(reason) = source {
        message.push_str(": ");
        message.push_str(&reason.to_string());
        source = reason.source();
    }
    Failure::new(class, message)
}

pub(crate) fn file_failed(deed: &str, path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("failed to {deed} {}: {error}", path.display());
    Failure::new(FailureClass::WorkspaceFailed, message)
}

/// How a driven program ended, once its conclusion is drawn.
fn end(conclusion: Conclusion, rest: ExecEnd) -> ExecEnd {
    let Conclusion { failure, summary, no_change, denied, usage, session } = conclusion;
    ExecEnd { failure, summary, no_change, denied, usage, session, ..rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_offers_the_scripted_agent_and_only_what_it_can_run() {
        let mut config = Config::new("http://127.0.0.1:1", "token".into(), "data".into());
        let names = |config: &Config| {
            agents(config).into_iter().map(|agent| agent.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&config), ["scripted"]);
        for (name, adapter) in [("demo", "scripted"), ("other", "unheard-of")] {
            config.agents.push(crate::config::AgentConfig {
                name: name.to_owned(),
                adapter: adapter.to_owned(),
                program: vec![],
                env: BTreeMap::new(),
            });
        }
        assert_eq!(names(&config), ["demo", "scripted"]);
    }
}

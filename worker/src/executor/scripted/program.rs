//! The scripted agent itself: the body of the hidden subcommand `ganger __scripted`.
//!
//! It runs inside an attempt's containment and knows nothing of the worker but its three streams.
//! What each step does is in `steps.rs`.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};

use super::script::{Script, Step};
use super::steps::{self, Done};
use super::wire::{Heading, Say, Told, line};

/// The exit code of an agent that was interrupted, as a shell shows it.
const INTERRUPTED: u8 = 130;

/// The body of the hidden subcommand: does what the script on its standard input says.
pub fn main() -> ExitCode {
    let mut input = io::stdin().lock();
    let (heading, script) = match begin(&mut input) {
        Ok(begun) => begun,
        Err(error) => {
            eprintln!("ganger scripted agent: failed to read what to do: {error}");
            return ExitCode::FAILURE;
        }
    };
    drop(input);
    if hangs(&script.0) {
        steps::ignore_requests();
    }
    let (send, commands) = mpsc::channel();
    // It ends with the process: a blocked read cannot be called off.
    thread::spawn(move || listen(&send));
    let mut agent = Agent::new(heading, commands);
    match agent.work(&script) {
        Ok(code) => code,
        // Nobody listens: the worker is gone, and so is the reason to go on.
        Err(_) => ExitCode::FAILURE,
    }
}

fn begin(input: &mut impl BufRead) -> io::Result<(Heading, Script)> {
    let mut first = String::new();
    input.read_line(&mut first)?;
    match serde_json::from_str(&first)? {
        Told::Begin(begin) => Ok((begin.heading, serde_json::from_str(&begin.script)?)),
        other @ (Told::Prompt { .. }
        | Told::Answer { .. }
        | Told::Interrupt
        | Told::Steer { .. }
        | Told::Compact
        | Told::Stop) => Err(io::Error::other(format!("the first command was {other:?}"))),
    }
}

fn listen(send: &Sender<Told>) {
    for line in io::stdin().lines() {
        let Ok(line) = line else { return };
        let Ok(told) = serde_json::from_str(&line) else { continue };
        if send.send(told).is_err() {
            return;
        }
    }
}

fn hangs(steps: &[Step]) -> bool {
    steps.iter().any(|step| {
        matches!(step, Step::Hang(_)) || step.branches().into_iter().any(|steps| hangs(steps))
    })
}

/// Says one thing.
pub(super) fn say(say: &Say) -> io::Result<()> {
    print(&line(say))
}

/// Prints bytes as they are.
pub(super) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// One agent at work.
pub(super) struct Agent {
    pub(super) heading: Heading,
    pub(super) usage: Usage,
    pub(super) no_change: Option<String>,
    pub(super) tools: u32,
    commands: Receiver<Told>,
    deaf: bool,
}

impl Agent {
    fn new(heading: Heading, commands: Receiver<Told>) -> Self {
        Self { heading, usage: Usage::default(), no_change: None, tools: 0, commands, deaf: false }
    }

    fn work(&mut self, script: &Script) -> io::Result<ExitCode> {
        let heading = &self.heading;
        let session = format!("{}-{}-{}", heading.unit, heading.lane, heading.attempt);
        say(&Say::Started { session })?;
        let done = steps::run(self, &script.0)?;
        self.end(done)
    }

    fn end(&mut self, done: Done) -> io::Result<ExitCode> {
        let no_change = self.no_change.is_some();
        let (failure, summary, code) = match done {
            Done::All => (None, self.no_change.take(), 0),
            Done::Finished(summary) => (None, Some(summary), 0),
            Done::Failed(failure) => (Some(failure), None, 1),
            Done::Interrupted => {
                let failure = Failure::new(FailureClass::Cancelled, "the agent was interrupted");
                (Some(failure), None, INTERRUPTED)
            }
            Done::Crashed(code) => return Ok(ExitCode::from(code)),
        };
        say(&Say::Ended { failure, summary, no_change })?;
        Ok(ExitCode::from(code))
    }

    /// Waits for so long, hearing what it is told; true if it was interrupted.
    pub(super) fn wait(&mut self, length: Duration) -> io::Result<bool> {
        let until = Instant::now() + length;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let told = if self.deaf {
                // Nobody can tell it anything any more; it still takes its time.
                thread::park_timeout(left);
                Err(RecvTimeoutError::Timeout)
            } else {
                self.commands.recv_timeout(left)
            };
            match told {
                Ok(told) => {
                    if hear(told)? {
                        return Ok(true);
                    }
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.deaf = true,
            }
        }
    }
}

/// True if it is to end now. A script is one turn, so `stop` lets it run to its end.
fn hear(told: Told) -> io::Result<bool> {
    match told {
        Told::Interrupt => return Ok(true),
        Told::Steer { text } => say(&Say::Text { text: format!("steered: {text}") })?,
        Told::Prompt { text } => say(&Say::Text { text: format!("prompted: {text}") })?,
        Told::Answer { id, text } => {
            say(&Say::Text { text: format!("answered {id}: {text}") })?;
        }
        Told::Compact => say(&Say::Context { percent: 10 })?,
        Told::Stop | Told::Begin(_) => {}
    }
    Ok(false)
}

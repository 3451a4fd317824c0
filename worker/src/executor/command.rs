//! A plain program: a command unit or a check, given to `/bin/sh -c`.
//!
//! It has no language: whatever it prints shows that work goes on, and only its exit code counts.
//! What it prints is never read for meaning (P090).

use std::collections::BTreeMap;

use ganger_shared::failure::{Failure, FailureClass};

use super::{Conclusion, Executor, Heard, Program, Reply};
use crate::attempts::port::ExecCommand;
use crate::output::Line;
use crate::process::Exit;

/// A program of a plan.
#[derive(Debug)]
pub(super) struct Command {
    run: String,
    /// A check's exit code is a measurement, whatever it is.
    measured: bool,
}

impl Command {
    pub(super) fn unit(run: &str) -> Self {
        Self { run: run.to_owned(), measured: false }
    }

    pub(super) fn check(run: &str) -> Self {
        Self { run: run.to_owned(), measured: true }
    }
}

impl Executor for Command {
    fn program(&self) -> Program {
        Program {
            argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), self.run.clone()],
            env: BTreeMap::new(),
            opening: None,
            binds: Vec::new(),
            greets: false,
        }
    }

    /// Compilers and test programs write their progress to either output.
    fn heard(&mut self, _line: &Line) -> Heard {
        Heard { progress: true, ..Heard::default() }
    }

    fn told(&mut self, command: ExecCommand) -> Reply {
        match command {
            ExecCommand::Interrupt => Reply::Interrupt,
            ExecCommand::Stop => Reply::Terminate,
            ExecCommand::Prompt { .. }
            | ExecCommand::Answer { .. }
            | ExecCommand::Steer { .. }
            | ExecCommand::Compact => Reply::Nothing,
        }
    }

    fn ended(&mut self, exit: Option<Exit>, tail: &str) -> Conclusion {
        let failed = |class, how: String| {
            let message = if tail.is_empty() { how } else { format!("{how}\n{tail}") };
            Some(Failure::new(class, message))
        };
        Conclusion::silent(match exit {
            None => failed(
                FailureClass::ProcessTerminated,
                "the program's shim was ended before it could say how the program did".to_owned(),
            ),
            Some(_) if self.measured => None,
            Some(Exit::Code(0)) => None,
            Some(Exit::Code(code)) => {
                failed(FailureClass::CommandFailed, format!("the command exited with {code}"))
            }
            Some(Exit::Signal(signal)) => failed(
                FailureClass::ProcessTerminated,
                format!("the command was ended by signal {signal}"),
            ),
        })
    }
}

//! The `ganger` program: starts coordinators and workers, and is a client of the public API.
//!
//! Only the way in is here: the two hidden programs before anything else exists, then the words of
//! the command line, then one command. What a command does is in `commands`, one file each.

use std::process::ExitCode;

use clap::Parser as _;

mod args;
mod commands;
mod context;
mod error;
mod exit;
mod follow;
mod hand_over;
mod output;
mod redial;
mod report;
mod server;
mod session;
mod settings;
mod signals;
mod state_dir;
mod submission;
mod telemetry;
mod transfer;
mod up;

use context::Context;
use error::Error;
use exit::Exit;

/// How long a task of the runtime that cannot be stopped may hold the process up.
const LINGER: std::time::Duration = std::time::Duration::from_millis(200);

fn main() -> ExitCode {
    // Both begin before there is a thread, a runtime or telemetry: the shim enters namespaces, which
    // a process of several threads may not, and neither may inherit what those open.
    match std::env::args_os().nth(1).as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(ganger_worker::process::SHIM_ARGUMENT) => return ganger_worker::shim::main(),
        Some(ganger_worker::executor::scripted::SCRIPTED_ARGUMENT) => {
            return ganger_worker::executor::scripted::main();
        }
        Some(_) | None => {}
    }
    let cli = args::Cli::parse();
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::complain(&error);
            error.exit().into()
        }
    }
}

fn run(cli: args::Cli) -> Result<Exit, Error> {
    let context = Context::new(&cli.common)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    let result = runtime.block_on(commands::run(cli.command, context));
    runtime.shutdown_timeout(LINGER);
    match result {
        // Whoever read us has had enough: nothing went wrong, and nobody is there to be told.
        Err(Error::ClosedPipe) => Ok(Exit::Ok),
        other => other,
    }
}

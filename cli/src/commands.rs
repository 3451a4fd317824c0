//! The commands, one file each: their words, what they ask, and what they answer.

use crate::args::Command;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub mod cancel;
pub mod coordinator;
pub mod deliver;
pub mod diff;
pub mod explain;
pub mod get;
pub mod journal;
pub mod logs;
pub mod pause;
pub mod plan;
pub mod resume;
pub mod run;
pub mod stop;
pub mod submit;
pub mod token;
pub mod up;
pub mod wait;
pub mod watch;
pub mod worker;
pub mod workers;

/// Carries out one command.
pub async fn run(command: Command, context: Context) -> Result<Exit, Error> {
    match command {
        Command::Up(args) => up::run(args, &context).await,
        Command::Coordinator(args) => coordinator::run(args, &context).await,
        Command::Worker(args) => worker::run(args, &context).await,
        Command::Run(args) => run::run(args, &context).await,
        Command::Submit(args) => submit::run(args, &context).await,
        Command::Plan(command) => plan::run(command, &context).await,
        Command::Get(command) => get::run(command, &context).await,
        Command::Explain(args) => explain::run(args, &context).await,
        Command::Watch(args) => watch::run(args, &context).await,
        Command::Wait(args) => wait::run(args, &context).await,
        Command::Logs(args) => logs::run(args, &context).await,
        Command::Diff(args) => diff::run(args, &context).await,
        Command::Cancel(args) => cancel::run(args, &context).await,
        Command::Stop(args) => stop::run(args, &context).await,
        Command::Pause(args) => pause::run(args, &context).await,
        Command::Resume(args) => resume::run(args, &context).await,
        Command::Deliver(args) => deliver::run(args, &context).await,
        Command::Journal(command) => journal::run(command, &context).await,
        Command::Token(command) => token::run(command, &context).await,
        Command::Workers(command) => workers::run(command, &context).await,
    }
}

/// Answers a call that changed something: the sequence it led to, and whether it was a repeat.
fn done(context: &Context, what: &str, sequence: u64, replayed: bool) -> Result<Exit, Error> {
    let answer = serde_json::json!({ "sequence": sequence, "replayed": replayed });
    let before = if replayed { " (before, by this key)" } else { "" };
    context.out.one(&answer, |_| format!("{what}{before}"))?;
    Ok(Exit::Ok)
}

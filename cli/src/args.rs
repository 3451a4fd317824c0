//! The words of the command line: the ones every command has, and the list of commands.
//!
//! What a single command takes stands in that command's file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use ganger_shared::plan::{Length, Size};

use crate::commands;
use crate::output::Format;

const EXAMPLES: &str = "Examples:
  ganger run plan.yaml                     submit a plan and follow it; starts what is needed
  ganger up                                a coordinator and two workers, until Ctrl-C
  ganger submit plan.yaml -o json          only submit; prints {\"run_id\"}
  ganger get run r-abc -o json             everything known of a run; a unique beginning of its id will do
  ganger explain r-abc build               why a unit does not run

Exit codes: 0 ok · 1 failed · 2 usage · 3 refused · 4 not found · 5 needs a person · 6 budget limited ·
7 unreachable · 130 interrupted (a followed run goes on)

Configuration: $XDG_CONFIG_HOME/ganger/config.yaml, then the environment, then flags.
Log lines: GANGER_LOG filters them, GANGER_LOG_FORMAT=json makes them JSON. NO_COLOR is respected.";

/// Runs fleets of agents over many machines and answers for the result.
#[derive(Debug, Parser)]
#[command(name = "ganger", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    /// What every command has.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command has.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Coordinator to speak to [default: the one in the state directory, else one of our own].
    #[arg(long, global = true, value_name = "URL", env = "GANGER_SERVER", hide_env_values = true)]
    pub server: Option<String>,
    /// File whose first line is the token [default: the state directory's].
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "GANGER_TOKEN_FILE",
        hide_env_values = true
    )]
    pub token_file: Option<PathBuf>,
    /// How answers look [default: table].
    #[arg(
        short = 'o',
        long = "output",
        global = true,
        value_name = "FORMAT",
        env = "GANGER_OUTPUT",
        hide_env_values = true
    )]
    pub output: Option<Format>,
    /// Configuration file.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "GANGER_CONFIG",
        hide_env_values = true,
        help = "Configuration file [default: $XDG_CONFIG_HOME/ganger/config.yaml]"
    )]
    pub config: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a coordinator and workers here, until Ctrl-C.
    Up(commands::up::Args),
    /// Run a coordinator.
    Coordinator(commands::coordinator::Args),
    /// Run a worker.
    Worker(commands::worker::Args),
    /// Submit a plan and follow its run; without a server, starts one and two workers of its own.
    Run(commands::run::Args),
    /// Submit a plan and print the run's id.
    Submit(commands::submit::Args),
    /// Look at plans without running them.
    #[command(subcommand)]
    Plan(commands::plan::Command),
    /// Show runs, units, attempts and workers.
    #[command(subcommand)]
    Get(commands::get::Command),
    /// Say why units do not run.
    Explain(commands::explain::Args),
    /// Follow a run's events until it comes to rest.
    Watch(commands::watch::Args),
    /// Wait for a run; a wait that expires is no error.
    Wait(commands::wait::Args),
    /// Print what an attempt or a check printed.
    Logs(commands::logs::Args),
    /// Print what a unit changed, as a patch.
    Diff(commands::diff::Args),
    /// Cancel a unit and what depends on it.
    Cancel(commands::cancel::Args),
    /// Stop a run: everything ends and the run is aborted.
    Stop(commands::stop::Args),
    /// Start nothing new of a run; what runs, runs on.
    Pause(commands::pause::Args),
    /// Go on after a pause.
    Resume(commands::resume::Args),
    /// Bring a run's branch into a repository here.
    Deliver(commands::deliver::Args),
    /// Prove and export the journal.
    #[command(subcommand)]
    Journal(commands::journal::Command),
    /// Issue, list and revoke tokens.
    #[command(subcommand)]
    Token(commands::token::Command),
    /// Take workers out of use and back.
    #[command(subcommand)]
    Workers(commands::workers::Command),
}

/// The words of a call that changes something.
#[derive(Debug, Clone, Args)]
pub struct Mutation {
    /// Refuse unless the last event that touched it has this sequence.
    #[arg(long, value_name = "SEQ")]
    pub expect: Option<u64>,
    /// Name of this call: a repeat with the same key is answered, not carried out again.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

impl Mutation {
    /// The key that was given, or a new one.
    pub fn key(&self) -> String {
        self.key.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
    }
}

/// A coordinator's times and sizes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// How often a worker says that it lives [default: 5s].
    #[arg(long, value_name = "TIME", env = "GANGER_BEAT", hide_env_values = true, value_parser = Length::parse)]
    pub beat: Option<Length>,
    /// How long a lease outlives the last beat [default: 30s].
    #[arg(long, value_name = "TIME", env = "GANGER_LEASE", hide_env_values = true, value_parser = Length::parse)]
    pub lease: Option<Length>,
    /// How long an offered slot waits to be taken [default: 2s].
    #[arg(long, value_name = "TIME", env = "GANGER_OFFER", hide_env_values = true, value_parser = Length::parse)]
    pub offer: Option<Length>,
    /// How long each rung of the stop ladder waits [default: 10s].
    #[arg(long, value_name = "TIME", env = "GANGER_GRACE", hide_env_values = true, value_parser = Length::parse)]
    pub grace: Option<Length>,
    /// How long a tree may take to be prepared [default: 10m].
    #[arg(long, value_name = "TIME", env = "GANGER_PREPARE", hide_env_values = true, value_parser = Length::parse)]
    pub prepare: Option<Length>,
    /// Largest plan [default: 4MiB, at most 64MiB].
    #[arg(long, value_name = "SIZE", env = "GANGER_PLAN_SIZE", hide_env_values = true, value_parser = Size::parse)]
    pub plan_size: Option<Size>,
    /// Units a plan may ask for [default: 512].
    #[arg(long, value_name = "N", env = "GANGER_UNITS", hide_env_values = true)]
    pub units: Option<u32>,
    /// Largest artifact: patch, bundle or output [default: 1GiB].
    #[arg(long, value_name = "SIZE", env = "GANGER_ARTIFACT_SIZE", hide_env_values = true, value_parser = Size::parse)]
    pub artifact_size: Option<Size>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_may_stand_after_the_command() {
        let cli = Cli::try_parse_from(["ganger", "get", "runs", "-o", "json", "--server", "x:1"]);
        let common = cli.unwrap().common;
        assert_eq!((common.output, common.server.as_deref()), (Some(Format::Json), Some("x:1")));
    }

    #[test]
    fn every_option_of_a_service_names_its_variable() {
        for name in ["coordinator", "worker", "up"] {
            let mut command = Cli::command();
            let command = command.find_subcommand_mut(name).unwrap();
            let nameless: Vec<String> = command
                .get_arguments()
                .filter(|arg| arg.get_env().is_none() && !arg.is_hide_set())
                .map(|arg| arg.get_id().to_string())
                // A loss is accepted by hand, each time.
                .filter(|id| !["help", "version", "accept_loss"].contains(&id.as_str()))
                .collect();
            assert_eq!(nameless, Vec::<String>::new(), "{name}");
        }
    }
}

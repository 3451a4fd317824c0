//! `ganger worker`: a worker, until it is asked to end.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use ganger_worker::config::{AgentConfig, Config};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::server::whole_address;
use crate::settings::Settings;
use crate::{signals, telemetry};

/// The agent that ships with the product.
const SCRIPTED: &str = "scripted";

/// The words of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "The coordinator is named by --server, the token by --token-file.")]
pub struct Args {
    /// The name people see [default: the host's].
    #[arg(long, value_name = "NAME", env = "GANGER_WORKER_NAME", hide_env_values = true)]
    pub name: Option<String>,
    /// Attempts it runs at once; one check slot is beside them [default: 1].
    #[arg(long, value_name = "K", env = "GANGER_SLOTS", hide_env_values = true)]
    pub slots: Option<u32>,
    /// Its directory: identity, outbox, mirrors, attempts [default: workers/NAME in the state directory].
    #[arg(long, value_name = "DIR", env = "GANGER_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    /// What it offers, matched against a unit's requires.labels; may be given often.
    #[arg(
        long = "label",
        value_name = "KEY=VALUE",
        env = "GANGER_LABELS",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = label
    )]
    pub labels: Vec<(String, String)>,
    /// Leave when standard input says so, and die when it ends.
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

/// A label as it is written.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("`{text}` is not KEY=VALUE")),
    }
}

/// Works until SIGTERM or Ctrl-C.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let telemetry = telemetry::service("ganger-worker")?;
    let result = work(args, context).await;
    telemetry::end(telemetry).await;
    result
}

async fn work(args: Args, context: &Context) -> Result<Exit, Error> {
    let asked = signals::ending()?;
    if args.with_parent {
        leave_with_parent(asked.clone());
    }
    let config = config(args, &context.settings)?;
    ganger_worker::run(config, async move { asked.cancelled().await }).await?;
    Ok(Exit::Ok)
}

/// Our parent holds the other end of standard input: a word is the request to leave, and its end is
/// the parent's end, and with it the coordinator's. Then there is nobody to report to, and going on
/// would only hold the directory against the next start.
fn leave_with_parent(asked: CancellationToken) {
    // A thread, because a blocked read of the runtime's would keep the process from ending.
    let waiting = std::thread::Builder::new().name("ganger-parent".into()).spawn(move || {
        let mut word = [0; 64];
        while matches!(std::io::stdin().read(&mut word), Ok(1..)) {
            asked.cancel();
        }
        std::process::exit(i32::from(Exit::Failed.code()));
    });
    if let Err(error) = waiting {
        tracing::warn!(%error, "this worker will not notice the end of its parent");
    }
}

fn config(args: Args, settings: &Settings) -> Result<Config, Error> {
    let file = &settings.file.worker;
    let server =
        settings.server.clone().or_else(|| settings.state.endpoint()).ok_or_else(|| {
            Error::Usage(
            "no coordinator: pass --server URL or set GANGER_SERVER; none has said its address in \
             the state directory either"
                .to_owned(),
        )
        })?;
    let name = args.name.or_else(|| file.name.clone()).unwrap_or_else(host);
    let token_file = settings.token_file.clone().unwrap_or_else(|| settings.state.worker_token());
    let data =
        args.data.or_else(|| file.data.clone()).unwrap_or_else(|| settings.state.worker(&name));
    let mut labels: BTreeMap<String, String> = file.labels.clone();
    labels.extend(args.labels);
    let config = Config::new(whole_address(&server)?, token_file, data);
    let slots = args.slots.or(file.slots).unwrap_or(config.slots);
    Ok(Config { name, labels, slots, agents: agents(&file.agents), ..config })
}

/// The agents of the file, and the one that needs nothing.
fn agents(configured: &[AgentConfig]) -> Vec<AgentConfig> {
    let mut agents = configured.to_vec();
    if !agents.iter().any(|agent| agent.name == SCRIPTED) {
        agents.push(AgentConfig {
            name: SCRIPTED.to_owned(),
            adapter: SCRIPTED.to_owned(),
            program: Vec::new(),
            env: BTreeMap::new(),
        });
    }
    agents
}

fn host() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "worker".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command, Common};
    use crate::settings::file::ConfigFile;

    fn told(words: &[&str]) -> Result<Config, Error> {
        let cli = Cli::try_parse_from([&["ganger", "worker"], words].concat()).unwrap();
        let Command::Worker(args) = cli.command else { panic!("another command") };
        let env = |name: &str| (name == "HOME").then(|| "/nobody".into());
        let common = Common { server: cli.common.server.clone(), ..Common::default() };
        let mut settings = Settings::load(&common, env).unwrap();
        settings.file =
            ConfigFile::parse("worker:\n  slots: 3\n  labels: { os: linux, gpu: none }\n").unwrap();
        config(args, &settings)
    }

    #[test]
    fn a_worker_is_told_by_flags_over_the_file() {
        let words = ["--server", "127.0.0.1:7", "--name", "one", "--label", "gpu=h100"];
        let config = told(&words).unwrap();
        assert_eq!((config.server.as_str(), config.slots), ("http://127.0.0.1:7", 3));
        let labels = BTreeMap::from([("os", "linux"), ("gpu", "h100")]);
        let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(config.labels, labels.collect());
        assert_eq!(config.data_dir, PathBuf::from("/nobody/.local/state/ganger/workers/one"));
        assert_eq!(config.agents[0].name, SCRIPTED);
    }

    #[test]
    fn a_worker_without_a_coordinator_is_a_wrong_command_line() {
        assert_eq!(told(&["--name", "one"]).unwrap_err().exit(), Exit::Usage);
    }
}

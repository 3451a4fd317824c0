//! `ganger coordinator`: a coordinator on a directory, until it is asked to end.

use std::net::SocketAddr;
use std::path::PathBuf;

use ganger_coordinator::Config;
use ganger_shared::limits::Limits;

use crate::args::LimitArgs;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::settings::Settings;
use crate::settings::file::LimitsFile;
use crate::up::UpError;
use crate::{signals, telemetry};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7700].
    #[arg(long, value_name = "ADDR", env = "GANGER_LISTEN", hide_env_values = true)]
    pub listen: Option<SocketAddr>,
    /// Its directory: journal, artifacts, mirrors, tokens [default: the state directory].
    #[arg(long, value_name = "DIR", env = "GANGER_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    /// Allow unencrypted connections on an address that is not loopback.
    #[arg(long, env = "GANGER_PLAINTEXT", hide_env_values = true)]
    pub plaintext: bool,
    /// Serve although workers have seen more than the journal holds; said once, by hand.
    #[arg(long)]
    pub accept_loss: bool,
    /// Times and sizes.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Where it listens unless it is told.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7700);

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let telemetry = telemetry::service("ganger-coordinator")?;
    let result = serve(args, context, &telemetry).await;
    telemetry::end(telemetry).await;
    result
}

async fn serve(
    args: Args,
    context: &Context,
    telemetry: &ganger_telemetry::Telemetry,
) -> Result<Exit, Error> {
    let asked = signals::ending()?;
    let config = config(args, &context.settings);
    std::fs::create_dir_all(&config.data)
        .map_err(|source| UpError::Directory { path: config.data.clone(), source })?;
    let data = config.data.display().to_string();
    let coordinator = ganger_coordinator::start(config, telemetry).await.map_err(UpError::from)?;
    tracing::info!(address = %coordinator.address, %data, "listening");
    let ending = coordinator.ending();
    let mut ended = tokio::spawn(coordinator.ended());
    let early = tokio::select! {
        ended = &mut ended => Some(ended),
        () = asked.cancelled() => None,
    };
    let result = if let Some(result) = early {
        result
    } else {
        ending.cancel();
        ended.await
    };
    result.map_err(|_| UpError::Panicked)?.map_err(UpError::from)?;
    tracing::info!("ended");
    Ok(Exit::Ok)
}

fn config(args: Args, settings: &Settings) -> Config {
    let file = &settings.file.coordinator;
    let data =
        args.data.or_else(|| file.data.clone()).unwrap_or_else(|| settings.state.path().to_owned());
    let below = file.limits.over(&Limits::default());
    Config {
        listen: args.listen.or(file.listen).unwrap_or(LISTEN),
        endpoint_file: Some(data.join("endpoint")),
        data,
        plaintext: args.plaintext || file.plaintext.unwrap_or(false),
        accept_loss: args.accept_loss,
        limits: said(&args.limits).over(&below),
    }
}

/// The limits of the command line, in the words of the file.
fn said(args: &LimitArgs) -> LimitsFile {
    let LimitArgs { beat, lease, offer, grace, prepare, plan_size, units, artifact_size } = *args;
    LimitsFile { beat, lease, offer, grace, prepare, plan_size, units, artifact_size }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use clap::Parser as _;
    use ganger_shared::time::DurationMs;

    use super::*;
    use crate::args::{Cli, Command, Common};
    use crate::settings::file::ConfigFile;

    #[test]
    fn flags_go_before_the_file_and_that_before_the_defaults() {
        let words =
            ["ganger", "coordinator", "--data", "/d", "--lease", "1s", "--plan-size", "8MiB"];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Coordinator(args) = cli.command else { panic!("another command") };
        let common = Common::default();
        let env = |name: &str| (name == "HOME").then(|| "/nobody".into());
        let mut settings = Settings::load(&common, env).unwrap();
        settings.file =
            ConfigFile::parse("coordinator:\n  limits: { lease: 9s, beat: 100ms }\n").unwrap();
        let config = config(args, &settings);
        let expected = Limits {
            lease_ms: DurationMs::from_secs(1),
            beat_ms: DurationMs(100),
            plan_bytes: 8 << 20,
            ..Limits::default()
        };
        assert_eq!(config.limits, expected);
        assert_eq!(config.listen, LISTEN);
        assert_eq!(config.endpoint_file, Some(PathBuf::from("/d/endpoint")));
    }
}

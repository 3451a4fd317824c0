//! `ganger up`: a coordinator and workers on the state directory, until Ctrl-C.

use std::net::SocketAddr;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::up::{Embedded, Say, WORKERS_MAX, Wish};
use crate::{signals, telemetry};

/// Where it listens unless it is told: a fixed port, so that an address that was noted stays good.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7700);

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the coordinator listens [default: 127.0.0.1:7700].
    #[arg(long, value_name = "ADDR", env = "GANGER_LISTEN", hide_env_values = true)]
    pub listen: Option<SocketAddr>,
    /// How many workers [default: 2].
    #[arg(
        long,
        value_name = "N",
        env = "GANGER_WORKERS",
        hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(WORKERS_MAX))
    )]
    pub workers: Option<u32>,
    /// Attempts each runs at once [default: 2].
    #[arg(
        long,
        value_name = "N",
        env = "GANGER_SLOTS",
        hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=512)
    )]
    pub slots: Option<u32>,
}

/// How many workers there are unless somebody says otherwise.
pub const WORKERS: u32 = 2;
/// How many slots each has.
pub const SLOTS: u32 = 2;

/// Starts everything and stays.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let telemetry = telemetry::service("ganger-coordinator")?;
    let result = stay(args, context, &telemetry).await;
    telemetry::end(telemetry).await;
    result
}

async fn stay(
    args: Args,
    context: &Context,
    telemetry: &ganger_telemetry::Telemetry,
) -> Result<Exit, Error> {
    let ending = signals::ending()?;
    let (settings, file) = (&context.settings, &context.settings.file.up);
    let listen = args.listen.or(file.listen).unwrap_or(LISTEN);
    let mut embedded = Embedded::start(settings, Some(listen), Some(telemetry)).await?;
    let workers = args.workers.or(file.workers).unwrap_or(WORKERS);
    let slots = args.slots.or(file.slots).unwrap_or(SLOTS);
    embedded.workers.start(settings, (workers, slots), Say::Here)?;
    output::line(&format!(
        "coordinator at http://{} with {workers} workers; state in {}",
        embedded.address,
        settings.state.path().display()
    ))?;
    let broke = tokio::select! {
        () = ending.cancelled() => None,
        error = embedded.broke() => Some(error),
    };
    if broke.is_none() {
        note("ending; once more to end at once");
    }
    // What is at work is lost and runs again at the next start, instead of failing by our leave.
    let stopped = embedded.stop(Wish::Die).await;
    if let Some(error) = broke {
        return Err(error.into());
    }
    stopped?;
    Ok(Exit::Ok)
}

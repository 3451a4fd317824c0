//! Telemetry of the commands that last, and its end.
//!
//! Short commands have none. What is sent where is `ganger_telemetry`'s.

use std::time::Duration;

use ganger_telemetry::{LogFormat, LogOptions, ServiceIdentity, Settings, Telemetry};

use crate::error::Error;

/// How long the last spans may take to be sent.
const LAST: Duration = Duration::from_secs(3);

/// Telemetry of a service: its lines are what a person sees of it.
pub fn service(name: &str) -> Result<Telemetry, Error> {
    Ok(Telemetry::init(&identity(name), LogOptions::from_env(format()))?)
}

/// Telemetry of a command for people: only what went wrong is told, unless more is asked for.
fn command(name: &str) -> Result<Telemetry, Error> {
    let mut log = LogOptions::from_env(format());
    log.filter.get_or_insert_with(|| "warn".to_owned());
    Ok(Telemetry::init(&identity(name), log)?)
}

/// Telemetry of a command that finds a coordinator, or has one in its own process.
pub fn client(found: bool) -> Result<Telemetry, Error> {
    command(if found { "ganger-cli" } else { "ganger-coordinator" })
}

/// None, for a coordinator that lives as long as one short command.
pub fn none() -> Result<Telemetry, Error> {
    let identity = identity("ganger-coordinator");
    let (telemetry, _nobody) =
        Telemetry::build(&identity, &Settings::off(), LogOptions::default())?;
    Ok(telemetry)
}

/// Sends what is left. What does not arrive in time is no error of the command's.
pub async fn end(telemetry: Telemetry) {
    if let Err(error) = telemetry.shutdown(LAST).await {
        tracing::warn!(%error, "the last telemetry may not have arrived");
    }
}

fn identity(name: &str) -> ServiceIdentity {
    ServiceIdentity::new(name, uuid::Uuid::new_v4().to_string())
}

fn format() -> LogFormat {
    match std::env::var("GANGER_LOG_FORMAT").as_deref() {
        Ok("json") => LogFormat::Json,
        Ok(_) | Err(_) => LogFormat::Human,
    }
}

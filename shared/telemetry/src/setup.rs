//! One call at a process's start and one at its end.
//!
//! Not here: how lines look (`logging`), where things go (`settings`), how they get there
//! (`pipeline`).

use std::io;
use std::thread;
use std::time::Duration;

use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::error::OTelSdkError;
use thiserror::Error;
use tokio::sync::oneshot;
use tracing::Dispatch;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use crate::exporter_failures::FailureCount;
use crate::logging::{self, LogOptions};
use crate::metrics::Metrics;
use crate::pipeline::Pipeline;
use crate::projector::Projector;
use crate::settings::{Settings, SettingsError};

/// Who a process is, in every span and metric it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceIdentity {
    /// `ganger-coordinator`, `ganger-worker`, `ganger-cli`.
    pub service: String,
    /// Distinct for every start of every process.
    pub instance: String,
    /// The program's version.
    pub version: String,
}

impl ServiceIdentity {
    /// A process of this version of Ganger.
    pub fn new(service: impl Into<String>, instance: impl Into<String>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { service: service.into(), instance: instance.into(), version }
    }
}

/// A process's telemetry. Keep it to the end and [`Telemetry::shutdown`] it there.
#[derive(Debug)]
pub struct Telemetry {
    pipeline: Option<Pipeline>,
    failures: FailureCount,
}

/// Why telemetry cannot start.
#[derive(Debug, Error)]
pub enum InitError {
    /// `GANGER_LOG` is not a filter.
    #[error("read the log filter {value:?} (GANGER_LOG)")]
    Filter {
        /// What it says.
        value: String,
        /// What is wrong with it.
        #[source]
        source: ParseError,
    },
    /// The environment asks for something we do not do.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An endpoint cannot be used.
    #[error("export telemetry to {endpoint:?}")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// What is wrong with it.
        #[source]
        source: ExporterBuildError,
    },
    /// The exporter's thread or runtime did not start.
    #[error("start the exporter's thread")]
    Thread(#[source] io::Error),
    /// The process has a subscriber already.
    #[error("take over the process's log lines: somebody else has")]
    AlreadyInitialised(#[source] TryInitError),
}

/// Why the last telemetry may not have arrived. Nothing else is affected.
#[derive(Debug, Error)]
pub enum ShutdownError {
    /// The collector did not take it in time; what was left is lost.
    #[error("send the last telemetry within {deadline:?}")]
    Deadline {
        /// The time that was given.
        deadline: Duration,
    },
    /// The collector refused it or cannot be reached.
    #[error("send the last telemetry")]
    Export(#[source] OTelSdkError),
    /// The thread that sends it did not start or died.
    #[error("start the thread that sends the last telemetry")]
    Thread,
}

impl Telemetry {
    /// Starts logging and, if an OTLP endpoint is configured, exporting.
    ///
    /// Needs no async runtime and never waits for a collector.
    pub fn init(identity: &ServiceIdentity, log: LogOptions) -> Result<Self, InitError> {
        let (telemetry, dispatch) = Self::build(identity, &Settings::from_env()?, log)?;
        dispatch.try_init().map_err(InitError::AlreadyInitialised)?;
        Ok(telemetry)
    }

    /// Like [`Telemetry::init`], but leaves it to the caller for whom the subscriber counts.
    pub fn build(
        identity: &ServiceIdentity,
        settings: &Settings,
        log: LogOptions,
    ) -> Result<(Self, Dispatch), InitError> {
        let failures = FailureCount::default();
        let pipeline = Pipeline::start(identity, settings, failures.clone())?;
        let spans = pipeline.as_ref().and_then(|pipeline| pipeline.spans.as_ref());
        let exporting = pipeline.is_some().then(|| failures.clone());
        let dispatch = logging::dispatch(log, spans, exporting)?;
        Ok((Self { pipeline, failures }, dispatch))
    }

    /// Where long-lived spans go.
    pub fn projector(&self) -> Projector {
        let queue = self.pipeline.as_ref().and_then(|pipeline| pipeline.queue.clone());
        queue.map_or_else(Projector::off, Projector::to)
    }

    /// Where measurements go.
    pub fn metrics(&self) -> Metrics {
        self.pipeline.as_ref().map_or_else(Metrics::off, |pipeline| pipeline.metrics.clone())
    }

    /// Whether anything is exported.
    pub fn is_exporting(&self) -> bool {
        self.pipeline.is_some()
    }

    /// How many problems the exporter has reported so far; `doctor` shows it.
    pub fn export_failures(&self) -> u64 {
        self.failures.get()
    }

    /// Sends what waits and stops, and returns by `deadline` whatever the collector does.
    ///
    /// The waiting is done by a plain thread: a blocking task of the runtime would keep the
    /// runtime, and so the process, from ending after the deadline.
    pub async fn shutdown(mut self, deadline: Duration) -> Result<(), ShutdownError> {
        let Some(pipeline) = self.pipeline.take() else { return Ok(()) };
        let (report, reported) = oneshot::channel();
        thread::Builder::new()
            .name("ganger-otlp-last".into())
            .spawn(move || drop(report.send(pipeline.stop(deadline))))
            .map_err(|_| ShutdownError::Thread)?;
        match tokio::time::timeout(deadline, reported).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(OTelSdkError::Timeout(_)))) | Err(_) => {
                Err(ShutdownError::Deadline { deadline })
            }
            Ok(Ok(Err(source))) => Err(ShutdownError::Export(source)),
            Ok(Err(_)) => Err(ShutdownError::Thread),
        }
    }
}

impl Drop for Telemetry {
    /// Dropping the exporters can block for seconds, and this may be an async thread.
    fn drop(&mut self) {
        if let Some(pipeline) = self.pipeline.take() {
            // If no thread can be started, the closure and the pipeline in it are dropped here.
            let _ = thread::Builder::new().spawn(move || drop(pipeline));
        }
    }
}

//! The subscriber: log lines to standard error, live spans to OTLP, and who sees which event.
//!
//! Not here: exporting, and the SDK's own complaints (see `exporter_failures`).

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Metadata};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::exporter_failures::{self, ExporterFailures, FailureCount};
use crate::setup::InitError;

/// The variable that says which log lines are wanted, in `tracing` filter syntax.
pub const FILTER_VARIABLE: &str = "GANGER_LOG";

/// What log lines look like and where they go.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// Which lines are wanted, in `tracing` filter syntax; none: `info` and above.
    pub filter: Option<String>,
    /// What they look like.
    pub format: LogFormat,
    /// Where they go.
    pub sink: LogSink,
}

impl LogOptions {
    /// Lines to standard error, filtered as `GANGER_LOG` says.
    pub fn from_env(format: LogFormat) -> Self {
        Self { filter: std::env::var(FILTER_VARIABLE).ok(), format, sink: LogSink::Stderr }
    }
}

/// What log lines look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Where log lines go.
#[derive(Debug, Clone, Default)]
pub enum LogSink {
    /// Standard error; standard output belongs to what a command answers.
    #[default]
    Stderr,
    /// Whole lines to a bounded channel, dropped when it is full; for tests and embedding.
    Lines(mpsc::SyncSender<String>),
}

impl LogSink {
    pub(crate) fn write_line(&self, line: &str) {
        match self {
            // Nobody is left to tell when standard error is closed.
            Self::Stderr => drop(io::stderr().lock().write_all(line.as_bytes())),
            Self::Lines(sender) => drop(sender.try_send(line.to_owned())),
        }
    }
}

/// One log line on its way to a sink.
pub struct Line {
    sink: LogSink,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write_line(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogSink {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { sink: self.clone() }
    }
}

/// Everything a process says and shows, as one subscriber.
pub(crate) fn dispatch(
    log: LogOptions,
    spans: Option<&SdkTracerProvider>,
    exporting: Option<FailureCount>,
) -> Result<Dispatch, InitError> {
    let wanted = env_filter(log.filter.as_deref())?;
    let lines = lines_layer(&log).with_filter(wanted.and(filter_fn(|meta| !is_sdk(meta))));
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![lines.boxed()];
    if let Some(provider) = spans {
        layers.push(spans_layer(provider));
    }
    if let Some(failures) = exporting {
        let complaints = ExporterFailures::new(failures, log.format, log.sink);
        layers.push(complaints.with_filter(filter_fn(is_sdk)).boxed());
    }
    Ok(Dispatch::new(Registry::default().with(layers)))
}

fn env_filter(directives: Option<&str>) -> Result<EnvFilter, InitError> {
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let directives = directives.unwrap_or_default();
    builder
        .parse(directives)
        .map_err(|source| InitError::Filter { value: directives.to_owned(), source })
}

fn lines_layer(log: &LogOptions) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer().with_writer(log.sink.clone());
    match log.format {
        LogFormat::Human => {
            let colours = matches!(log.sink, LogSink::Stderr) && io::stderr().is_terminal();
            lines.with_ansi(colours).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    }
}

fn spans_layer(provider: &SdkTracerProvider) -> Box<dyn Layer<Registry> + Send + Sync> {
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("ganger"))
        .with_threads(false)
        .with_location(false)
        .with_tracked_inactivity(false)
        .with_filter(LevelFilter::INFO.and(filter_fn(|meta| !is_transport(meta))))
        .boxed()
}

fn is_sdk(meta: &Metadata<'_>) -> bool {
    meta.target().starts_with(exporter_failures::TARGET)
}

/// Exporting goes through these crates: a span about an export would cause the next export.
fn is_transport(meta: &Metadata<'_>) -> bool {
    const TRANSPORT: [&str; 4] = ["h2", "hyper", "tonic", "tower"];
    let module = meta.target().split("::").next().unwrap_or_default();
    is_sdk(meta)
        || TRANSPORT.iter().any(|own| module == *own || module.starts_with(&format!("{own}_")))
}

//! Telemetry of every Ganger process: log lines, traces and metrics by OTLP, and the context that
//! ties the processes' spans into one trace per run.
//!
//! Not here: what is worth a span (the coordinator's and worker's business), the `/metrics` page,
//! and anything that decides. Nothing in this crate blocks its caller, and with no collector
//! configured it starts no thread at all.

pub mod context;
mod exporter_failures;
pub mod ids;
mod logging;
pub mod metrics;
pub mod names;
mod pipeline;
pub mod projector;
pub mod settings;
pub mod setup;

pub use context::RemoteParent;
pub use ids::SpanKey;
pub use logging::{LogFormat, LogOptions, LogSink};
pub use metrics::Metrics;
pub use projector::{
    AttributeValue, Link, LinkTarget, Parent, Projector, SpanKind, SpanRecord, SpanStatus,
};
pub use settings::Settings;
pub use setup::{InitError, ServiceIdentity, ShutdownError, Telemetry};

//! Telemetry against real collectors on loopback: one that works, one that is down, one that never
//! answers. Not here: what needs the process's own subscriber (`tests/exporter_failures.rs`).
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod calls;
mod filters;
mod outage;
mod traces;

use std::time::Duration;

use ganger_harness::otlp::ReceivedSpan;
use ganger_telemetry::{LogFormat, LogOptions, LogSink, ServiceIdentity, Settings, Telemetry};
use tracing::Dispatch;

/// How long a test waits for what must come; generous, since the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Log lines of tests go nowhere unless a test listens.
fn quiet() -> LogOptions {
    let (sender, _) = std::sync::mpsc::sync_channel(1);
    LogOptions { filter: None, format: LogFormat::Human, sink: LogSink::Lines(sender) }
}

fn telemetry(service: &str, endpoint: String) -> (Telemetry, Dispatch) {
    let settings =
        Settings { batch_delay: Some(Duration::from_millis(20)), ..Settings::to(endpoint) };
    let identity = ServiceIdentity::new(service, format!("{service}-instance"));
    Telemetry::build(&identity, &settings, quiet()).unwrap()
}

fn one<'a>(spans: &'a [ReceivedSpan], name: &str) -> &'a ReceivedSpan {
    let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(named.len(), 1, "one span {name:?} in {spans:#?}");
    named[0]
}

/// Every span's parent arrived too, and only the named ones have none.
fn assert_no_orphans(spans: &[ReceivedSpan], roots: &[&str]) {
    for span in spans {
        if span.parent_span_id.is_empty() {
            assert!(roots.contains(&span.name.as_str()), "a root: {span:#?}");
        } else {
            let parent = spans.iter().find(|other| {
                other.span_id == span.parent_span_id && other.trace_id == span.trace_id
            });
            assert!(parent.is_some(), "an orphan: {span:#?} of {spans:#?}");
        }
    }
}

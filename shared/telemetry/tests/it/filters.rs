//! Who sees which event.

use std::sync::mpsc;

use ganger_harness::otlp::OtlpReceiver;
use ganger_telemetry::{
    InitError, LogFormat, LogOptions, LogSink, ServiceIdentity, Settings, Telemetry,
};
use tracing::{debug, info, info_span};

use crate::{PATIENCE, telemetry};

/// P120: spans of the transport below the exporter are not exported, or each export would cause
/// the next.
#[tokio::test]
async fn spans_of_the_transport_are_not_exported() {
    let collector = OtlpReceiver::start().await.unwrap();
    let (telemetry, lines) = telemetry("ganger-worker", collector.endpoint());
    tracing::dispatcher::with_default(&lines, || {
        info_span!(target: "h2::client", "noise").in_scope(|| {});
        info_span!(target: "hyper_util::client", "noise").in_scope(|| {});
        info_span!(target: "tonic", "noise").in_scope(|| {});
        info_span!(target: "tower::buffer", "noise").in_scope(|| {});
        info_span!(target: "opentelemetry-otlp", "noise").in_scope(|| {});
        info_span!(target: "towering", "kept").in_scope(|| {});
    });
    telemetry.shutdown(PATIENCE).await.unwrap();
    let names: Vec<_> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["kept"]);
}

fn logged(filter: Option<&str>, format: LogFormat) -> Vec<String> {
    let (sender, lines) = mpsc::sync_channel(100);
    let log = LogOptions { filter: filter.map(Into::into), format, sink: LogSink::Lines(sender) };
    let identity = ServiceIdentity::new("ganger-worker", "w-1");
    let (_telemetry, dispatch) = Telemetry::build(&identity, &Settings::off(), log).unwrap();
    tracing::dispatcher::with_default(&dispatch, || {
        info!(answer = 42, "told");
        debug!("whispered");
        debug!(target: "ganger_core", "whispered elsewhere");
        info!(target: "opentelemetry_sdk", "chatter");
    });
    drop(dispatch);
    lines.iter().collect()
}

#[test]
fn info_is_told_by_default_and_the_sdk_is_not() {
    let lines = logged(None, LogFormat::Human);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(" INFO ") && lines[0].ends_with("told answer=42\n"), "{lines:?}");
}

#[test]
fn the_filter_is_obeyed_per_target() {
    let lines = logged(Some("warn,ganger_core=debug"), LogFormat::Human);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("whispered elsewhere"));
}

#[test]
fn json_lines_are_one_object_each() {
    let lines = logged(None, LogFormat::Json);
    let values: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values.len(), 1);
    assert_eq!((&values[0]["message"], &values[0]["answer"]), (&"told".into(), &42.into()));
}

#[test]
fn a_filter_that_is_none_is_refused_with_its_text() {
    let log = LogOptions { filter: Some("ganger=loud".into()), ..LogOptions::default() };
    let identity = ServiceIdentity::new("ganger-worker", "w-1");
    let refused = Telemetry::build(&identity, &Settings::off(), log).unwrap_err();
    let InitError::Filter { value, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(value, "ganger=loud");
}

#[test]
fn an_endpoint_that_is_none_is_refused_with_its_text() {
    let identity = ServiceIdentity::new("ganger-worker", "w-1");
    let settings = Settings::to("not an endpoint");
    let refused = Telemetry::build(&identity, &settings, crate::quiet()).unwrap_err();
    let InitError::Endpoint { endpoint, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(endpoint, "not an endpoint");
}

//! What a collector that is down does to the process's log; alone in its process, because the
//! exporter's threads speak to the process's own subscriber.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ganger_telemetry::{
    LogFormat, LogOptions, LogSink, ServiceIdentity, Settings, SpanKey, SpanRecord, Telemetry,
    names,
};
use tracing_subscriber::util::SubscriberInitExt as _;

/// P120: failing batches are all counted and told once a minute, not once a batch.
#[test]
fn a_collector_that_is_down_is_told_once_and_counted() {
    let endpoint = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let settings =
        Settings { batch_delay: Some(Duration::from_millis(10)), ..Settings::to(endpoint) };
    let (sender, lines) = mpsc::sync_channel(1_000);
    let sink = LogSink::Lines(sender);
    let log = LogOptions { filter: Some("trace".into()), format: LogFormat::Human, sink };
    let identity = ServiceIdentity::new("ganger-worker", "w-1");
    let (telemetry, dispatch) = Telemetry::build(&identity, &settings, log).unwrap();
    dispatch.try_init().unwrap();

    let deadline = Instant::now() + Duration::from_secs(30);
    let mut number = 0;
    while telemetry.export_failures() < 4 {
        assert!(Instant::now() < deadline, "{} failures", telemetry.export_failures());
        number += 1;
        let key = SpanKey::Attempt(number.to_string());
        let record = SpanRecord::new("r-1", key, names::span::ATTEMPT, (1, 2));
        telemetry.projector().project(record);
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let told: Vec<String> = lines.try_iter().filter(|line| line.contains("telemetry")).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("telemetry cannot be exported; work goes on without it failures=1 "));
}

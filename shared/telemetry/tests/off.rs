//! What telemetry costs when no collector is configured; alone in its process, because it counts
//! the process's threads.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ganger_telemetry::metrics::Gauge;
use ganger_telemetry::{LogOptions, ServiceIdentity, Settings, Telemetry};

fn exporter_threads() -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("OpenTel") || name.starts_with("ganger-otlp")).collect()
}

/// P120: without an endpoint no exporter runs, and the end is immediate and fine.
#[test]
fn without_an_endpoint_no_exporter_runs() {
    let identity = ServiceIdentity::new("ganger-worker", "w-1");
    let build = |settings| Telemetry::build(&identity, &settings, LogOptions::default()).unwrap();
    let (off, _) = build(Settings::off());
    assert_eq!(exporter_threads(), Vec::<String>::new());
    off.metrics().set(Gauge::Workers, 3, &[]);
    assert!(!off.is_exporting() && !off.projector().is_on());

    let (on, _) = build(Settings::to("http://127.0.0.1:9"));
    assert_ne!(exporter_threads(), Vec::<String>::new());
    assert!(on.is_exporting() && on.projector().is_on());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(off.shutdown(std::time::Duration::ZERO)).unwrap();
}

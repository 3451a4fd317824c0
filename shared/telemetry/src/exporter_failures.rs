//! What the OpenTelemetry SDK says about itself: counted always, told at most once a minute.
//!
//! A collector that is down makes the SDK log several lines per batch, for ever. Not here: lines
//! of anybody else.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;

use crate::logging::{LogFormat, LogSink};

/// The least time between two lines.
const QUIET: Duration = Duration::from_mins(1);
/// The prefix of the targets of all OpenTelemetry crates.
pub(crate) const TARGET: &str = "opentelemetry";

/// How many failures the exporter reported; shared by the layer, the metric and `doctor`.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureCount(Arc<AtomicU64>);

impl FailureCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The layer that takes the SDK's own warnings and errors.
pub(crate) struct ExporterFailures {
    count: FailureCount,
    limit: OncePer,
    format: LogFormat,
    sink: LogSink,
}

impl ExporterFailures {
    pub(crate) fn new(count: FailureCount, format: LogFormat, sink: LogSink) -> Self {
        Self { count, limit: OncePer::new(QUIET), format, sink }
    }
}

impl<S: Subscriber> Layer<S> for ExporterFailures {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        if !meta.target().starts_with(TARGET) || *meta.level() > Level::WARN {
            return;
        }
        let failures = self.count.add();
        if self.limit.admits(Instant::now()) {
            let mut problem = Problem(String::new());
            event.record(&mut problem);
            // Written directly: a tracing event from inside a layer would enter the layers again.
            self.sink.write_line(&line(self.format, &problem.0, failures));
        }
    }
}

fn line(format: LogFormat, problem: &str, failures: u64) -> String {
    const TEXT: &str = "telemetry cannot be exported; work goes on without it";
    let mut now = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut now));
    match format {
        LogFormat::Human => {
            format!("{now}  WARN ganger_telemetry: {TEXT} failures={failures} {problem}\n")
        }
        LogFormat::Json => {
            let line = serde_json::json!({
                "timestamp": now, "level": "WARN", "target": "ganger_telemetry",
                "message": TEXT, "failures": failures, "problem": problem,
            });
            format!("{line}\n")
        }
    }
}

/// Lets one through per period; the first at once.
struct OncePer {
    period_ms: u64,
    start: Instant,
    next_ms: AtomicU64,
}

impl OncePer {
    fn new(period: Duration) -> Self {
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        Self { period_ms, start: Instant::now(), next_ms: AtomicU64::new(0) }
    }

    fn admits(&self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.start).as_millis();
        let now_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let after = now_ms.saturating_add(self.period_ms);
        let taken = self.next_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            (now_ms >= next).then_some(after)
        });
        taken.is_ok()
    }
}

/// The fields of an event as `key=value`, on one line.
struct Problem(String);

impl Visit for Problem {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        let _ = write!(self.0, "{separator}{}={value:?}", field.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_is_let_through_and_the_first_at_once() {
        let limit = OncePer::new(Duration::from_mins(1));
        let at = |seconds| limit.start + Duration::from_secs(seconds);
        let seconds = [0, 0, 1, 59, 60, 61, 119, 121, 500];
        let admitted = seconds.map(|second| limit.admits(at(second)));
        assert_eq!(admitted, [true, false, false, false, true, false, false, true, true]);
    }

    #[test]
    fn the_json_line_is_one_json_object() {
        let line = line(LogFormat::Json, "error=\"refused\"\n", 3);
        let value: serde_json::Value = serde_json::from_str(&line).expect("one object");
        assert_eq!(line.lines().count(), 1);
        assert_eq!((&value["failures"], &value["level"]), (&3.into(), &"WARN".into()));
    }
}

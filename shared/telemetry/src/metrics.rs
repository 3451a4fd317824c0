//! The instruments: a closed set of counters, gauges and histograms with a closed set of labels.
//!
//! Closed on purpose: a label with the id of a run, unit or attempt would make one time series
//! per id, so there is no way to write one. Not here: the `/metrics` page, and when to measure.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{self as otel, Meter};

use crate::exporter_failures::FailureCount;
use crate::names::{label, metric};

/// What only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Runs that ended, by outcome.
    RunsEnded,
    /// Attempts that ended, by outcome and executor.
    AttemptsEnded,
    /// Leases that ran out.
    LeasesLost,
    /// Commands answered with a rejection, by its kind.
    Rejections,
}

/// What is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    /// Runs that have not ended.
    RunsActive,
    /// Lanes that want a slot, by label set.
    LanesWanted,
    /// Slots free to take a lane, by label set.
    SlotsFree,
    /// Workers attached.
    Workers,
}

/// What is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Histogram {
    /// Seconds a lane waited for a slot.
    QueueWaitSeconds,
    /// Seconds an attempt took.
    AttemptSeconds,
    /// Seconds a journal batch took to be durable.
    AppendSeconds,
    /// Seconds an agent worked.
    InvokeAgentSeconds,
    /// Tokens used by one agent call.
    Tokens,
}

/// What measurements are told apart by; few values each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label<'a> {
    /// How it ended.
    Outcome(&'a str),
    /// The executor.
    Executor(&'a str),
    /// A slot's or lane's labels, sorted and joined with commas.
    LabelSet(&'a str),
    /// The kind of a rejection.
    Rejection(&'a str),
    /// Input tokens, or else output tokens.
    InputTokens(bool),
    /// The `GenAI` operation, from [`crate::names::operation`].
    Operation(&'static str),
    /// Who serves the model.
    Provider(&'a str),
    /// The model.
    Model(&'a str),
    /// The class of an error.
    ErrorType(&'a str),
}

impl Label<'_> {
    fn key_value(&self) -> KeyValue {
        let (key, value) = match *self {
            Self::Outcome(value) => (label::OUTCOME, value),
            Self::Executor(value) => (label::EXECUTOR, value),
            Self::LabelSet(value) => (label::LABEL_SET, value),
            Self::Rejection(value) => (label::REJECTION, value),
            Self::InputTokens(true) => (label::TOKEN_TYPE, "input"),
            Self::InputTokens(false) => (label::TOKEN_TYPE, "output"),
            Self::Operation(value) => (label::OPERATION, value),
            Self::Provider(value) => (label::PROVIDER, value),
            Self::Model(value) => (label::MODEL, value),
            Self::ErrorType(value) => (label::ERROR_TYPE, value),
        };
        KeyValue::new(key, value.to_owned())
    }
}

/// Takes measurements; cheap to clone, never blocks, and does nothing when telemetry is off.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    instruments: Option<Arc<Instruments>>,
}

impl Metrics {
    /// Metrics that go nowhere.
    pub fn off() -> Self {
        Self::default()
    }

    pub(crate) fn new(meter: &Meter, failures: FailureCount) -> Self {
        meter
            .u64_observable_counter(metric::EXPORT_FAILURES)
            .with_description("Problems the OTLP exporter reported.")
            .with_callback(move |observer| observer.observe(failures.get(), &[]))
            .build();
        Self { instruments: Some(Arc::new(Instruments::new(meter))) }
    }

    /// Adds to a counter.
    pub fn count(&self, counter: Counter, more: u64, labels: &[Label<'_>]) {
        if let Some(instruments) = &self.instruments {
            instruments.counter(counter).add(more, &key_values(labels));
        }
    }

    /// Says what is now.
    pub fn set(&self, gauge: Gauge, now: u64, labels: &[Label<'_>]) {
        if let Some(instruments) = &self.instruments {
            instruments.gauge(gauge).record(now, &key_values(labels));
        }
    }

    /// Takes one measurement.
    pub fn record(&self, histogram: Histogram, value: f64, labels: &[Label<'_>]) {
        if let Some(instruments) = &self.instruments {
            instruments.histogram(histogram).record(value, &key_values(labels));
        }
    }
}

fn key_values(labels: &[Label<'_>]) -> Vec<KeyValue> {
    labels.iter().map(Label::key_value).collect()
}

/// Bounds in seconds for what takes from milliseconds (an append) to hours (an agent).
const SECONDS: [f64; 16] = [
    0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 7200.0,
    21600.0,
];
/// Bounds in tokens, by the `GenAI` conventions.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

#[derive(Debug)]
struct Instruments {
    runs_ended: otel::Counter<u64>,
    attempts_ended: otel::Counter<u64>,
    leases_lost: otel::Counter<u64>,
    rejections: otel::Counter<u64>,
    runs_active: otel::Gauge<u64>,
    lanes_wanted: otel::Gauge<u64>,
    slots_free: otel::Gauge<u64>,
    workers: otel::Gauge<u64>,
    queue_wait: otel::Histogram<f64>,
    attempt: otel::Histogram<f64>,
    append: otel::Histogram<f64>,
    invoke_agent: otel::Histogram<f64>,
    tokens: otel::Histogram<f64>,
}

impl Instruments {
    fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str| meter.u64_counter(name).build();
        let gauge = |name: &'static str| meter.u64_gauge(name).build();
        let spread = |name: &'static str, unit: &'static str, bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit(unit);
            histogram.with_boundaries(bounds.to_vec()).build()
        };
        Self {
            runs_ended: counter(metric::RUNS_ENDED),
            attempts_ended: counter(metric::ATTEMPTS_ENDED),
            leases_lost: counter(metric::LEASES_LOST),
            rejections: counter(metric::REJECTIONS),
            runs_active: gauge(metric::RUNS_ACTIVE),
            lanes_wanted: gauge(metric::LANES_WANTED),
            slots_free: gauge(metric::SLOTS_FREE),
            workers: gauge(metric::WORKERS),
            queue_wait: spread(metric::QUEUE_WAIT, "s", &SECONDS),
            attempt: spread(metric::ATTEMPT, "s", &SECONDS),
            append: spread(metric::APPEND, "s", &SECONDS),
            invoke_agent: spread(metric::INVOKE_AGENT, "s", &SECONDS),
            tokens: spread(metric::TOKENS, "{token}", &TOKENS),
        }
    }

    fn counter(&self, counter: Counter) -> &otel::Counter<u64> {
        match counter {
            Counter::RunsEnded => &self.runs_ended,
            Counter::AttemptsEnded => &self.attempts_ended,
            Counter::LeasesLost => &self.leases_lost,
            Counter::Rejections => &self.rejections,
        }
    }

    fn gauge(&self, gauge: Gauge) -> &otel::Gauge<u64> {
        match gauge {
            Gauge::RunsActive => &self.runs_active,
            Gauge::LanesWanted => &self.lanes_wanted,
            Gauge::SlotsFree => &self.slots_free,
            Gauge::Workers => &self.workers,
        }
    }

    fn histogram(&self, histogram: Histogram) -> &otel::Histogram<f64> {
        match histogram {
            Histogram::QueueWaitSeconds => &self.queue_wait,
            Histogram::AttemptSeconds => &self.attempt,
            Histogram::AppendSeconds => &self.append,
            Histogram::InvokeAgentSeconds => &self.invoke_agent,
            Histogram::Tokens => &self.tokens,
        }
    }
}

//! Long-lived spans (runs, units, attempts), projected from the journal's facts.
//!
//! A live span is lost with its process and invisible until it ends; these are data with derived
//! ids, sent when the facts are known: children at once, the run's root last, and the same ids
//! again by a coordinator that restarted. Not here: which facts make which span.

mod record;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};

pub use record::{AttributeValue, Link, LinkTarget, Parent, SpanKind, SpanRecord, SpanStatus};

use crate::ids::{self, SpanKey};
use crate::names;

/// More attributes than this are dropped and counted on the span.
pub const ATTRIBUTES_MAX: usize = 64;
/// More links than this are dropped and counted on the span.
pub const LINKS_MAX: usize = 64;
/// Longer text in an attribute or a status is cut and ends with `…`.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Hands projected spans to the exporter's queue; cheap to clone, never blocks, and does nothing
/// when telemetry is off.
#[derive(Debug, Clone, Default)]
pub struct Projector {
    queue: Option<Arc<BatchSpanProcessor>>,
}

impl Projector {
    /// A projector that does nothing.
    pub fn off() -> Self {
        Self::default()
    }

    pub(crate) fn to(queue: Arc<BatchSpanProcessor>) -> Self {
        Self { queue: Some(queue) }
    }

    /// Whether spans go anywhere: callers may skip building records when they do not.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Sends one finished span; when the queue is full it is dropped and counted, never waited for.
    pub fn project(&self, record: SpanRecord) {
        if let Some(queue) = &self.queue {
            queue.on_end(span_data(record));
        }
    }

    /// Makes a run visible at once: a zero-length marker below the root that is sent when it ends.
    pub fn run_started(
        &self,
        run_id: &str,
        at_unix_ms: u64,
        attributes: Vec<(&'static str, AttributeValue)>,
    ) {
        if !self.is_on() {
            return;
        }
        let key = SpanKey::Run.named(names::span::RUN_STARTED, run_id);
        self.project(SpanRecord {
            trace: run_id.to_owned(),
            key,
            parent: Parent::Key(SpanKey::Run),
            name: names::span::RUN_STARTED.into(),
            kind: SpanKind::Internal,
            start_unix_ms: at_unix_ms,
            end_unix_ms: at_unix_ms,
            status: SpanStatus::Unset,
            attributes,
            links: Vec::new(),
        });
    }
}

fn span_data(record: SpanRecord) -> SpanData {
    let SpanRecord { trace, key, parent, name, kind, .. } = record;
    let start_time = time(record.start_unix_ms);
    let (parent_span_id, parent_span_is_remote) = parent_of(&trace, &parent);
    let (attributes, dropped_attributes_count) = attributes(record.attributes);
    SpanData {
        span_context: ids::span_context(&trace, &key, false),
        parent_span_id,
        parent_span_is_remote,
        span_kind: kind.into(),
        name,
        start_time,
        // Two hosts' clocks may disagree; a span that ends before it starts confuses every viewer.
        end_time: time(record.end_unix_ms).max(start_time),
        attributes,
        dropped_attributes_count,
        events: SpanEvents::default(),
        links: links(record.links),
        status: status(record.status),
        instrumentation_scope: InstrumentationScope::builder("ganger.projector")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

/// The latest time told apart from "never ends": the year 2554, where nanoseconds in 64 bits end.
const UNIX_MS_MAX: u64 = u64::MAX / 1_000_000;

fn time(unix_ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms.min(UNIX_MS_MAX))
}

fn parent_of(trace: &str, parent: &Parent) -> (SpanId, bool) {
    match parent {
        Parent::Root => (SpanId::INVALID, false),
        Parent::Key(key) => (ids::span_id(trace, key), false),
        Parent::Remote(parent) => (parent.span, true),
    }
}

fn attributes(given: Vec<(&'static str, AttributeValue)>) -> (Vec<KeyValue>, u32) {
    let dropped = dropped(given.len(), ATTRIBUTES_MAX);
    let kept = given.into_iter().take(ATTRIBUTES_MAX);
    (kept.map(|(key, value)| KeyValue::new(key, value.into_otel())).collect(), dropped)
}

fn links(given: Vec<Link>) -> SpanLinks {
    let mut links = SpanLinks::default();
    links.dropped_count = dropped(given.len(), LINKS_MAX);
    links.links = given.into_iter().take(LINKS_MAX).map(link).collect();
    links
}

fn link(Link { target, relation }: Link) -> opentelemetry::trace::Link {
    let context: SpanContext = match target {
        LinkTarget::Span { trace, key } => ids::span_context(&trace, &key, true),
        LinkTarget::Remote(parent) => parent.span_context(),
    };
    let meaning = KeyValue::new(names::attribute::LINK, relation);
    opentelemetry::trace::Link::new(context, vec![meaning], 0)
}

fn status(status: SpanStatus) -> Status {
    match status {
        SpanStatus::Unset => Status::Unset,
        SpanStatus::Ok => Status::Ok,
        SpanStatus::Error(reason) => Status::error(record::cut(reason)),
    }
}

fn dropped(given: usize, max: usize) -> u32 {
    u32::try_from(given.saturating_sub(max)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SpanRecord {
        SpanRecord::new("run-1", SpanKey::Run, names::span::RUN, (1_000, 2_000))
    }

    #[test]
    fn a_span_never_ends_before_it_starts_and_time_never_overflows() {
        let skewed = SpanRecord { end_unix_ms: 10, ..record() };
        assert_eq!(span_data(skewed).end_time, time(1_000));
        let data = span_data(SpanRecord { end_unix_ms: u64::MAX, ..record() });
        assert_eq!(data.end_time, time(UNIX_MS_MAX));
    }

    #[test]
    fn what_is_over_the_limits_is_dropped_and_counted() {
        let data = span_data(SpanRecord {
            attributes: vec![(names::attribute::UNIT, "x".into()); ATTRIBUTES_MAX + 3],
            links: vec![Link::to("run-1", SpanKey::Run, names::link::RETRY_OF); LINKS_MAX + 2],
            status: SpanStatus::Error("é".repeat(TEXT_BYTES_MAX)),
            ..record()
        });
        assert_eq!((data.attributes.len(), data.dropped_attributes_count), (ATTRIBUTES_MAX, 3));
        assert_eq!((data.links.len(), data.links.dropped_count), (LINKS_MAX, 2));
        let Status::Error { description } = data.status else { panic!("an error stays one") };
        assert!(description.len() <= TEXT_BYTES_MAX && description.ends_with('…'));
    }

    #[test]
    fn a_projector_that_is_off_takes_spans_and_does_nothing() {
        let off = Projector::off();
        assert!(!off.is_on());
        off.project(record());
        off.run_started("run-1", 1, Vec::new());
    }
}

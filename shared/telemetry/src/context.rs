//! W3C trace context between processes: in dispatch messages, in gRPC metadata, on live spans.
//!
//! A stream's metadata exists once, so everything sent on a stream carries its own `traceparent`.
//! Not here: `tracestate` and baggage; nothing of ours reads them.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use thiserror::Error;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Status};
use tracing::Span;
use tracing_opentelemetry::{OpenTelemetrySpanExt, SetParentError};

use crate::ids::{self, SpanKey};

/// The header, metadata key and (upper case) environment variable of the W3C context.
pub const TRACEPARENT: &str = "traceparent";
/// Longer values are refused unread; version 00 needs 55 bytes.
const TRACEPARENT_BYTES_MAX: usize = 256;

/// The `traceparent` of a run's long-lived span, for dispatch messages and agents' environments.
pub fn traceparent(run_id: &str, key: &SpanKey) -> String {
    RemoteParent::of(run_id, key).to_string()
}

/// A span of another process (or of the journal) that live spans may hang under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteParent {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) sampled: bool,
}

/// A `traceparent` that cannot be used; the sender then simply has no parent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceparentError {
    /// Not four fields of hexadecimal digits of the right lengths.
    #[error("read traceparent {0:?}: not of the form version-trace-span-flags")]
    Malformed(String),
    /// Version `ff` is forbidden.
    #[error("read traceparent {0:?}: version ff is forbidden")]
    Version(String),
    /// An id of zeros names nothing.
    #[error("read traceparent {0:?}: all-zero id")]
    Zero(String),
}

/// Why a live span cannot get a remote parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// The span was entered before: its ids are fixed.
    #[error("set the parent of a span that was already entered")]
    AlreadyEntered,
}

impl RemoteParent {
    /// The derived context of a run's long-lived span.
    pub fn of(run_id: &str, key: &SpanKey) -> Self {
        Self { trace: ids::trace_id(run_id), span: ids::span_id(run_id, key), sampled: true }
    }

    /// The context of a live span; none when telemetry is off or the span filtered.
    pub fn of_span(span: &Span) -> Option<Self> {
        let context = span.context();
        let context = context.span().span_context().clone();
        context.is_valid().then(|| Self {
            trace: context.trace_id(),
            span: context.span_id(),
            sampled: context.is_sampled(),
        })
    }

    /// The context of the span the caller is in.
    pub fn current() -> Option<Self> {
        Self::of_span(&Span::current())
    }

    /// Reads a W3C `traceparent`.
    pub fn parse(text: &str) -> Result<Self, TraceparentError> {
        let refused = || text.chars().take(TRACEPARENT_BYTES_MAX).collect::<String>();
        let malformed = || TraceparentError::Malformed(refused());
        if text.len() > TRACEPARENT_BYTES_MAX {
            return Err(malformed());
        }
        let mut fields = text.split('-');
        let mut field = |length| fields.next().filter(|field| is_hex(field, length));
        let version = field(2).ok_or_else(malformed)?;
        let (trace, span) = (field(32).ok_or_else(malformed)?, field(16).ok_or_else(malformed)?);
        let flags = field(2).ok_or_else(malformed)?;
        match version {
            "ff" => return Err(TraceparentError::Version(refused())),
            // Later versions may append fields, the first one may not.
            "00" if fields.next().is_some() => return Err(malformed()),
            _ => {}
        }
        let parent = Self {
            trace: TraceId::from_hex(trace).map_err(|_| malformed())?,
            span: SpanId::from_hex(span).map_err(|_| malformed())?,
            sampled: u8::from_str_radix(flags, 16).map_err(|_| malformed())? & 1 == 1,
        };
        if parent.trace == TraceId::INVALID || parent.span == SpanId::INVALID {
            return Err(TraceparentError::Zero(refused()));
        }
        Ok(parent)
    }

    /// The trace id as 32 hexadecimal digits.
    pub fn trace_id_hex(&self) -> String {
        self.trace.to_string()
    }

    /// Makes this the parent of a live span; call it before the span is first entered.
    ///
    /// With telemetry off, or the span filtered out, there is nothing to do and that is fine.
    pub fn adopt(self, span: &Span) -> Result<(), AdoptError> {
        let context = Context::new().with_remote_span_context(self.span_context());
        match span.set_parent(context) {
            Ok(()) | Err(SetParentError::LayerNotFound | SetParentError::SpanDisabled) => Ok(()),
            Err(SetParentError::AlreadyStarted) => Err(AdoptError::AlreadyEntered),
        }
    }

    /// Links a live span to this one, with the meaning `relation` of [`crate::names::link`].
    pub fn link(self, span: &Span, relation: &'static str) {
        let meaning = opentelemetry::KeyValue::new(crate::names::attribute::LINK, relation);
        span.add_link_with_attributes(self.span_context(), vec![meaning]);
    }

    pub(crate) fn span_context(self) -> SpanContext {
        let flags = if self.sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        SpanContext::new(self.trace, self.span, flags, true, TraceState::default())
    }
}

impl std::fmt::Display for RemoteParent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

fn is_hex(field: &str, length: usize) -> bool {
    field.len() == length && field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A tonic client interceptor: sends the current span's context with every call.
pub fn inject(mut request: Request<()>) -> Result<Request<()>, Status> {
    inject_into(request.metadata_mut());
    Ok(request)
}

/// Puts the current span's context into call metadata; nothing when there is none.
pub fn inject_into(metadata: &mut MetadataMap) {
    let Some(parent) = RemoteParent::current() else { return };
    if let Ok(value) = MetadataValue::try_from(parent.to_string()) {
        metadata.insert(TRACEPARENT, value);
    }
}

/// The caller's context from call metadata; a malformed one counts as none.
pub fn extract(metadata: &MetadataMap) -> Option<RemoteParent> {
    let value = metadata.get(TRACEPARENT)?.to_str().ok()?;
    RemoteParent::parse(value).ok()
}

/// Hangs a server's span under the caller's, if the caller sent its context.
pub fn adopt_caller(span: &Span, metadata: &MetadataMap) -> Result<(), AdoptError> {
    extract(metadata).map_or(Ok(()), |parent| parent.adopt(span))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_contexts_are_refused() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let zeros = "0".repeat(32);
        let malformed = [
            String::new(),
            "00".into(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-1"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("0x-{trace}-{span}-01"),
            format!("00-{span}-{trace}-01"),
            "é".repeat(40),
            "a".repeat(10_000),
        ];
        for text in malformed {
            let refused: String = text.chars().take(TRACEPARENT_BYTES_MAX).collect();
            assert_eq!(RemoteParent::parse(&text), Err(TraceparentError::Malformed(refused)));
        }
        let text = format!("ff-{trace}-{span}-01");
        assert_eq!(RemoteParent::parse(&text), Err(TraceparentError::Version(text.clone())));
        let text = format!("00-{zeros}-{span}-01");
        assert_eq!(RemoteParent::parse(&text), Err(TraceparentError::Zero(text.clone())));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_we_know_it() {
        let text = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-later";
        let parent = RemoteParent::parse(text).unwrap();
        assert_eq!(parent.to_string(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }

    #[test]
    fn a_span_without_telemetry_has_no_context_and_adopts_quietly() {
        assert_eq!(RemoteParent::current(), None);
        let parent = RemoteParent::of("run-1", &SpanKey::Run);
        assert_eq!(parent.adopt(&Span::current()), Ok(()));
        let request = inject(Request::new(())).unwrap();
        assert_eq!(extract(request.metadata()), None);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read_back(run in ".{0,40}", attempt in ".{0,40}") {
            let key = SpanKey::Attempt(attempt);
            let sent = traceparent(&run, &key);
            prop_assert_eq!(RemoteParent::parse(&sent).unwrap(), RemoteParent::of(&run, &key));
        }

        #[test]
        fn no_text_panics_the_reader(text in ".*") {
            let _ = RemoteParent::parse(&text);
        }
    }
}

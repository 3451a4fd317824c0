//! Trace and span ids derived from what the journal knows, so that any process, before or after a
//! crash, names the same span by the same id.
//!
//! Not here: random ids (the SDK makes those for live spans).

use std::borrow::Cow;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use sha2::{Digest, Sha256};

/// Which long-lived span of a run is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpanKey {
    /// The run itself, root of its trace.
    Run,
    /// The unit with this id.
    Unit(String),
    /// The attempt with this id (`unit/lane/n`).
    Attempt(String),
    /// A projected span below another: a queue wait, a judgement, an apply.
    Named {
        /// The span it belongs to.
        parent: Box<SpanKey>,
        /// What kind of span it is, one of [`crate::names::span`].
        name: Cow<'static, str>,
        /// What tells it from its siblings of the same name.
        key: String,
    },
}

impl SpanKey {
    /// A projected span below `self`.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>, key: impl Into<String>) -> Self {
        Self::Named { parent: Box::new(self), name: name.into(), key: key.into() }
    }

    fn feed(&self, hash: &mut Sha256) {
        match self {
            Self::Run => part(hash, "run"),
            Self::Unit(unit) => {
                part(hash, "unit");
                part(hash, unit);
            }
            Self::Attempt(attempt) => {
                part(hash, "attempt");
                part(hash, attempt);
            }
            Self::Named { parent, name, key } => {
                parent.feed(hash);
                part(hash, "named");
                part(hash, name);
                part(hash, key);
            }
        }
    }
}

/// Feeds one part with a separator no id contains, so that `a`, `bc` and `ab`, `c` differ.
fn part(hash: &mut Sha256, text: &str) {
    hash.update(text.as_bytes());
    hash.update(b"\x1f");
}

/// The trace id of a run as 32 hexadecimal digits, for reports and links.
pub fn trace_id_hex(run_id: &str) -> String {
    trace_id(run_id).to_string()
}

pub(crate) fn trace_id(run_id: &str) -> TraceId {
    let digest = Sha256::new().chain_update(b"ganger/trace/").chain_update(run_id).finalize();
    TraceId::from_bytes(never_zero(first(&digest)))
}

pub(crate) fn span_id(run_id: &str, key: &SpanKey) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(b"ganger/span/");
    part(&mut hash, run_id);
    key.feed(&mut hash);
    SpanId::from_bytes(never_zero(first(&hash.finalize())))
}

pub(crate) fn span_context(run_id: &str, key: &SpanKey, is_remote: bool) -> SpanContext {
    let (trace, span) = (trace_id(run_id), span_id(run_id, key));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, is_remote, TraceState::default())
}

fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    bytes
}

/// All-zero ids mean "no id" to every tracing system.
fn never_zero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if bytes.iter().all(|byte| *byte == 0) {
        bytes[N - 1] = 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_pinned_for_ever() {
        let lane = SpanKey::Attempt("build/0/1".into());
        let pinned = [
            trace_id_hex("run-1"),
            span_id("run-1", &SpanKey::Run).to_string(),
            span_id("run-1", &SpanKey::Unit("build".into())).to_string(),
            span_id("run-1", &lane).to_string(),
            span_id("run-1", &lane.named("check", "tests")).to_string(),
        ];
        assert_eq!(pinned, PINNED);
    }

    /// Traces of runs that are under way when a coordinator is replaced depend on these.
    const PINNED: [&str; 5] = [
        "a86baf7c4a4cb154a72bee6f02dca66c",
        "4a88eda7e2e70562",
        "ddbfc38fb5fbf8d2",
        "9dcd3de330429374",
        "0823308e7c463ea6",
    ];

    #[test]
    fn parts_do_not_run_into_each_other() {
        let keys = [
            SpanKey::Run,
            SpanKey::Unit("ab".into()),
            SpanKey::Attempt("ab".into()),
            SpanKey::Run.named("a", "bc"),
            SpanKey::Run.named("ab", "c"),
            SpanKey::Unit("ab".into()).named("a", "bc"),
        ];
        let ids: std::collections::BTreeSet<_> =
            keys.iter().map(|key| span_id("run-1", key).to_bytes()).collect();
        assert_eq!(ids.len(), keys.len());
        assert_ne!(span_id("run-1", &SpanKey::Run), span_id("run-2", &SpanKey::Run));
    }

    #[test]
    fn an_all_zero_id_is_never_given_out() {
        assert_eq!(never_zero([0; 8]), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(never_zero([0, 7]), [0, 7]);
    }
}

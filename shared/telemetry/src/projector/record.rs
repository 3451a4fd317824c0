//! A projected span as plain data, so that callers need no tracing library to describe one.
//!
//! Not here: ids (they are derived from the keys) and sending.

use std::borrow::Cow;

use opentelemetry::{Array, StringValue, Value};

use super::TEXT_BYTES_MAX;
use crate::context::RemoteParent;
use crate::ids::SpanKey;

/// One finished span of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRecord {
    /// The run whose trace it belongs to.
    pub trace: String,
    /// Which span it is; the same key sent again is the same span.
    pub key: SpanKey,
    /// What it hangs under.
    pub parent: Parent,
    /// Its name, from [`crate::names::span`].
    pub name: Cow<'static, str>,
    /// Its role in a call.
    pub kind: SpanKind,
    /// When it started.
    pub start_unix_ms: u64,
    /// When it ended; never before its start.
    pub end_unix_ms: u64,
    /// How it ended.
    pub status: SpanStatus,
    /// Facts about it, keys from [`crate::names::attribute`].
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Other spans it has to do with.
    pub links: Vec<Link>,
}

impl SpanRecord {
    /// A span at the top of the run's trace without facts; fill in the rest by struct update.
    pub fn new(
        run_id: impl Into<String>,
        key: SpanKey,
        name: impl Into<Cow<'static, str>>,
        (start_unix_ms, end_unix_ms): (u64, u64),
    ) -> Self {
        Self {
            trace: run_id.into(),
            key,
            parent: Parent::Root,
            name: name.into(),
            kind: SpanKind::Internal,
            start_unix_ms,
            end_unix_ms,
            status: SpanStatus::Unset,
            attributes: Vec::new(),
            links: Vec::new(),
        }
    }
}

/// What a projected span hangs under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent {
    /// Nothing: it is the root of its trace.
    Root,
    /// Another projected span of the same run.
    Key(SpanKey),
    /// A live span in the same trace.
    Remote(RemoteParent),
}

/// A span's role in a call between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside a process, or over several.
    Internal,
    /// The calling side.
    Client,
    /// The answering side.
    Server,
    /// Work handed to somebody who does it later.
    Producer,
    /// Work taken from somebody who handed it over earlier.
    Consumer,
}

impl From<SpanKind> for opentelemetry::trace::SpanKind {
    fn from(kind: SpanKind) -> Self {
        match kind {
            SpanKind::Internal => Self::Internal,
            SpanKind::Client => Self::Client,
            SpanKind::Server => Self::Server,
            SpanKind::Producer => Self::Producer,
            SpanKind::Consumer => Self::Consumer,
        }
    }
}

/// How a span ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing to say.
    Unset,
    /// It did what it should.
    Ok,
    /// It did not, for this reason.
    Error(String),
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// Text, cut at [`TEXT_BYTES_MAX`].
    Text(String),
    /// Texts, each cut at [`TEXT_BYTES_MAX`].
    Texts(Vec<String>),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A truth.
    Bool(bool),
}

impl AttributeValue {
    pub(super) fn into_otel(self) -> Value {
        match self {
            Self::Text(text) => Value::String(cut(text).into()),
            Self::Texts(texts) => {
                let texts = texts.into_iter().map(|text| StringValue::from(cut(text)));
                Value::Array(Array::String(texts.collect()))
            }
            Self::Int(number) => Value::I64(number),
            Self::Float(number) => Value::F64(number),
            Self::Bool(truth) => Value::Bool(truth),
        }
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for AttributeValue {
    /// OTLP has no unsigned numbers; those beyond its range become its largest.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

/// Another span this one has to do with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Which span.
    pub target: LinkTarget,
    /// What it is to this one, from [`crate::names::link`].
    pub relation: &'static str,
}

impl Link {
    /// A link to a long-lived span of a run, its own or another.
    pub fn to(run_id: impl Into<String>, key: SpanKey, relation: &'static str) -> Self {
        Self { target: LinkTarget::Span { trace: run_id.into(), key }, relation }
    }

    /// A link to a live span.
    pub fn to_live(parent: RemoteParent, relation: &'static str) -> Self {
        Self { target: LinkTarget::Remote(parent), relation }
    }
}

/// Which span a link points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A long-lived span of a run.
    Span {
        /// The run.
        trace: String,
        /// Which of its spans.
        key: SpanKey,
    },
    /// A live span.
    Remote(RemoteParent),
}

/// Cuts text to its limit between characters, and shows that it was cut.
pub(super) fn cut(mut text: String) -> String {
    const MARK: char = '…';
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - MARK.len_utf8()));
        text.push(MARK);
    }
    text
}

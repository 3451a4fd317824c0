//! What a test sees of received telemetry: flat values that compare and print well.
//!
//! Not here: dropped counts, events of spans, histogram buckets; no test asks for them.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{Span, span::Link};

/// Attributes as text: numbers in decimal, lists joined with commas.
pub type Attributes = BTreeMap<String, String>;

/// One span as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedSpan {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    /// 16 hexadecimal digits; empty for a root.
    pub parent_span_id: String,
    /// The span's name.
    pub name: String,
    /// The resource's `service.name`.
    pub service: String,
    /// The resource's `service.instance.id`.
    pub instance: String,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// The OTLP number of its kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: i32,
    /// The reason, if it ended with an error.
    pub error: Option<String>,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its links.
    pub links: Vec<ReceivedLink>,
    /// Its place among all spans this receiver got.
    pub received_order: usize,
}

/// One link of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedLink {
    /// The linked span's trace.
    pub trace_id: String,
    /// The linked span.
    pub span_id: String,
    /// The link's attributes.
    pub attributes: Attributes,
}

/// One data point of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedMetric {
    /// The metric's name.
    pub name: String,
    /// The resource's `service.name`.
    pub service: String,
    /// The value as text; of a histogram the count.
    pub value: String,
    /// Its labels.
    pub labels: Attributes,
}

pub(super) fn spans(request: ExportTraceServiceRequest) -> Vec<ReceivedSpan> {
    let mut received = Vec::new();
    for of_resource in request.resource_spans {
        let resource = resource(of_resource.resource);
        let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        received.extend(spans.map(|one| span(one, &resource)));
    }
    received
}

pub(super) fn metrics(request: ExportMetricsServiceRequest) -> Vec<ReceivedMetric> {
    let mut received = Vec::new();
    for of_resource in request.resource_metrics {
        let service = text(&resource(of_resource.resource), "service.name");
        let metrics = of_resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
        received.extend(metrics.flat_map(|metric| points(metric, &service)));
    }
    received
}

fn span(span: Span, resource: &Attributes) -> ReceivedSpan {
    const ERROR: i32 = 2;
    ReceivedSpan {
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_span_id: hex(&span.parent_span_id),
        name: span.name,
        service: text(resource, "service.name"),
        instance: text(resource, "service.instance.id"),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        kind: span.kind,
        error: span.status.filter(|status| status.code == ERROR).map(|status| status.message),
        attributes: attributes(span.attributes),
        links: span.links.into_iter().map(link).collect(),
        received_order: 0,
    }
}

fn link(link: Link) -> ReceivedLink {
    ReceivedLink {
        trace_id: hex(&link.trace_id),
        span_id: hex(&link.span_id),
        attributes: attributes(link.attributes),
    }
}

fn points(metric: Metric, service: &str) -> Vec<ReceivedMetric> {
    let points: Vec<(String, Vec<KeyValue>)> = match metric.data {
        Some(Data::Gauge(gauge)) => gauge
            .data_points
            .into_iter()
            .map(|point| (number(point.value), point.attributes))
            .collect(),
        Some(Data::Sum(sum)) => sum
            .data_points
            .into_iter()
            .map(|point| (number(point.value), point.attributes))
            .collect(),
        Some(Data::Histogram(histogram)) => histogram
            .data_points
            .into_iter()
            .map(|point| (point.count.to_string(), point.attributes))
            .collect(),
        Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => Vec::new(),
    };
    let received = |(value, labels)| ReceivedMetric {
        name: metric.name.clone(),
        service: service.to_owned(),
        value,
        labels: attributes(labels),
    };
    points.into_iter().map(received).collect()
}

fn number(value: Option<number_data_point::Value>) -> String {
    match value {
        Some(number_data_point::Value::AsInt(number)) => number.to_string(),
        Some(number_data_point::Value::AsDouble(number)) => number.to_string(),
        None => String::new(),
    }
}

fn resource(resource: Option<Resource>) -> Attributes {
    resource.map(|resource| attributes(resource.attributes)).unwrap_or_default()
}

fn attributes(attributes: Vec<KeyValue>) -> Attributes {
    attributes.into_iter().map(|pair| (pair.key, any_text(pair.value))).collect()
}

fn any_text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::BoolValue(truth)) => truth.to_string(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BytesValue(bytes)) => hex(&bytes),
        Some(Value::ArrayValue(list)) => {
            let texts: Vec<_> =
                list.values.into_iter().map(|value| any_text(Some(value))).collect();
            texts.join(",")
        }
        other => format!("{other:?}"),
    }
}

fn text(attributes: &Attributes, key: &str) -> String {
    attributes.get(key).cloned().unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

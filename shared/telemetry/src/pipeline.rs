//! Exporting: the queue, the exporters, and the thread that drives their connections.
//!
//! The exporters' connections run on a runtime of their own. On the process's runtime a busy or
//! blocked worker thread would starve them, and an export that waits for a thread which waits for
//! the export never ends. Not here: what is exported, and the decision to export at all.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanProcessor,
};
use tokio::sync::oneshot;

use crate::exporter_failures::FailureCount;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::setup::{InitError, ServiceIdentity};

/// Everything that exports; dropping it without [`Pipeline::stop`] loses what still waits.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) queue: Option<Arc<BatchSpanProcessor>>,
    pub(crate) spans: Option<SdkTracerProvider>,
    pub(crate) metrics: Metrics,
    meters: Option<SdkMeterProvider>,
    _driver: Driver,
}

impl Pipeline {
    /// Starts exporting; none when the settings name no endpoint.
    pub(crate) fn start(
        identity: &ServiceIdentity,
        settings: &Settings,
        failures: FailureCount,
    ) -> Result<Option<Self>, InitError> {
        if settings.traces_endpoint.is_none() && settings.metrics_endpoint.is_none() {
            return Ok(None);
        }
        let driver = Driver::start().map_err(InitError::Thread)?;
        let inside = driver.runtime.enter();
        let resource = resource(identity);
        let queue = match &settings.traces_endpoint {
            Some(endpoint) => Some(Arc::new(queue(endpoint, settings, &resource)?)),
            None => None,
        };
        let meters = match &settings.metrics_endpoint {
            Some(endpoint) => Some(meters(endpoint, settings, &resource)?),
            None => None,
        };
        drop(inside);
        let metrics = meters.as_ref().map_or_else(Metrics::off, |provider| {
            Metrics::new(&provider.meter("ganger"), failures)
        });
        let spans = queue.as_ref().map(|queue| live_spans(queue, resource));
        Ok(Some(Self { queue, spans, metrics, meters, _driver: driver }))
    }

    /// Sends what waits and stops. Blocks, for at most about `deadline` if spans only are
    /// exported; the SDK's reader of metrics takes its own 5 s.
    pub(crate) fn stop(self, deadline: Duration) -> OTelSdkResult {
        let started = Instant::now();
        let flushed = self.queue.as_ref().map_or(Ok(()), |queue| {
            // `force_flush` tells whether the last spans arrived; shutting down does not.
            let flushed = queue.force_flush();
            let left = deadline.saturating_sub(started.elapsed());
            flushed.and(queue.shutdown_with_timeout(left))
        });
        let left = deadline.saturating_sub(started.elapsed());
        let measured =
            self.meters.as_ref().map_or(Ok(()), |meters| meters.shutdown_with_timeout(left));
        flushed.and(measured)
    }
}

fn resource(identity: &ServiceIdentity) -> Resource {
    // The builder starts from OTEL_RESOURCE_ATTRIBUTES; what we know for certain wins.
    Resource::builder()
        .with_service_name(identity.service.clone())
        .with_attributes([
            KeyValue::new("service.namespace", "ganger"),
            KeyValue::new("service.instance.id", identity.instance.clone()),
            KeyValue::new("service.version", identity.version.clone()),
        ])
        .build()
}

fn refused(endpoint: &str) -> impl FnOnce(ExporterBuildError) -> InitError + '_ {
    move |source| InitError::Endpoint { endpoint: endpoint.to_owned(), source }
}

fn queue(
    endpoint: &str,
    settings: &Settings,
    resource: &Resource,
) -> Result<BatchSpanProcessor, InitError> {
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
    let exporter = match settings.export_timeout {
        Some(timeout) => exporter.with_timeout(timeout),
        None => exporter,
    };
    let exporter = exporter.build().map_err(refused(endpoint))?;
    let config = BatchConfigBuilder::default();
    let config = match settings.batch_delay {
        Some(delay) => config.with_scheduled_delay(delay),
        None => config,
    };
    let mut queue = BatchSpanProcessor::new(exporter, config.build());
    queue.set_resource(resource);
    Ok(queue)
}

fn meters(
    endpoint: &str,
    settings: &Settings,
    resource: &Resource,
) -> Result<SdkMeterProvider, InitError> {
    let exporter = MetricExporter::builder().with_tonic().with_endpoint(endpoint);
    let exporter = match settings.export_timeout {
        Some(timeout) => exporter.with_timeout(timeout),
        None => exporter,
    };
    let exporter = exporter.build().map_err(refused(endpoint))?;
    Ok(SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource.clone())
        .build())
}

fn live_spans(queue: &Arc<BatchSpanProcessor>, resource: Resource) -> SdkTracerProvider {
    let queue = LiveSpans { queue: Arc::clone(queue) };
    SdkTracerProvider::builder().with_resource(resource).with_span_processor(queue).build()
}

/// Lets live spans into the same queue as projected ones, so that their order is kept.
///
/// The provider may be dropped anywhere, even on an async thread; only [`Pipeline::stop`] stops
/// the queue, because stopping it blocks.
#[derive(Debug)]
struct LiveSpans {
    queue: Arc<BatchSpanProcessor>,
}

impl SpanProcessor for LiveSpans {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.queue.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.queue.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.queue.force_flush()
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// A thread with a small runtime for the exporters' connections; it ends when this is dropped.
#[derive(Debug)]
struct Driver {
    runtime: tokio::runtime::Handle,
    _alive: oneshot::Sender<()>,
}

impl Driver {
    fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("ganger-otlp".into()).spawn(move || {
            let _quiet = Context::enter_telemetry_suppressed_scope();
            // The sender is never used: its drop is the end.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { runtime: handle, _alive: alive })
    }
}

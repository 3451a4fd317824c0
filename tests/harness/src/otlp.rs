//! A collector for tests: a real OTLP/gRPC receiver in this process, and a black hole that takes
//! connections and never answers.
//!
//! Both live on threads of their own, so a test may block its runtime, stop them dead, and start
//! others. Gzip is accepted. Not here: logs, and any judgement of what arrived.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::CompressionEncoding;
use tonic::{Request, Response, Status};

mod received;

pub use received::{ReceivedLink, ReceivedMetric, ReceivedSpan};

/// What one receiver has got, in the order it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Received {
    /// The spans.
    pub spans: Vec<ReceivedSpan>,
    /// The data points of metrics.
    pub metrics: Vec<ReceivedMetric>,
}

/// What was there when the time was over and the wanted state was not.
#[derive(Debug, thiserror::Error)]
#[error("see the wanted telemetry within {deadline:?}; there is {received:#?}")]
pub struct Unmet {
    /// The time that was given.
    pub deadline: Duration,
    /// What had arrived.
    pub received: Box<Received>,
}

/// A collector that keeps what it gets.
#[derive(Debug)]
pub struct OtlpReceiver {
    received: watch::Receiver<Received>,
    server: Background,
}

impl OtlpReceiver {
    /// Listens on a free port of loopback.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens on a given address, for a collector that comes back.
    pub async fn start_at(address: SocketAddr) -> io::Result<Self> {
        let (sender, received) = watch::channel(Received::default());
        let server = Background::start(address, move |listener| serve(listener, sender)).await?;
        Ok(Self { received, server })
    }

    /// The address to export to.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The socket address, for a later [`OtlpReceiver::start_at`].
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.borrow().spans.clone()
    }

    /// The data points of metrics so far.
    pub fn metrics(&self) -> Vec<ReceivedMetric> {
        self.received.borrow().metrics.clone()
    }

    /// Waits until the spans are as wanted, and returns them.
    pub async fn wait_for(
        &self,
        mut wanted: impl FnMut(&[ReceivedSpan]) -> bool,
        deadline: Duration,
    ) -> Result<Vec<ReceivedSpan>, Unmet> {
        let all = self.wait_for_all(|received| wanted(&received.spans), deadline).await?;
        Ok(all.spans)
    }

    /// Waits until spans and metrics are as wanted, and returns them.
    pub async fn wait_for_all(
        &self,
        wanted: impl FnMut(&Received) -> bool,
        deadline: Duration,
    ) -> Result<Received, Unmet> {
        let mut received = self.received.clone();
        if let Ok(Ok(all)) = tokio::time::timeout(deadline, received.wait_for(wanted)).await {
            return Ok(all.clone());
        }
        Err(Unmet { deadline, received: Box::new(self.received.borrow().clone()) })
    }

    /// Stops dead, connections included, as a killed collector does.
    pub fn stop(self) {
        self.server.stop();
    }
}

async fn serve(listener: TcpListener, received: watch::Sender<Received>) {
    let collector = Collector { received };
    let gzip = CompressionEncoding::Gzip;
    let traces = TraceServiceServer::new(collector.clone()).accept_compressed(gzip);
    let metrics = MetricsServiceServer::new(collector).accept_compressed(gzip);
    let server = tonic::transport::Server::builder().add_service(traces).add_service(metrics);
    // An accept error ends the receiver; the waiting test then says what is missing.
    let _ = server.serve_with_incoming(TcpListenerStream::new(listener)).await;
}

#[derive(Debug, Clone)]
struct Collector {
    received: watch::Sender<Received>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let spans = received::spans(request.into_inner());
        self.received.send_modify(|received| {
            for mut span in spans {
                span.received_order = received.spans.len();
                received.spans.push(span);
            }
        });
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let metrics = received::metrics(request.into_inner());
        self.received.send_modify(|received| received.metrics.extend(metrics));
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

/// A collector that takes connections and never answers.
#[derive(Debug)]
pub struct BlackHole {
    taken: watch::Receiver<usize>,
    server: Background,
}

impl BlackHole {
    /// Listens on a free port of loopback.
    pub async fn start() -> io::Result<Self> {
        let (sender, taken) = watch::channel(0);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Background::start(any, move |listener| swallow(listener, sender)).await?;
        Ok(Self { taken, server })
    }

    /// The address to export to.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// Waits until somebody has connected; whether somebody did.
    pub async fn wait_for_victim(&self, deadline: Duration) -> bool {
        let mut taken = self.taken.clone();
        tokio::time::timeout(deadline, taken.wait_for(|taken| *taken > 0)).await.is_ok()
    }
}

async fn swallow(listener: TcpListener, taken: watch::Sender<usize>) {
    let mut open = Vec::new();
    while let Ok((connection, _)) = listener.accept().await {
        open.push(connection);
        taken.send_replace(open.len());
    }
}

/// A server on a thread and runtime of its own; it ends, with its connections, when dropped.
#[derive(Debug)]
struct Background {
    address: SocketAddr,
    alive: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Background {
    async fn start<F>(
        address: SocketAddr,
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = ()> + 'static,
    {
        let (started, has_started) = oneshot::channel();
        let (alive, ended) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("test-collector".into()).spawn(move || {
            runtime.block_on(async move {
                match TcpListener::bind(address).await {
                    Ok(listener) => {
                        drop(started.send(listener.local_addr()));
                        tokio::select! { () = serve(listener) => {}, _ = ended => {} }
                    }
                    Err(error) => drop(started.send(Err(error))),
                }
            });
        })?;
        let address = has_started.await.map_err(io::Error::other)??;
        Ok(Self { address, alive: Some(alive), thread: Some(thread) })
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

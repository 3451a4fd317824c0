//! Context over gRPC calls.

use ganger_harness::otlp::OtlpReceiver;
use ganger_telemetry::context;
use ganger_telemetry::names::span;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tracing::instrument::WithSubscriber as _;
use tracing::{Dispatch, Instrument as _, info_span};

use crate::{PATIENCE, assert_no_orphans, one, telemetry};

/// Any service will do: this one answers inside a span under its caller's.
struct Answering {
    telemetry: Dispatch,
}

#[tonic::async_trait]
impl TraceService for Answering {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        tracing::dispatcher::with_default(&self.telemetry, || {
            let call = info_span!("coordinator.call", otel.kind = "server");
            context::adopt_caller(&call, request.metadata())
                .map_err(|error| Status::internal(error.to_string()))?;
            call.in_scope(|| info_span!("decide").in_scope(|| {}));
            Ok(Response::new(ExportTraceServiceResponse::default()))
        })
    }
}

async fn serve(telemetry: Dispatch) -> Channel {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = TraceServiceServer::new(Answering { telemetry });
    let server = Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

/// P119: a client's call and the server's answer are one trace.
#[tokio::test]
async fn a_call_and_its_answer_are_one_trace() {
    let collector = OtlpReceiver::start().await.unwrap();
    let (client, client_lines) = telemetry("ganger-cli", collector.endpoint());
    let (server, server_lines) = telemetry("ganger-coordinator", collector.endpoint());
    let channel = serve(server_lines).await;

    async {
        let mut stub = TraceServiceClient::with_interceptor(channel, context::inject);
        let submit = info_span!("client.submit", otel.kind = "client");
        stub.export(ExportTraceServiceRequest::default()).instrument(submit).await.unwrap();
    }
    .with_subscriber(client_lines)
    .await;
    client.shutdown(PATIENCE).await.unwrap();
    server.shutdown(PATIENCE).await.unwrap();

    let spans = collector.spans();
    assert_eq!(spans.len(), 3, "{spans:#?}");
    assert_no_orphans(&spans, &[span::CLIENT_SUBMIT]);
    let (submit, call) = (one(&spans, span::CLIENT_SUBMIT), one(&spans, span::SERVER_CALL));
    assert_eq!(call.parent_span_id, submit.span_id);
    assert_eq!((submit.kind, call.kind), (3, 2));
    assert_eq!(
        (submit.service.as_str(), call.service.as_str()),
        ("ganger-cli", "ganger-coordinator")
    );
    assert_eq!(one(&spans, "decide").parent_span_id, call.span_id);
}

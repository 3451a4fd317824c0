//! The limits of the transport lie above ours: what a user sees is our answer, over a real socket.

use ganger_proto::auth::{self, Bearer};
use ganger_proto::client::Clients;
use ganger_proto::v1::plan_service_server::PlanService;
use ganger_proto::v1::{
    PlanServiceCheckRequest, PlanServiceCheckResponse, PlanServiceReviseRequest,
    PlanServiceReviseResponse, PlanServiceSubmitRequest, PlanServiceSubmitResponse,
};
use ganger_proto::{Refusal, server, status};
use ganger_shared::limits::PLAN_BYTES_CAP;
use ganger_shared::problem::{Code, Problem};
use ganger_shared::rejection::Rejection;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

use crate::statuses::problems;

/// Answers with what this file is about: sizes and tokens.
struct Sizes;

#[tonic::async_trait]
impl PlanService for Sizes {
    /// A warning that names the caller's token.
    async fn check(
        &self,
        request: Request<PlanServiceCheckRequest>,
    ) -> Result<Response<PlanServiceCheckResponse>, Status> {
        let token = auth::token(request.metadata()).unwrap_or_default().to_owned();
        let problem = Problem::warning(Code::Advice, "", token);
        Ok(Response::new(PlanServiceCheckResponse { problems: vec![problem.into()] }))
    }

    /// Refuses every plan by its size.
    async fn submit(
        &self,
        request: Request<PlanServiceSubmitRequest>,
    ) -> Result<Response<PlanServiceSubmitResponse>, Status> {
        let message = format!("{} bytes", request.into_inner().plan.len());
        let problems = vec![Problem::error(Code::Limit, "", message)];
        Err(status::of(&Rejection::Plan { problems }))
    }

    /// Refuses every plan for more than a status holds.
    async fn revise(
        &self,
        _: Request<PlanServiceReviseRequest>,
    ) -> Result<Response<PlanServiceReviseResponse>, Status> {
        Err(status::of(&Rejection::Plan { problems: problems(10_000, &"ü".repeat(2_000)) }))
    }
}

/// Clients of a server on a free port of the loopback; it ends with the test's runtime.
async fn clients() -> Clients {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = Server::builder().add_service(server::plans(Sizes));
    tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
    let channel =
        Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    Clients::new(channel, Bearer::new("s3cret").unwrap())
}

#[tokio::test]
async fn a_plan_above_every_limit_is_refused_by_us_and_not_by_the_transport() {
    let bytes = usize::try_from(PLAN_BYTES_CAP).unwrap() + 1;
    let request = PlanServiceSubmitRequest {
        idempotency_key: "k".to_owned(),
        plan: vec![b'#'; bytes],
        ..PlanServiceSubmitRequest::default()
    };
    let refusal = Refusal::from(clients().await.plans().submit(request).await.unwrap_err());
    assert_eq!(refusal.code, "plan_problems");
    assert_eq!(refusal.problems[0].message, format!("{bytes} bytes"));
}

#[tokio::test]
async fn ten_thousand_problems_arrive_as_a_refusal_and_not_as_a_broken_stream() {
    let refused = clients().await.plans().revise(PlanServiceReviseRequest::default()).await;
    let refusal = Refusal::from(refused.unwrap_err());
    assert_eq!(refusal.code, "plan_problems");
    assert_eq!(refusal.problems_total, 10_000);
    assert!(!refusal.problems.is_empty());
}

#[tokio::test]
async fn every_call_shows_the_token() {
    let request = PlanServiceCheckRequest::default();
    let answer = clients().await.plans().check(request).await.unwrap().into_inner();
    assert_eq!(answer.problems[0].message, "s3cret");
}

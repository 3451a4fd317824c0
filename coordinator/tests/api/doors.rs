//! Who may come in, and what each may do there.

use ganger_proto::v1;
use tonic::Code;

use crate::ground::{Ground, key, plan, refused, submit, submitted, word};

async fn list(clients: &ganger_proto::client::Clients) -> Result<(), tonic::Status> {
    clients.runs().list(v1::RunServiceListRequest::default()).await.map(|_| ())
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_answered() {
    let ground = Ground::start().await;
    let channel = ground.channel().await;
    let mut bare = v1::run_service_client::RunServiceClient::new(channel);
    let none = refused(bare.list(v1::RunServiceListRequest::default()).await);
    assert_eq!((none.grpc, none.code.as_str()), (Code::Unauthenticated, "unauthenticated"));
    let stranger = ground.bearer("gt-somebody").await;
    let request = v1::RunServiceListRequest::default();
    let unknown = refused(stranger.runs().list(request).await);
    assert_eq!((unknown.grpc, unknown.code.as_str()), (Code::Unauthenticated, "unauthenticated"));
    assert!(unknown.message.contains("revoked"), "{}", unknown.message);
    list(&ground.operator().await).await.unwrap();
}

#[tokio::test]
async fn each_role_may_do_what_is_said_of_it_and_nothing_more() {
    let ground = Ground::start().await;
    let operator = ground.operator().await;
    let run = submitted(&operator, &plan("p", &["a"])).await;
    let (reader, submitter) =
        (ground.of_role(v1::Role::Read).await, ground.of_role(v1::Role::Submit).await);
    let worker = ground.worker().await;
    for clients in [&reader, &submitter, &ground.of_role(v1::Role::Judge).await] {
        list(clients).await.unwrap();
    }
    let from_worker = refused(worker.runs().list(v1::RunServiceListRequest::default()).await);
    assert_eq!(
        (from_worker.grpc, from_worker.code.as_str()),
        (Code::PermissionDenied, "forbidden")
    );
    let text = plan("p", &["a"]);
    assert_eq!(word(reader.plans().submit(submit(&key(), &text)).await), "forbidden");
    submitter.plans().submit(submit(&key(), &text)).await.unwrap();
    let pause = |key| v1::RunServicePauseRequest {
        idempotency_key: key,
        run: run.clone(),
        reason: "lunch".into(),
        ..Default::default()
    };
    let said = refused(submitter.runs().pause(pause(key())).await);
    assert_eq!(said.metadata["needs"], "operate");
    operator.runs().pause(pause(key())).await.unwrap();
}

#[tokio::test]
async fn only_an_operator_may_go_before_others() {
    let ground = Ground::start().await;
    let urgent = plan("p", &["a"]).replace("units:", "priority: 5\nunits:");
    let submitter = ground.of_role(v1::Role::Submit).await;
    assert_eq!(word(submitter.plans().submit(submit(&key(), &urgent)).await), "forbidden");
    submitted(&ground.operator().await, &urgent).await;
}

#[tokio::test]
async fn a_token_is_shown_once_and_ends_when_it_is_revoked() {
    let ground = Ground::start().await;
    let operator = ground.operator().await;
    let issue = v1::TokenServiceIssueRequest {
        idempotency_key: key(),
        name: "anna".into(),
        role: v1::Role::Read.into(),
        ..Default::default()
    };
    let first = operator.tokens().issue(issue.clone()).await.unwrap().into_inner();
    let again = operator.tokens().issue(issue.clone()).await.unwrap().into_inner();
    assert!(again.replayed && again.secret.is_empty());
    assert_eq!(again.token, first.token);
    let other = v1::TokenServiceIssueRequest { name: "ben".into(), ..issue };
    assert_eq!(word(operator.tokens().issue(other).await), "key_reused");

    let anna = ground.bearer(&first.secret).await;
    list(&anna).await.unwrap();
    let revoke = v1::TokenServiceRevokeRequest { idempotency_key: key(), token: "anna".into() };
    operator.tokens().revoke(revoke).await.unwrap();
    assert_eq!(
        word(anna.runs().list(v1::RunServiceListRequest::default()).await),
        "unauthenticated"
    );

    let all = |ended| v1::TokenServiceListRequest {
        filter: Some(v1::TokenFilter { ended, ..Default::default() }),
        ..Default::default()
    };
    let names = |answer: v1::TokenServiceListResponse| -> Vec<String> {
        answer.tokens.into_iter().map(|token| token.name).collect()
    };
    let open = operator.tokens().list(all(false)).await.unwrap().into_inner();
    assert_eq!(names(open), ["operator", "worker"]);
    let ended = operator.tokens().list(all(true)).await.unwrap().into_inner();
    assert_eq!(names(ended), ["anna", "operator", "worker"]);
}

#[tokio::test]
async fn what_is_not_built_is_refused_by_its_name() {
    let ground = Ground::start().await;
    let operator = ground.operator().await;
    let asked = refused(operator.questions().list(v1::QuestionServiceListRequest::default()).await);
    assert_eq!((asked.grpc, asked.code.as_str()), (Code::Unimplemented, "not_supported_yet"));
    assert_eq!(asked.metadata["what"], "listing questions");
    let accept = v1::UnitServiceAcceptRequest::default();
    assert_eq!(word(operator.units().accept(accept).await), "not_supported_yet");
    let revise = v1::PlanServiceReviseRequest::default();
    assert_eq!(word(operator.plans().revise(revise).await), "not_supported_yet");
    let reader = ground.of_role(v1::Role::Read).await;
    let approve = v1::DeliveryServiceApproveRequest::default();
    assert_eq!(word(reader.deliveries().approve(approve).await), "forbidden");
}

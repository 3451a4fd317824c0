//! Steering a run that nobody has taken up yet.

use ganger_proto::client::Clients;
use ganger_proto::v1;
use tonic::Code;

use crate::ground::{Ground, get, key, plan, refused, states, submitted};

fn pause(run: &str, key: &str) -> v1::RunServicePauseRequest {
    v1::RunServicePauseRequest {
        idempotency_key: key.to_owned(),
        run: run.to_owned(),
        reason: "lunch".into(),
        expected_sequence: None,
    }
}

fn resume(run: &str) -> v1::RunServiceResumeRequest {
    v1::RunServiceResumeRequest {
        idempotency_key: key(),
        run: run.to_owned(),
        ..Default::default()
    }
}

fn stop(run: &str) -> v1::RunServiceStopRequest {
    v1::RunServiceStopRequest {
        idempotency_key: key(),
        run: run.to_owned(),
        reason: "enough".into(),
        ..Default::default()
    }
}

async fn state(clients: &Clients, run: &str) -> (String, Option<String>) {
    let row = get(clients, run).await.row.unwrap();
    (row.state, row.reason)
}

/// R172: a paused run starts nothing new, and goes on when it is resumed.
#[tokio::test]
async fn a_run_is_paused_and_resumed_once_per_key() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let key = key();
    let first = clients.runs().pause(pause(&run, &key)).await.unwrap().into_inner();
    let again = clients.runs().pause(pause(&run, &key)).await.unwrap().into_inner();
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!(state(&clients, &run).await, ("paused".to_owned(), Some("lunch".to_owned())));
    let held = get(&clients, &run).await;
    assert_eq!(held.units[0].waiting_for, None, "a paused run wants no slot");
    clients.runs().resume(resume(&run)).await.unwrap();
    assert_eq!(state(&clients, &run).await, ("active".to_owned(), None));
}

/// R166: a run that lives is attached to and nothing of it is reset; one that is over never goes on.
#[tokio::test]
async fn resuming_a_live_run_changes_nothing_and_a_finished_one_is_refused() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let before = get(&clients, &run).await;
    clients.runs().resume(resume(&run)).await.unwrap();
    let after = get(&clients, &run).await;
    assert_eq!((after.units, after.ledger), (before.units, before.ledger));
    clients.runs().stop(stop(&run)).await.unwrap();
    let said = refused(clients.runs().resume(resume(&run)).await);
    assert_eq!((said.grpc, said.code.as_str()), (Code::FailedPrecondition, "wrong_state"));
    assert_eq!(said.metadata["state"], "aborted");
}

#[tokio::test]
async fn stopping_a_queued_run_ends_it_at_once() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a", "b"])).await;
    clients.runs().stop(stop(&run)).await.unwrap();
    let view = get(&clients, &run).await;
    let row = view.row.clone().unwrap();
    assert_eq!(row.state, "aborted");
    assert!(row.ended_at.is_some());
    assert_eq!(states(&view), [("a", "skipped"), ("b", "skipped")]);
    let fleet = clients.fleet().list(v1::FleetServiceListRequest::default()).await.unwrap();
    assert_eq!(fleet.into_inner().demand, [], "a run that is over wants nothing");
}

#[tokio::test]
async fn cancelling_a_unit_takes_what_depends_on_it_along() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let text = plan("p", &["a", "b"]) + "  - { id: c, kind: command, run: make }\n";
    let run = submitted(&clients, &text).await;
    let cancel = |unit: &str, expected| v1::UnitServiceCancelRequest {
        idempotency_key: key(),
        expected_sequence: expected,
        run: run.clone(),
        unit: unit.to_owned(),
        reason: "not wanted".into(),
        now: false,
    };
    let gone = clients.units().cancel(cancel("a", None)).await.unwrap().into_inner();
    assert_eq!(gone.units, ["a", "b"]);
    let view = get(&clients, &run).await;
    assert_eq!(states(&view), [("a", "cancelled"), ("b", "cancelled"), ("c", "ready")]);
    let near = refused(clients.units().cancel(cancel("aa", None)).await);
    assert_eq!((near.grpc, near.code.as_str()), (Code::NotFound, "unknown_unit"));
    assert_eq!(near.metadata["nearest"], "a");
    let stale = refused(clients.units().cancel(cancel("c", Some(1))).await);
    assert_eq!((stale.grpc, stale.code.as_str()), (Code::Aborted, "stale_sequence"));
    assert_eq!(stale.metadata["current"], view.units[2].sequence.to_string());
    clients.units().cancel(cancel("c", Some(view.units[2].sequence))).await.unwrap();
}

#[tokio::test]
async fn a_command_on_what_changed_since_is_refused_with_where_it_is() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let seen = get(&clients, &run).await.row.unwrap().sequence;
    clients.runs().pause(pause(&run, &key())).await.unwrap();
    let mut late = stop(&run);
    late.expected_sequence = Some(seen);
    let said = refused(clients.runs().stop(late.clone()).await);
    assert_eq!((said.grpc, said.code.as_str()), (Code::Aborted, "stale_sequence"));
    assert_eq!(said.metadata["expected"], seen.to_string());
    // What was looked at after that is taken.
    late.expected_sequence = Some(get(&clients, &run).await.row.unwrap().sequence);
    clients.runs().stop(late).await.unwrap();
}

#[tokio::test]
async fn a_reason_must_be_given() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let silent = v1::RunServiceStopRequest { reason: " ".into(), ..stop(&run) };
    assert_eq!(refused(clients.runs().stop(silent).await).metadata["field"], "reason");
}

#[tokio::test]
async fn explain_says_what_the_run_and_the_fleet_know() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a", "b"])).await;
    let explain =
        |unit: &str| v1::UnitServiceExplainRequest { run: run.clone(), unit: unit.to_owned() };
    let all = clients.units().explain(explain("")).await.unwrap().into_inner();
    let told: Vec<_> =
        all.explanations.iter().map(|e| (e.unit.as_str(), e.state.as_str(), e.position)).collect();
    assert_eq!(told, [("a", "ready", Some(1)), ("b", "pending", None)]);
    let one = clients.units().explain(explain("a")).await.unwrap().into_inner();
    assert_eq!(one.explanations[0].reasons, ["no worker is attached and open for work"]);
    assert_eq!(one.sequence, all.sequence);
    let result = v1::UnitServiceGetResultRequest {
        run: run.clone(),
        unit: "a".into(),
        attempt: String::new(),
    };
    let result = clients.units().get_result(result).await.unwrap().into_inner();
    assert_eq!((result.unit.unwrap().id.as_str(), result.attempt), ("a", None));
}

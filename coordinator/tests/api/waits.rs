//! Waiting: until something happens, until the run is at rest, or until the time is over.

use ganger_proto::v1;

use crate::ground::{Ground, key, plan, refused, submitted, within};

fn wait(run: &str, after_sequence: u64, timeout_ms: u64) -> v1::RunServiceWaitRequest {
    v1::RunServiceWaitRequest {
        run: run.to_owned(),
        after_sequence,
        timeout_ms,
        wake_on: v1::WakeOn::Event.into(),
    }
}

/// R168: an expired wait is an answer, with the run as it is.
#[tokio::test]
async fn a_wait_that_expires_is_no_error() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let now = clients.runs().wait(wait(&run, 0, 60_000)).await.unwrap().into_inner();
    assert!(!now.expired);
    let row = now.snapshot.unwrap().row.unwrap();
    let expired = clients.runs().wait(wait(&run, row.sequence, 1)).await.unwrap().into_inner();
    assert!(expired.expired);
    let snapshot = expired.snapshot.unwrap();
    assert_eq!(snapshot.row.unwrap(), row);
    assert_eq!((snapshot.running, snapshot.next_action), (vec![], None));
    assert!(snapshot.updated_at.is_some() && !snapshot.ledger.is_empty());
    let long = refused(clients.runs().wait(wait(&run, 0, 43_200_001)).await);
    assert_eq!(long.metadata["field"], "timeout_ms");
}

#[tokio::test]
async fn a_wait_ends_with_the_next_event() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let seen = clients.runs().wait(wait(&run, 0, 1)).await.unwrap().into_inner();
    let seen = seen.snapshot.unwrap().row.unwrap().sequence;
    let waiting = {
        let (clients, request) = (clients.clone(), wait(&run, seen, 60_000));
        tokio::spawn(async move { clients.runs().wait(request).await.unwrap().into_inner() })
    };
    let pause = v1::RunServicePauseRequest {
        idempotency_key: key(),
        run: run.clone(),
        reason: "lunch".into(),
        ..Default::default()
    };
    clients.runs().pause(pause).await.unwrap();
    let woken = waiting.await.unwrap();
    assert!(!woken.expired);
    let snapshot = woken.snapshot.unwrap();
    assert_eq!(snapshot.blocker.as_deref(), Some("paused: lunch"));
    assert_eq!(snapshot.next_action.as_deref(), Some("resume"));
}

#[tokio::test]
async fn a_wait_for_rest_passes_over_everything_else() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let rest = |timeout_ms| v1::RunServiceWaitRequest {
        wake_on: v1::WakeOn::Rest.into(),
        ..wait(&run, 0, timeout_ms)
    };
    assert!(clients.runs().wait(rest(1)).await.unwrap().into_inner().expired);
    let waiting = {
        let (clients, request) = (clients.clone(), rest(60_000));
        tokio::spawn(async move { clients.runs().wait(request).await.unwrap().into_inner() })
    };
    let cancel = v1::UnitServiceCancelRequest {
        idempotency_key: key(),
        run: run.clone(),
        unit: "a".into(),
        reason: "not wanted".into(),
        ..Default::default()
    };
    clients.units().cancel(cancel).await.unwrap();
    let woken = waiting.await.unwrap();
    let snapshot = woken.snapshot.unwrap();
    assert_eq!(snapshot.row.unwrap().state, "held");
    assert_eq!(snapshot.blocker.as_deref(), Some("unit a is cancelled: not wanted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_ends_tells_those_who_wait() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    let (waiter, request) = (clients.clone(), wait(&run, 1_000_000, 60_000));
    let waiting = tokio::spawn(async move { waiter.runs().wait(request).await });
    let watch = v1::RunServiceWatchRequest { run, after_sequence: 0 };
    let mut watching = clients.runs().watch(watch).await.unwrap().into_inner();
    assert!(watching.message().await.unwrap().is_some());
    ground.end().await;
    assert!(refused(waiting.await.unwrap()).is_unreachable());
    let end = loop {
        match within(watching.message()).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended as if the run were over"),
            Err(status) => break ganger_proto::Refusal::from(status),
        }
    };
    assert!(end.is_unreachable(), "{end:?}");
}

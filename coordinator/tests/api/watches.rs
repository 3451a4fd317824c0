//! Watching: nothing is missed, nothing comes twice, and a slow watcher harms nobody.

use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_proto::v1::run_service_watch_response::Next;
use tonic::{Code, Streaming};

use crate::ground::{Ground, get, key, plan, refused, submitted, within};

async fn watch(
    clients: &Clients,
    run: &str,
    after_sequence: u64,
) -> Streaming<v1::RunServiceWatchResponse> {
    let request = v1::RunServiceWatchRequest { run: run.to_owned(), after_sequence };
    clients.runs().watch(request).await.unwrap().into_inner()
}

async fn pause(clients: &Clients, run: &str) {
    let request = v1::RunServicePauseRequest {
        idempotency_key: key(),
        run: run.to_owned(),
        reason: "again".into(),
        ..Default::default()
    };
    clients.runs().pause(request).await.unwrap();
}

async fn stop(clients: &Clients, run: &str) {
    let request = v1::RunServiceStopRequest {
        idempotency_key: key(),
        run: run.to_owned(),
        reason: "enough".into(),
        ..Default::default()
    };
    clients.runs().stop(request).await.unwrap();
}

/// The events up to the stream's end.
async fn all(mut stream: Streaming<v1::RunServiceWatchResponse>) -> Vec<v1::RunEvent> {
    let mut events = Vec::new();
    while let Some(next) = within(stream.message()).await.unwrap() {
        match next.next.unwrap() {
            Next::Event(event) => events.push(event),
            Next::ResyncRequired(resync) => panic!("resync at {}", resync.sequence),
        }
    }
    events
}

#[tokio::test]
async fn a_watcher_sees_what_was_and_what_comes_once_and_in_order() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a", "b"])).await;
    let early = watch(&clients, &run, 0).await;
    pause(&clients, &run).await;
    stop(&clients, &run).await;
    let seen = all(early).await;
    let sequences: Vec<u64> = seen.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=seen.len() as u64).collect::<Vec<_>>());
    let last = get(&clients, &run).await.row.unwrap().sequence;
    assert_eq!(sequences.last(), Some(&last));
    let types: Vec<&str> = seen.iter().map(|event| event.r#type.as_str()).collect();
    for expected in ["RunSubmitted", "UnitPlanned", "RunPaused", "RunStopping", "RunAborted"] {
        assert!(types.contains(&expected), "{expected} in {types:?}");
    }
    assert_eq!(seen[0].summary, "run `p` submitted to project default");
    assert!(seen.iter().all(|event| event.json.starts_with('{') && !event.json.contains('\n')));

    // Whoever comes after the end sees the same, from where it wants to.
    assert_eq!(all(watch(&clients, &run, 0).await).await, seen);
    assert_eq!(all(watch(&clients, &run, 3).await).await, seen[3..]);
    let ahead = v1::RunServiceWatchRequest { run: run.clone(), after_sequence: last + 1 };
    let refusal = refused(clients.runs().watch(ahead).await);
    assert_eq!((refusal.grpc, refusal.code.as_str()), (Code::Aborted, "stale_sequence"));
}

/// P108: a watcher that does not read is told from where to watch again, and the run went on.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_is_told_to_resync_and_the_run_is_not_held_up() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["a"])).await;
    // On a connection of its own, whose window it fills by not reading.
    let mut slow = watch(&ground.narrow().await, &run, 0).await;
    let Some(Next::Event(first)) = within(slow.message()).await.unwrap().unwrap().next else {
        panic!("the first is an event")
    };
    assert_eq!(first.sequence, 1);
    // Far more than the queue and everything below it holds.
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let (clients, run) = (clients.clone(), run.clone());
            tokio::spawn(async move {
                for _ in 0..100 {
                    pause(&clients, &run).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let now = get(&clients, &run).await.row.unwrap().sequence;
    assert!(now > 3_200, "the run recorded every call: {now}");
    let mut last = 1;
    let resync = loop {
        match within(slow.message()).await.unwrap().expect("it ends with a resync").next.unwrap() {
            Next::Event(event) => {
                assert_eq!(event.sequence, last + 1);
                last = event.sequence;
            }
            Next::ResyncRequired(resync) => break resync.sequence,
        }
    };
    assert_eq!(resync, last);
    assert!(last < now, "it was not held in memory for the watcher");
    assert_eq!(within(slow.message()).await.unwrap(), None);
    // From there on nothing is missing.
    stop(&clients, &run).await;
    let rest = all(watch(&clients, &run, resync).await).await;
    assert_eq!(rest[0].sequence, resync + 1);
    assert_eq!(rest.last().unwrap().r#type, "RunAborted");
}

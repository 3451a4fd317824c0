//! What was before a restart is after it.

use ganger_coordinator::journal::{Journal, Options, StreamName};
use ganger_proto::client::Clients;
use ganger_proto::v1;

use crate::ground::{Ground, get, key, plan, submitted, word};

async fn runs(clients: &Clients) -> Vec<v1::RunRow> {
    clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap().into_inner().runs
}

/// P051: the list of runs is the same after a restart, finished runs included.
#[tokio::test]
async fn a_restart_changes_nothing_of_what_is_shown() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let (open, paused, stopped) = (
        submitted(&clients, &plan("open", &["a", "b"])).await,
        submitted(&clients, &plan("paused", &["a"])).await,
        submitted(&clients, &plan("stopped", &["a"])).await,
    );
    let pause = v1::RunServicePauseRequest {
        idempotency_key: key(),
        run: paused.clone(),
        reason: "lunch".into(),
        ..Default::default()
    };
    clients.runs().pause(pause.clone()).await.unwrap();
    let stop = v1::RunServiceStopRequest {
        idempotency_key: key(),
        run: stopped.clone(),
        reason: "enough".into(),
        ..Default::default()
    };
    clients.runs().stop(stop).await.unwrap();
    let cancel = v1::UnitServiceCancelRequest {
        idempotency_key: key(),
        run: open.clone(),
        unit: "b".into(),
        reason: "not wanted".into(),
        ..Default::default()
    };
    clients.units().cancel(cancel).await.unwrap();
    let before = runs(&clients).await;
    let mut views = Vec::new();
    for run in [&open, &paused, &stopped] {
        views.push(get(&clients, run).await);
    }

    ground.restart().await;
    let clients = ground.operator().await;
    assert_eq!(runs(&clients).await, before);
    for (run, view) in [&open, &paused, &stopped].into_iter().zip(views) {
        assert_eq!(get(&clients, run).await, view);
    }
    // A call of before the restart is still known.
    assert!(clients.runs().pause(pause).await.unwrap().into_inner().replayed);
}

/// P042: a caller that comes while runs are still folded waits for them, and is not told that its
/// run is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_come_while_runs_are_folded_find_their_runs() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(submitted(&clients, &plan("p", &["a", "b", "c"])).await);
    }
    ground.restart().await;
    let clients = ground.operator().await;
    for run in &all {
        assert_eq!(get(&clients, run).await.row.unwrap().state, "active");
    }
    assert_eq!(runs(&clients).await.len(), all.len());
}

/// A run that cannot be folded is set aside by name, and the others are not held up by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_folded_is_quarantined_and_the_others_go_on() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let (broken, whole) = (
        submitted(&clients, &plan("p", &["a"])).await,
        submitted(&clients, &plan("q", &["a"])).await,
    );
    let last = get(&clients, &broken).await.row.unwrap().sequence;
    ground.end().await;
    let (journal, _) = Journal::open(&ground.data().join("journal"), Options::default()).unwrap();
    let stream = StreamName::run(&broken).unwrap();
    journal.append(&stream, last, vec![r#"{"type":"OfALaterBuild"}"#.into()]).await.unwrap();
    journal.close().await.unwrap();

    ground.begin().await;
    let clients = ground.operator().await;
    let look = v1::RunServiceGetRequest { run: broken.clone() };
    assert_eq!(word(clients.runs().get(look.clone()).await), "quarantined");
    assert_eq!(get(&clients, &whole).await.row.unwrap().state, "active");
    // Nothing was repaired, so folding it again ends the same way.
    let resume = v1::RunServiceResumeRequest {
        idempotency_key: key(),
        run: broken.clone(),
        after_repair: true,
        ..Default::default()
    };
    assert_eq!(word(clients.runs().resume(resume).await), "quarantined");
    ground.restart().await;
    let clients = ground.operator().await;
    assert_eq!(word(clients.runs().get(look).await), "quarantined");
}

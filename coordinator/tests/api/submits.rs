//! A submit happens once, and its run is there at once.

use ganger_proto::v1;
use tonic::Code;

use crate::ground::{Ground, get, key, plan, refused, states, submit};

/// R167, R168: the answer comes at once and names the run; asking again is the same run.
/// P042: the same key at the same time, and again after a restart, is one run.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_one_run_whoever_asks_how_often_and_when() {
    let mut ground = Ground::start().await;
    let clients = ground.operator().await;
    let request = submit(&key(), &plan("p", &["a", "b"]));
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (clients, request) = (clients.clone(), request.clone());
            tokio::spawn(async move { clients.plans().submit(request).await.unwrap().into_inner() })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    let run = answers[0].run_id.clone();
    assert!(answers.iter().all(|answer| answer.run_id == run), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1, "{answers:?}");

    ground.restart().await;
    let clients = ground.operator().await;
    let again = clients.plans().submit(request).await.unwrap().into_inner();
    assert_eq!((again.run_id.as_str(), again.replayed), (run.as_str(), true));
    let listed = clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs.len(), 1);
}

/// P043: the same key with another body is refused with both digests; with the same it is answered.
#[tokio::test]
async fn a_key_with_another_body_is_refused_and_both_bodies_are_named() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let key = key();
    let first = submit(&key, &plan("p", &["a"]));
    let run = clients.plans().submit(first.clone()).await.unwrap().into_inner().run_id;
    let said = refused(clients.plans().submit(submit(&key, &plan("p", &["b"]))).await);
    assert_eq!((said.grpc, said.code.as_str()), (Code::AlreadyExists, "key_reused"));
    assert_ne!(said.metadata["first"], said.metadata["now"]);
    let again = clients.plans().submit(first).await.unwrap().into_inner();
    assert_eq!((again.run_id, again.replayed), (run, true));
}

#[tokio::test]
async fn a_run_is_found_as_soon_as_its_submit_is_answered() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    for _ in 0..50 {
        let run = clients.plans().submit(submit(&key(), &plan("p", &["a"]))).await.unwrap();
        let run = run.into_inner();
        assert_eq!(get(&clients, &run.run_id).await.row.unwrap().sequence, run.sequence);
    }
}

#[tokio::test]
async fn a_submit_without_a_key_is_refused_by_the_fields_name() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let said = refused(clients.plans().submit(submit("", &plan("p", &["a"]))).await);
    assert_eq!(said.metadata["field"], "idempotency_key");
}

#[tokio::test]
async fn a_refused_plan_leaves_its_key_free() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let key = key();
    let wrong = submit(&key, "version: 1\nname: p\n");
    assert_eq!(refused(clients.plans().submit(wrong).await).code, "plan_problems");
    let right = clients.plans().submit(submit(&key, &plan("p", &["a"]))).await.unwrap();
    assert!(!right.into_inner().replayed);
}

#[tokio::test]
async fn a_run_shows_its_plan_and_waits_for_a_worker() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let text = plan("sums", &["a", "b"]).replace("units:", "goal: Count.\nunits:");
    let run = clients.plans().submit(submit(&key(), &text)).await.unwrap().into_inner();
    let view = get(&clients, &run.run_id).await;
    let row = view.row.clone().unwrap();
    assert_eq!((row.name.as_str(), row.state.as_str()), ("sums", "active"));
    assert_eq!((row.sequence, view.goal.as_str()), (run.sequence, "Count."));
    assert_eq!(states(&view), [("a", "ready"), ("b", "pending")]);
    let waiting = view.units[0].waiting_for.as_deref();
    assert_eq!(waiting, Some("no worker is attached and open for work"));
    // The plan text is kept as it was sent.
    let plan = view.plan.unwrap();
    let download = v1::ArtifactServiceDownloadRequest { sha256: plan.sha256, ..Default::default() };
    let mut chunks = clients.artifacts().download(download).await.unwrap().into_inner();
    assert_eq!(chunks.message().await.unwrap().unwrap().data, text.as_bytes());
}

#[tokio::test]
async fn files_a_plan_names_must_be_there_before_it() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let mut request = submit(&key(), &plan("p", &["a"]));
    let absent = ganger_shared::digest::ArtifactRef::of(b"a script");
    request.attachments.insert("script.yaml".into(), absent.into());
    let said = refused(clients.plans().submit(request.clone()).await);
    // Either the plan has no use for the file, or it was not uploaded: both are said before a run is.
    assert!(["artifact_missing", "plan_problems"].contains(&said.code.as_str()), "{said:?}");
    let listed = clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs, []);
}

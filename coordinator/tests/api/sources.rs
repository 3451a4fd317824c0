//! Repositories: a submitted base stands in the mirror, and travels from there as bundles.

use ganger_git::{Git, Limits, Source};
use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_shared::ids::CommitId;
use tonic::Code;

use crate::ground::{Ground, get, key, refused, submit, upload, word};

/// A repository of one file, its commit, and a bundle of it.
async fn repository(ground: &Ground) -> (CommitId, Vec<u8>) {
    let git = Git::find(Limits::default()).await.unwrap();
    let files = ground.dir().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("README.md"), "words\n").unwrap();
    let source = Source::seed(&git, &files, &ground.dir().join("source")).await.unwrap();
    let base = source.resolve("main").await.unwrap();
    let out = ground.dir().join("base.bundle");
    source.bundle(&out, &base, &[]).await.unwrap();
    (base, std::fs::read(out).unwrap())
}

fn request(base: &CommitId, bundle: Option<v1::ArtifactRef>) -> v1::PlanServiceSubmitRequest {
    let plan = "version: 1\nname: p\nmode: autonomous\nrepository: { url: . }\nunits:\n  - { id: a, kind: command, run: make, files: [\"src/**\"], checks: [{ name: t, run: make test }] }\ndelivery: { mode: branch }\n";
    v1::PlanServiceSubmitRequest {
        repository: Some(v1::SubmittedRepository {
            id: "words".into(),
            shown: "/home/anna/words".into(),
            base: base.to_string(),
            base_name: "main".into(),
            bundle,
        }),
        ..submit(&key(), plan)
    }
}

async fn bundle(clients: &Clients, want: &CommitId, have: &[&CommitId]) -> Option<v1::ArtifactRef> {
    let request = v1::SourceServiceBundleRequest {
        repository: "words".into(),
        want: want.to_string(),
        have: have.iter().map(ToString::to_string).collect(),
    };
    clients.sources().bundle(request).await.unwrap().into_inner().bundle
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitted_base_stands_in_the_mirror_and_travels_to_workers() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let (base, bytes) = repository(&ground).await;
    let artifact = upload(&clients, &bytes).await;
    let run = clients.plans().submit(request(&base, Some(artifact))).await.unwrap().into_inner();
    let view = get(&clients, &run.run_id).await;
    let branch = format!("ganger/{}", run.run_id);
    assert_eq!(view.branch.as_deref(), Some(branch.as_str()));
    assert_eq!(view.tip.as_deref(), Some(base.as_str()));
    assert_eq!(view.repository.as_deref(), Some("/home/anna/words"));

    let worker = ground.worker().await;
    let have = v1::SourceServiceHaveRequest {
        repository: "words".into(),
        commits: vec!["b".repeat(40), base.to_string()],
    };
    let held = worker.sources().have(have).await.unwrap().into_inner().held;
    assert_eq!(held, [base.to_string()]);
    let sent = bundle(&worker, &base, &[]).await.unwrap();
    let stat = v1::ArtifactServiceStatRequest { sha256: sent.sha256 };
    let stat = worker.artifacts().stat(stat).await.unwrap().into_inner();
    assert_eq!((stat.complete, stat.received), (true, sent.bytes));
    assert_eq!(bundle(&worker, &base, &[&base]).await, None);
    assert_eq!(std::fs::read_dir(ground.data().join("scratch")).unwrap().count(), 0);

    // The mirror holds the base now: the next submit needs no bundle.
    clients.plans().submit(request(&base, None)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_is_nowhere_is_refused_before_there_is_a_run() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let (base, bytes) = repository(&ground).await;
    let said = refused(clients.plans().submit(request(&base, None)).await);
    assert_eq!((said.grpc, said.code.as_str()), (Code::FailedPrecondition, "repository_unusable"));
    let absent = ganger_shared::digest::ArtifactRef::of(&bytes);
    let said = refused(clients.plans().submit(request(&base, Some(absent.into()))).await);
    assert_eq!(said.code, "artifact_missing");
    let broken = upload(&clients, b"no bundle at all").await;
    assert_eq!(
        word(clients.plans().submit(request(&base, Some(broken))).await),
        "repository_unusable"
    );
    let listed = clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs, []);
    let have = v1::SourceServiceHaveRequest {
        repository: "never-seen".into(),
        commits: vec![base.to_string()],
    };
    assert_eq!(clients.sources().have(have).await.unwrap().into_inner().held, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_handed_out_when_it_may_be() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let (base, bytes) = repository(&ground).await;
    let artifact = upload(&clients, &bytes).await;
    let run = clients.plans().submit(request(&base, Some(artifact))).await.unwrap().into_inner();
    let apply = |have: Vec<String>| v1::DeliveryServiceApplyRequest {
        idempotency_key: key(),
        run: run.run_id.clone(),
        have,
        expected_sequence: None,
    };
    let submitter = ground.of_role(v1::Role::Submit).await;
    let early = refused(submitter.deliveries().apply(apply(vec![])).await);
    assert_eq!((early.code.as_str(), early.metadata["state"].as_str()), ("wrong_state", "active"));
    let handed = clients.deliveries().apply(apply(vec![])).await.unwrap().into_inner();
    assert_eq!((handed.branch, handed.tip), (format!("ganger/{}", run.run_id), base.to_string()));
    assert!(handed.bundle.is_some());
    let known = clients.deliveries().apply(apply(vec![base.to_string()])).await.unwrap();
    assert_eq!(known.into_inner().bundle, None);
}

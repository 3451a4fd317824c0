//! Workers as people see them; the worker is played, from its `Hello` on.

use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_proto::v1::worker_message::Say;
use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::{InstanceId, WorkerId};
use ganger_shared::link::{Hello, PROTOCOL, PROTOCOL_MIN, WorkerSays};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::ground::{Ground, get, key, refused, submit, submitted, within};

/// A worker that says hello, takes what it is given and never does anything about it.
struct Played {
    says: mpsc::Sender<v1::WorkerMessage>,
    hears: Streaming<v1::CoordinatorMessage>,
}

fn hello(name: &str) -> Hello {
    let agent = AgentFacts {
        name: "scripted".into(),
        adapter: "scripted".into(),
        version: Some("1.2".into()),
    };
    Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL,
        facts: WorkerFacts {
            worker: WorkerId::parse(&format!("w-{name}")).unwrap(),
            instance: InstanceId::parse("i-1").unwrap(),
            name: name.to_owned(),
            labels: [("os".to_owned(), "linux".to_owned())].into(),
            slots: 2,
            agents: vec![agent],
            build: "test".into(),
        },
        live: vec![],
        finished: vec![],
        seen: None,
        sent_at: ganger_shared::time::Timestamp::default(),
    }
}

impl Played {
    async fn attach(ground: &Ground, hello: Hello) -> Self {
        let (says, out) = mpsc::channel(8);
        says.send(WorkerSays::Hello(Box::new(hello)).into()).await.unwrap();
        let clients = ground.worker().await;
        let hears = clients.link().attach(ReceiverStream::new(out)).await.unwrap().into_inner();
        let mut played = Self { says, hears };
        within(played.hears.message()).await.unwrap().expect("a welcome");
        played
    }
}

async fn workers(clients: &Clients, filter: v1::WorkerFilter) -> Vec<(String, String)> {
    let request = v1::FleetServiceListRequest { filter: Some(filter), ..Default::default() };
    let answer = clients.fleet().list(request).await.unwrap().into_inner();
    answer.workers.into_iter().map(|worker| (worker.name, worker.state)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_closed_and_opened_again() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let played = Played::attach(&ground, hello("anna")).await;
    let live = |state: &str| vec![("anna".to_owned(), state.to_owned())];
    assert_eq!(workers(&clients, v1::WorkerFilter::default()).await, live("live"));
    let closing = |worker: &str| v1::FleetServiceCordonRequest {
        idempotency_key: key(),
        worker: worker.to_owned(),
        ..Default::default()
    };
    clients.fleet().cordon(closing("anna")).await.unwrap();
    let states = vec!["cordoned".to_owned()];
    let filter = v1::WorkerFilter { states, ..Default::default() };
    assert_eq!(workers(&clients, filter).await, live("cordoned"));
    let drain = v1::FleetServiceDrainRequest {
        idempotency_key: key(),
        worker: "w-anna".into(),
        ..Default::default()
    };
    clients.fleet().drain(drain.clone()).await.unwrap();
    assert_eq!(workers(&clients, v1::WorkerFilter::default()).await, live("draining"));
    let timed = v1::FleetServiceDrainRequest { timeout_ms: 5, ..drain };
    assert_eq!(refused(clients.fleet().drain(timed).await).code, "not_supported_yet");
    let open = v1::FleetServiceUncordonRequest {
        idempotency_key: key(),
        worker: "anna".into(),
        ..Default::default()
    };
    clients.fleet().uncordon(open).await.unwrap();
    assert_eq!(workers(&clients, v1::WorkerFilter::default()).await, live("live"));
    let near = refused(clients.fleet().cordon(closing("ana")).await);
    assert!(near.message.contains("did you mean `anna`?"), "{}", near.message);
    let reader = ground.of_role(v1::Role::Read).await;
    assert_eq!(refused(reader.fleet().cordon(closing("anna")).await).code, "forbidden");
    drop(played.says);
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_say_what_plans_may_ask_for_and_plans_are_held_against_it() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let mut with_another = hello("anna");
    with_another.facts.agents[0].name = "another".into();
    let played = Played::attach(&ground, with_another).await;
    let assets = clients.fleet().assets(v1::FleetServiceAssetsRequest {}).await.unwrap();
    let assets = assets.into_inner();
    let agents: Vec<_> = assets
        .agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.adapter.as_str(), agent.versions.join(",")))
        .collect();
    assert_eq!(agents, [("another", "scripted", "1.2".to_owned())]);
    assert_eq!((assets.slots, assets.busy), (2, 0));
    assert_eq!(assets.labels[0].key, "os");
    let text = "version: 1\nname: p\nmode: autonomous\nunits:\n  - { id: a, kind: agent, objective: Think., agent: { name: scrypted } }\n";
    let said = refused(clients.plans().submit(submit(&key(), text)).await);
    assert!(said.problems.iter().any(|problem| problem.message.contains("scrypted")), "{said:?}");
    drop(played.says);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_units_attempt_and_what_is_missing_for_the_next_are_shown() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let mut played = Played::attach(&ground, hello("anna")).await;
    let picky = "version: 1\nname: p\nmode: autonomous\nunits:\n  - { id: a, kind: command, run: make }\n  - { id: b, kind: command, run: make, requires: { labels: { os: plan9 } } }\n";
    let run = submitted(&clients, picky).await;
    let assigned = within(played.hears.message()).await.unwrap().expect("an assignment");
    assert!(format!("{assigned:?}").contains("a/main/1"), "{assigned:?}");
    let view = get(&clients, &run).await;
    assert_eq!(view.units[0].attempts[0].worker, "w-anna");
    assert_eq!(view.units[1].waiting_for.as_deref(), Some("no worker offers label os=plan9"));
    let result = v1::UnitServiceGetResultRequest {
        run: run.clone(),
        unit: "a".into(),
        attempt: "a/main/1".into(),
    };
    let result = clients.units().get_result(result).await.unwrap().into_inner();
    assert_eq!(result.attempt.unwrap().state, "leased");
    let absent = v1::UnitServiceGetResultRequest {
        run: run.clone(),
        unit: "a".into(),
        attempt: "a/main/2".into(),
    };
    assert_eq!(refused(clients.units().get_result(absent).await).code, "unknown_attempt");
    let snapshot = v1::RunServiceWaitRequest { run, timeout_ms: 1, ..Default::default() };
    let snapshot = clients.runs().wait(snapshot).await.unwrap().into_inner().snapshot.unwrap();
    assert_eq!(snapshot.running, ["a"]);
    drop(played.says);
}

#[tokio::test]
async fn a_second_process_with_a_live_workers_identity_is_refused() {
    let ground = Ground::start().await;
    let played = Played::attach(&ground, hello("anna")).await;
    let mut other = hello("anna");
    other.facts.instance = InstanceId::parse("i-2").unwrap();
    let (says, out) = mpsc::channel(8);
    says.send(v1::WorkerMessage::from(WorkerSays::Hello(Box::new(other)))).await.unwrap();
    let clients = ground.worker().await;
    let said = refused(clients.link().attach(ReceiverStream::new(out)).await);
    assert_eq!(said.code, "worker_refused");
    assert!(said.message.contains("two processes share one data directory"), "{}", said.message);
    let none = v1::WorkerMessage { say: Some(Say::Goodbye(v1::Goodbye::default())) };
    let (says, out) = mpsc::channel(8);
    says.send(none).await.unwrap();
    assert_eq!(refused(clients.link().attach(ReceiverStream::new(out)).await).code, "no_hello");
    drop(played.says);
}

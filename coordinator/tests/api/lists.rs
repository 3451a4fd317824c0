//! Lists: paged, filtered, in order, and names that fit one run, several or none.

use ganger_proto::v1;
use tonic::Code;

use crate::ground::{Ground, key, plan, refused, submitted, word};

fn names(rows: &[v1::RunRow]) -> Vec<&str> {
    rows.iter().map(|row| row.name.as_str()).collect()
}

#[tokio::test]
async fn pages_show_every_run_once_as_the_list_was_when_it_was_begun() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    for name in ["a", "b", "c", "d", "e"] {
        submitted(&clients, &plan(name, &["u"])).await;
    }
    let mut request = v1::RunServiceListRequest { page_size: 2, ..Default::default() };
    let mut page = clients.runs().list(request.clone()).await.unwrap().into_inner();
    let (mut seen, sequence) = (page.runs.clone(), page.sequence);
    // A run that comes later is not on the pages that follow, and none is shown twice for it.
    submitted(&clients, &plan("late", &["u"])).await;
    while !page.next_page_token.is_empty() {
        request.page_token = page.next_page_token;
        page = clients.runs().list(request.clone()).await.unwrap().into_inner();
        assert_eq!(page.sequence, sequence);
        seen.extend(page.runs.clone());
    }
    assert_eq!(names(&seen), ["e", "d", "c", "b", "a"]);
}

#[tokio::test]
async fn lists_are_filtered_and_ordered_as_asked() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let red = plan("red", &["u"]).replace("units:", "labels: { team: tools }\nunits:");
    let green = plan("green", &["u"]).replace("units:", "project: other\nunits:");
    let red = submitted(&clients, &red).await;
    submitted(&clients, &green).await;
    let stop = v1::RunServiceStopRequest {
        idempotency_key: key(),
        run: red,
        reason: "enough".into(),
        ..Default::default()
    };
    clients.runs().stop(stop).await.unwrap();
    let list = |filter: v1::RunFilter, order_by: &str| {
        let mut runs = clients.runs();
        let order_by = order_by.to_owned();
        let request =
            v1::RunServiceListRequest { filter: Some(filter), order_by, ..Default::default() };
        async move { runs.list(request).await.map(tonic::Response::into_inner) }
    };
    let found = list(v1::RunFilter::default(), "name").await.unwrap().runs;
    assert_eq!(names(&found), ["green", "red"]);
    let found = list(v1::RunFilter::default(), "submitted_at").await.unwrap().runs;
    assert_eq!(names(&found), ["red", "green"]);
    let states = vec!["aborted".to_owned()];
    let found = list(v1::RunFilter { states, ..Default::default() }, "").await.unwrap().runs;
    assert_eq!(names(&found), ["red"]);
    let labels = [("team".to_owned(), "tools".to_owned())].into();
    let found = list(v1::RunFilter { labels, ..Default::default() }, "").await.unwrap().runs;
    assert_eq!(names(&found), ["red"]);
    let project = "other".to_owned();
    let found = list(v1::RunFilter { project, ..Default::default() }, "").await.unwrap().runs;
    assert_eq!(names(&found), ["green"]);
    let states = vec!["abortd".to_owned()];
    let slip = list(v1::RunFilter { states, ..Default::default() }, "").await.unwrap_err();
    assert!(slip.message().contains("`abortd` is none of"), "{}", slip.message());
    let order = list(v1::RunFilter::default(), "size").await.unwrap_err();
    assert_eq!(order.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_page_beyond_the_bound_and_a_strange_token_are_refused() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let large = v1::RunServiceListRequest { page_size: 501, ..Default::default() };
    assert_eq!(refused(clients.runs().list(large).await).metadata["field"], "page_size");
    let strange = v1::RunServiceListRequest { page_token: "x".into(), ..Default::default() };
    assert_eq!(refused(clients.runs().list(strange).await).metadata["field"], "page_token");
    let gone = v1::RunServiceListRequest { page_token: "x.1".into(), ..Default::default() };
    assert_eq!(word(clients.runs().list(gone).await), "page_token_expired");
}

#[tokio::test]
async fn a_run_is_known_by_a_unique_beginning_of_its_id() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let run = submitted(&clients, &plan("p", &["u"])).await;
    let get = |name: &str| {
        let mut runs = clients.runs();
        let run = name.to_owned();
        async move { runs.get(v1::RunServiceGetRequest { run }).await }
    };
    let found = get(&run[..10]).await.unwrap().into_inner().run.unwrap().row.unwrap();
    assert_eq!(found.id, run);
    let none = refused(get("r-zzzz").await);
    assert_eq!((none.grpc, none.code.as_str()), (Code::NotFound, "unknown_run"));
    submitted(&clients, &plan("q", &["u"])).await;
    let several = refused(get("r-").await);
    assert_eq!(several.code, "ambiguous_run");
    assert_eq!(several.metadata["candidates"].split(',').count(), 2);
    assert_eq!(get(&run).await.unwrap().into_inner().run.unwrap().row.unwrap().id, run);
}

#[tokio::test]
async fn an_empty_fleet_says_so() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    submitted(&clients, &plan("p", &["u", "v"])).await;
    let fleet = clients.fleet().list(v1::FleetServiceListRequest::default()).await.unwrap();
    let fleet = fleet.into_inner();
    assert_eq!(fleet.workers, []);
    let wanted: Vec<_> = fleet.demand.iter().map(|demand| (demand.wanted, demand.free)).collect();
    assert_eq!(wanted, [(1, 0)]);
    let assets = clients.fleet().assets(v1::FleetServiceAssetsRequest {}).await.unwrap();
    let assets = assets.into_inner();
    assert_eq!((assets.slots, assets.agents.len()), (0, 0));
    assert_eq!(assets.limits["plan_bytes"], 4 << 20);
    let cordon = v1::FleetServiceCordonRequest {
        idempotency_key: key(),
        worker: "nobody".into(),
        ..Default::default()
    };
    assert_eq!(word(clients.fleet().cordon(cordon).await), "unknown_worker");
}

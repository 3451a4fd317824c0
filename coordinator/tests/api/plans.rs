//! What authors of plans are told through the API.

use ganger_proto::v1;
use ganger_shared::limits::Limits;
use ganger_shared::problem::Problem;

use crate::ground::{Ground, key, plan, refused, submit};

fn check(plan: &[u8]) -> v1::PlanServiceCheckRequest {
    v1::PlanServiceCheckRequest { plan: plan.to_vec(), ..Default::default() }
}

#[tokio::test]
async fn every_problem_comes_with_its_line_and_column() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let text = "version: 1\nname: p\nmode: autonomous\nunits:\n  - { id: a, kind: command, runn: make }\n  - { id: b, kind: command, run: make, after: [nobody] }\n";
    let checked = clients.plans().check(check(text.as_bytes())).await.unwrap().into_inner();
    let problems: Vec<Problem> =
        checked.problems.into_iter().map(|problem| problem.try_into().unwrap()).collect();
    let places: Vec<_> =
        problems.iter().map(|p| (p.code.as_str(), p.line, p.column.is_some())).collect();
    assert!(places.contains(&("unknown_key", Some(5), true)), "{problems:#?}");
    let submitting = refused(clients.plans().submit(submit(&key(), text)).await);
    assert_eq!(submitting.code, "plan_problems");
    assert_eq!(submitting.problems, problems);
    assert_eq!(submitting.problems_total, problems.len());
}

#[tokio::test]
async fn checking_changes_nothing() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let good = clients.plans().check(check(plan("p", &["a"]).as_bytes())).await.unwrap();
    let errors = good.into_inner().problems;
    let errors = errors.iter().filter(|p| p.severity == i32::from(v1::Severity::Error));
    assert_eq!(errors.count(), 0);
    let listed = clients.runs().list(v1::RunServiceListRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs, []);
}

#[tokio::test]
async fn a_plan_above_the_limit_is_refused_by_the_limits_name() {
    let limits = Limits { plan_bytes: 1_000, ..Limits::default() };
    let ground = Ground::with(|config| config.limits = limits).await;
    let clients = ground.operator().await;
    let long = plan("p", &["a"]) + &"# much to say\n".repeat(100);
    let said = refused(clients.plans().submit(submit(&key(), &long)).await);
    assert_eq!(said.problems.len(), 1);
    assert!(said.problems[0].message.contains("1000 are allowed (limit plan_bytes)"), "{said:?}");
}

#[tokio::test]
async fn a_plan_that_is_not_utf_8_is_refused_at_its_byte() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let answer = clients.plans().check(check(b"version: 1\nname: \xff\n")).await.unwrap();
    let problems = answer.into_inner().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].message, "the plan is not UTF-8 from byte 17 on");
}

#[tokio::test]
async fn a_plan_and_its_repository_come_together_or_not_at_all() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let with = "version: 1\nname: p\nmode: autonomous\nrepository: { url: . }\nunits:\n  - { id: a, kind: command, run: make, checks: [{ name: t, run: make test }] }\n";
    let said = refused(clients.plans().submit(submit(&key(), with)).await);
    let messages: Vec<_> =
        said.problems.iter().filter(|p| p.is_error()).map(|p| &p.message).collect();
    assert_eq!(messages, ["the plan names a repository, and the client sent none with it"]);
    let mut request = submit(&key(), &plan("p", &["a"]));
    request.repository = Some(v1::SubmittedRepository {
        id: "r1".into(),
        shown: "/src".into(),
        base: "a".repeat(40),
        base_name: "main".into(),
        bundle: None,
    });
    let said = refused(clients.plans().submit(request).await);
    let messages: Vec<_> =
        said.problems.iter().filter(|p| p.is_error()).map(|p| &p.message).collect();
    assert_eq!(messages, ["the client sent a repository, and the plan names none"]);
}

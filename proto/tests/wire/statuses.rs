//! Refusals over gRPC: every word, id and problem reaches the client, in a size that arrives.

use ganger_proto::limits::DETAILS_BYTES;
use ganger_proto::read::Word;
use ganger_proto::status::{self, DRAINING, MALFORMED, UNAUTHENTICATED};
use ganger_proto::{Malformed, Reason, Refusal};
use ganger_shared::actor::Role;
use ganger_shared::problem::{Code, Problem};
use ganger_shared::rejection::Rejection;
use tonic::Status;
use tonic_types::StatusExt as _;

use crate::samples::Gen;

type Case = (Rejection, tonic::Code, (&'static str, String));

fn case(rejection: Rejection, grpc: tonic::Code, name: &'static str, value: &str) -> Case {
    (rejection, grpc, (name, value.to_owned()))
}

/// One of each rejection, the status code it has, and one thing its metadata must say.
fn rejections() -> Vec<Case> {
    let mut all = unknown();
    all.extend(wrong());
    all.extend(closed());
    all
}

/// What is asked for is not there.
fn unknown() -> Vec<Case> {
    use tonic::Code::{InvalidArgument, NotFound};
    let run = Gen(7).run();
    let text = str::to_owned;
    let ambiguous = Rejection::AmbiguousRun { run: text("r-"), candidates: vec![run.clone()] };
    let nearest = Some("test".parse().unwrap());
    let unit = Rejection::UnknownUnit { run: run.clone(), unit: text("tset"), nearest };
    let attempt = Rejection::UnknownAttempt { run: run.clone(), attempt: text("a/main/9") };
    vec![
        case(Rejection::UnknownRun { run: text("r-x") }, NotFound, "run", "r-x"),
        case(ambiguous, InvalidArgument, "candidates", run.as_str()),
        case(unit, NotFound, "nearest", "test"),
        case(attempt, NotFound, "attempt", "a/main/9"),
    ]
}

/// What is asked for does not fit.
fn wrong() -> Vec<Case> {
    use tonic::Code::{Aborted, AlreadyExists, FailedPrecondition, InvalidArgument};
    let attempt = Gen(8).attempt();
    let text = str::to_owned;
    let running = Rejection::WrongState {
        what: text("unit a"),
        state: text("running"),
        command: "accept",
        needs: "delivered",
    };
    let stale = Rejection::StaleSequence { what: text("unit a"), expected: 4, current: 9 };
    let key = Rejection::KeyReused { key: text("k"), first: text("1"), now: text("2") };
    let over = Rejection::StaleAttempt { attempt: attempt.clone() };
    vec![
        case(Rejection::Plan { problems: problems(2, "x") }, InvalidArgument, "problems", "2"),
        case(running, FailedPrecondition, "needs", "delivered"),
        case(stale, Aborted, "current", "9"),
        case(key, AlreadyExists, "key", "k"),
        case(over, FailedPrecondition, "attempt", &attempt.to_string()),
    ]
}

/// What is asked for cannot be had from here, or now.
fn closed() -> Vec<Case> {
    use tonic::Code::{
        FailedPrecondition, PermissionDenied, ResourceExhausted, Unavailable, Unimplemented,
    };
    let run = Gen(9).run();
    let text = str::to_owned;
    let forbidden =
        Rejection::Forbidden { principal: text("anna"), has: Role::Read, needs: Role::Judge };
    let quarantined = Rejection::Quarantined { run: run.clone(), reason: text("bad fold") };
    let journal = Rejection::Journal { reason: text("disk full") };
    vec![
        case(forbidden, PermissionDenied, "needs", "judge"),
        case(Rejection::NotSupportedYet { what: "race" }, Unimplemented, "what", "race"),
        case(quarantined, FailedPrecondition, "run", run.as_str()),
        case(Rejection::Busy { what: "queue", limit: 64 }, ResourceExhausted, "limit", "64"),
        case(journal, Unavailable, "reason", "disk full"),
    ]
}

pub fn problems(count: usize, message: &str) -> Vec<Problem> {
    (0..count)
        .map(|at| {
            Problem::error(Code::UnknownKey, format!("units[{at}].chekcs"), message)
                .with_fix("write `checks`")
                .at(Some((7, 5)))
        })
        .collect()
}

#[test]
fn a_rejection_reaches_the_client_with_its_word_and_its_ids() {
    for (rejection, grpc, (name, value)) in rejections() {
        let refusal = Refusal::from(status::of(&rejection));
        assert_eq!(refusal.code, rejection.code());
        assert_eq!(refusal.message, rejection.to_string());
        assert_eq!(refusal.grpc, grpc, "{rejection}");
        assert_eq!(refusal.metadata.get(name), Some(&value), "{rejection}");
        assert!(refusal.ours && !refusal.is_unreachable(), "{rejection}");
    }
}

#[test]
fn a_refused_plan_reaches_the_client_with_line_and_column() {
    let problems = problems(3, "the schema knows no key `chekcs`");
    let refusal = Refusal::from(status::of(&Rejection::Plan { problems: problems.clone() }));
    assert_eq!(refusal.problems, problems);
    assert_eq!(refusal.problems_total, 3);
    let fields: Vec<_> = refusal.fields.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["units[0].chekcs", "units[1].chekcs", "units[2].chekcs"]);
}

#[test]
fn details_stay_small_whatever_is_wrong() {
    let long = "ü".repeat(10_000);
    let large = [
        Rejection::Plan { problems: problems(10_000, "wrong") },
        Rejection::Plan { problems: problems(100, &long) },
        Rejection::UnknownRun { run: long.clone() },
        Rejection::KeyReused { key: long.clone(), first: long.clone(), now: long.clone() },
        Rejection::StaleSequence { what: long.clone(), expected: 1, current: 2 },
    ];
    for rejection in large {
        let status = status::of(&rejection);
        assert!(status.details().len() <= DETAILS_BYTES, "{}", rejection.code());
        let refusal = Refusal::from(status);
        if let Rejection::Plan { problems } = rejection {
            assert_eq!(refusal.problems_total, problems.len());
            assert!(!refusal.problems.is_empty());
        }
    }
}

/// Clients in other languages read the standard details.
#[test]
fn standard_details_say_what_failed() {
    let stale = Rejection::StaleSequence { what: "unit a".to_owned(), expected: 4, current: 9 };
    let failure = status::of(&stale).get_details_precondition_failure().unwrap();
    assert_eq!(failure.violations[0].r#type, "stale_sequence");
    assert_eq!(failure.violations[0].subject, "unit a");
    let busy = status::of(&Rejection::Busy { what: "queue", limit: 64 });
    assert!(busy.get_details_retry_info().unwrap().retry_delay.is_some());
    assert_eq!(busy.get_details_quota_failure().unwrap().violations[0].subject, "queue");
}

#[test]
fn a_malformed_message_is_a_bad_request_for_its_field() {
    let malformed = Malformed::new("work", Reason::Missing).within("live[2]").within("hello");
    let refusal = Refusal::from(Status::from(malformed));
    assert_eq!(refusal.code, MALFORMED);
    assert_eq!(refusal.grpc, tonic::Code::InvalidArgument);
    assert_eq!(refusal.message, "malformed hello.live[2].work: it is missing");
    let field = ("hello.live[2].work".to_owned(), "it is missing".to_owned());
    assert_eq!(refusal.fields, [field]);
}

#[test]
fn only_silence_and_goodbye_are_unreachable() {
    let unreachable = |status: &Status| Refusal::from(status).is_unreachable();
    // What a killed server looks like from a client.
    assert!(unreachable(&Status::unknown("h2 protocol error")));
    assert!(unreachable(&Status::unavailable("tcp connect error")));
    assert!(unreachable(&status::plain(tonic::Code::Unavailable, DRAINING, "going away")));
    let token = status::plain(tonic::Code::Unauthenticated, UNAUTHENTICATED, "no token");
    assert!(!unreachable(&token));
    assert!(!unreachable(&Status::not_found("somebody else's")));
}

#[test]
fn an_unknown_problem_of_a_newer_coordinator_is_counted() {
    assert!(Code::from_wire(999).is_err());
    let status = status::of(&Rejection::Plan { problems: problems(1, "wrong") });
    let refusal = Refusal::from(Status::with_details(
        status.code(),
        status.message(),
        spoiled(status.details()).into(),
    ));
    assert_eq!((refusal.problems.len(), refusal.problems_total), (0, 1));
    assert_eq!(refusal.fields.len(), 1);
}

/// The same details with a problem code this build does not know.
fn spoiled(details: &[u8]) -> Vec<u8> {
    use prost::Message as _;
    let mut status = tonic_types::pb::Status::decode(details).unwrap();
    let detail =
        status.details.iter_mut().find(|any| any.type_url.ends_with("PlanRefusal")).unwrap();
    let mut plan = ganger_proto::v1::PlanRefusal::decode(detail.value.as_slice()).unwrap();
    plan.problems[0].code = 999;
    detail.value = plan.encode_to_vec();
    status.encode_to_vec()
}

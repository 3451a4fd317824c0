//! What is malformed is refused by the name of the field.

use std::fmt::Debug;

use ganger_proto::read::Word;
use ganger_proto::v1::{self, coordinator_message, report, worker_message};
use ganger_proto::{Malformed, Reason};
use ganger_shared::failure::FailureClass;
use ganger_shared::link::{CoordinatorSays, WorkerSays};
use ganger_shared::verdict::Verdict;
use ganger_shared::view::RunView;
use ganger_shared::{actor, delivery, ledger, link, plan, problem, verdict};

use crate::samples::{self, Gen};
use crate::views;

/// The refusal of a message after something was done to it.
fn refusal<W, T>(mut wire: W, spoil: impl FnOnce(&mut W)) -> String
where
    T: TryFrom<W, Error = Malformed> + Debug,
{
    spoil(&mut wire);
    T::try_from(wire).unwrap_err().to_string()
}

fn hello(spoil: impl FnOnce(&mut v1::Hello)) -> String {
    let mut hello = v1::Hello::from(samples::hello(&mut Gen(1)));
    let lease = Gen(2).lease();
    hello.live = vec![lease.clone().into(), lease.into()];
    spoil(&mut hello);
    let message = v1::WorkerMessage { say: Some(worker_message::Say::Hello(hello)) };
    refusal::<_, WorkerSays>(message, |_| ())
}

#[test]
fn a_malformed_hello_is_refused_by_the_path_of_the_field() {
    assert_eq!(
        hello(|hello| hello.facts.as_mut().unwrap().worker = "no spaces".to_owned()),
        "malformed hello.facts.worker: `no spaces` is not a worker id: \
         1 to 128 letters, digits, `-`, `_` or `.`"
    );
    assert_eq!(
        hello(|hello| hello.live[1].work = "unit".to_owned()),
        "malformed hello.live[1].work: `unit` is not a attempt id: `unit/lane/n`, n from 1"
    );
    assert_eq!(hello(|hello| hello.facts = None), "malformed hello.facts: it is missing");
    assert_eq!(hello(|hello| hello.sent_at = None), "malformed hello.sent_at: it is missing");
    assert_eq!(hello(|hello| hello.sent_at.as_mut().unwrap().nanos = -1), {
        let seconds = samples::hello(&mut Gen(1)).sent_at.unix_ms().div_euclid(1_000);
        format!("malformed hello.sent_at: {seconds}s and -1ns is not a time")
    });
}

#[test]
fn a_message_that_says_nothing_is_refused() {
    assert_eq!(
        refusal::<_, WorkerSays>(v1::WorkerMessage { say: None }, |_| ()),
        "malformed worker_message: it is missing"
    );
    assert_eq!(
        refusal::<_, CoordinatorSays>(v1::CoordinatorMessage { say: None }, |_| ()),
        "malformed coordinator_message: it is missing"
    );
}

fn failed(spoil: impl FnOnce(&mut v1::Failed)) -> String {
    let mut failed = v1::Failed {
        ending: Some(v1::Ending::default()),
        failure: Some(v1::Failure { class: 1, message: String::new() }),
        left: None,
        usage: Some(v1::Usage::default()),
    };
    spoil(&mut failed);
    let fact = Some(report::Fact::Failed(failed));
    let report = v1::Report { lease: Some(Gen(3).lease().into()), number: 1, fact };
    let message = v1::WorkerMessage { say: Some(worker_message::Say::Report(report)) };
    refusal::<_, WorkerSays>(message, |_| ())
}

#[test]
fn a_malformed_report_is_refused_by_the_path_of_the_field() {
    assert_eq!(
        failed(|failed| failed.failure.as_mut().unwrap().class = 0),
        "malformed report.failed.failure.class: it is unspecified"
    );
    assert_eq!(
        failed(|failed| failed.failure.as_mut().unwrap().class = 999),
        "malformed report.failed.failure.class: 999 is no value this build knows"
    );
    assert_eq!(
        failed(|failed| failed.usage = None),
        "malformed report.failed.usage: it is missing"
    );
    assert_eq!(
        failed(|failed| failed.ending = None),
        "malformed report.failed.ending: it is missing"
    );
    let output = v1::ArtifactRef { sha256: "AB".to_owned(), bytes: 2 };
    assert_eq!(
        failed(|failed| failed.ending.as_mut().unwrap().output = Some(output)),
        "malformed report.failed.ending.output.sha256: `AB` is not a SHA-256: 64 lowercase hex digits"
    );
}

#[test]
fn what_a_coordinator_may_not_leave_open_is_refused() {
    let lease = || Some(v1::Lease::from(Gen(4).lease()));
    let says = |say| v1::CoordinatorMessage { say: Some(say) };
    let stop = v1::Stop { lease: lease(), reason: 0, now: false };
    assert_eq!(
        refusal::<_, CoordinatorSays>(says(coordinator_message::Say::Stop(stop)), |_| ()),
        "malformed stop.reason: it is unspecified"
    );
    let answered = v1::Answered { lease: lease(), number: 1, answer: 77, anchor: None };
    assert_eq!(
        refusal::<_, CoordinatorSays>(says(coordinator_message::Say::Answered(answered)), |_| ()),
        "malformed answered.answer: 77 is no value this build knows"
    );
    let assign = v1::Assignment {
        run: Gen(4).run().to_string(),
        work: Gen(4).work().to_string(),
        on_disconnect: 1,
        ..v1::Assignment::default()
    };
    assert_eq!(
        refusal::<_, CoordinatorSays>(says(coordinator_message::Say::Assign(assign)), |_| ()),
        "malformed assign.body: it is missing"
    );
}

#[test]
fn a_malformed_view_is_refused_by_the_path_of_the_field() {
    let run = || v1::RunView::from(views::run(&mut Gen(5)));
    let account = v1::Account { dimension: 1, ..v1::Account::default() };
    assert_eq!(
        refusal::<_, RunView>(run(), |run| run.ledger = vec![account; 2]),
        "malformed ledger[1].dimension: `units` is there twice"
    );
    assert_eq!(
        refusal::<_, RunView>(run(), |run| run.plan = None),
        "malformed plan: it is missing"
    );
    let verdict = v1::Verdict::from(views::verdict(&mut Gen(6)));
    assert_eq!(
        refusal::<_, Verdict>(verdict, |verdict| verdict.confidence = 101),
        "malformed confidence: 101 is not a percentage"
    );
}

/// Every number of an enum is one word of ours, and the other way round; zero never is.
fn is_whole<T, W>(words: usize)
where
    T: Word + Clone + PartialEq + Debug,
    W: From<T> + Into<i32>,
{
    assert_eq!(T::from_wire(0), Err(Reason::Unspecified));
    let end = i32::try_from(words).unwrap() + 1;
    for number in 1..end {
        let word = T::from_wire(number).unwrap();
        assert_eq!(W::from(word).into(), number);
    }
    for unknown in [-1, end, i32::MAX] {
        assert_eq!(T::from_wire(unknown), Err(Reason::UnknownValue(unknown)));
    }
}

#[test]
fn every_enum_has_the_same_words_on_both_sides() {
    is_whole::<actor::Role, v1::Role>(5);
    is_whole::<delivery::ChangeKind, v1::ChangeKind>(3);
    is_whole::<delivery::Outcome, v1::Outcome>(3);
    is_whole::<delivery::NotMeasured, v1::NotMeasured>(3);
    is_whole::<delivery::Place, v1::Place>(2);
    is_whole::<FailureClass, v1::FailureClass>(FailureClass::ALL.len());
    is_whole::<ledger::Dimension, v1::Dimension>(ledger::Dimension::ALL.len());
    is_whole::<link::Answer, v1::Answer>(5);
    is_whole::<link::StopReason, v1::StopReason>(5);
    is_whole::<plan::DeliveryMode, v1::DeliveryMode>(5);
    is_whole::<plan::OnDisconnect, v1::OnDisconnect>(2);
    is_whole::<plan::QuestionClass, v1::QuestionClass>(5);
    is_whole::<problem::Code, v1::ProblemCode>(16);
    is_whole::<problem::Severity, v1::Severity>(2);
    is_whole::<verdict::JudgeKind, v1::JudgeKind>(3);
    is_whole::<verdict::Judgement, v1::Judgement>(3);
}

#[test]
fn a_failure_is_named_on_the_wire_as_in_the_journal() {
    for class in FailureClass::ALL {
        let name = v1::FailureClass::from(*class).as_str_name();
        assert_eq!(name, format!("FAILURE_CLASS_{}", class.as_str().to_uppercase()));
    }
}

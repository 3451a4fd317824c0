//! One trace per run over processes and restarts.

use ganger_harness::otlp::{OtlpReceiver, ReceivedLink};
use ganger_telemetry::metrics::{Counter, Histogram, Label};
use ganger_telemetry::names::{attribute, link, metric, operation, span};
use ganger_telemetry::{
    Link, Parent, Projector, RemoteParent, SpanKey, SpanRecord, SpanStatus, context, ids,
};
use tracing::info_span;

use crate::{PATIENCE, assert_no_orphans, one, telemetry};

const RUN: &str = "r-42";

fn attempt(number: u32) -> SpanKey {
    SpanKey::Attempt(format!("build/0/{number}"))
}

fn unit() -> SpanKey {
    SpanKey::Unit("build".into())
}

fn attempt_record(number: u32, status: SpanStatus) -> SpanRecord {
    let times = (u64::from(number) * 1_000, u64::from(number) * 1_000 + 900);
    SpanRecord {
        parent: Parent::Key(unit()),
        status,
        attributes: vec![(attribute::ATTEMPT, format!("build/0/{number}").into())],
        ..SpanRecord::new(RUN, attempt(number), span::ATTEMPT, times)
    }
}

fn project_unit_and_run(projector: &Projector) {
    projector.project(SpanRecord {
        parent: Parent::Key(SpanKey::Run),
        status: SpanStatus::Ok,
        ..SpanRecord::new(RUN, unit(), span::UNIT, (900, 3_000))
    });
    projector.project(SpanRecord {
        status: SpanStatus::Ok,
        attributes: vec![(attribute::RUN, RUN.into()), (attribute::COST, 1_250_000_u64.into())],
        ..SpanRecord::new(RUN, SpanKey::Run, span::RUN, (500, 3_100))
    });
}

/// What a worker does with a dispatch: live spans under the context the message carries.
fn work_as_dispatched(dispatch: &tracing::Dispatch, traceparent: &str) {
    tracing::dispatcher::with_default(dispatch, || {
        let agent = info_span!(
            "invoke_agent",
            otel.name = span::invoke_agent("codex"),
            { attribute::OPERATION } = operation::INVOKE_AGENT,
        );
        RemoteParent::parse(traceparent).unwrap().adopt(&agent).unwrap();
        agent.in_scope(|| info_span!("execute_tool").in_scope(|| {}));
        let late = RemoteParent::of(RUN, &SpanKey::Run).adopt(&agent);
        assert_eq!(late, Err(context::AdoptError::AlreadyEntered));
    });
}

/// P119: projected and live spans of two processes are one trace, and every parent exists.
/// R183: one trace per run, one span per attempt across hosts.
#[tokio::test]
async fn a_run_over_two_processes_is_one_trace_without_orphans() {
    let collector = OtlpReceiver::start().await.unwrap();
    let (coordinator, _) = telemetry("ganger-coordinator", collector.endpoint());
    let (worker, worker_lines) = telemetry("ganger-worker", collector.endpoint());
    let projector = coordinator.projector();

    projector.run_started(RUN, 500, vec![(attribute::RUN, RUN.into())]);
    work_as_dispatched(&worker_lines, &context::traceparent(RUN, &attempt(1)));
    projector.project(attempt_record(1, SpanStatus::Ok));
    // The run has not ended, and is visible.
    collector.wait_for(|spans| spans.len() == 4, PATIENCE).await.unwrap();
    project_unit_and_run(&projector);
    coordinator.shutdown(PATIENCE).await.unwrap();
    worker.shutdown(PATIENCE).await.unwrap();

    let spans = collector.spans();
    assert_eq!(spans.len(), 6, "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace_id == ids::trace_id_hex(RUN)));
    assert_no_orphans(&spans, &[span::RUN]);
    let run = one(&spans, span::RUN);
    assert_eq!((run.received_order, run.service.as_str()), (5, "ganger-coordinator"));
    assert_eq!((run.start, run.end), (500_000_000, 3_100_000_000));
    assert_eq!(run.attributes[attribute::COST], "1250000");
    let started = one(&spans, span::RUN_STARTED);
    assert_eq!((&started.parent_span_id, started.start), (&run.span_id, started.end));
    let agent = one(&spans, "invoke_agent codex");
    assert_eq!(agent.parent_span_id, one(&spans, span::ATTEMPT).span_id);
    assert_eq!(
        (agent.service.as_str(), agent.instance.as_str()),
        ("ganger-worker", "ganger-worker-instance")
    );
    assert_eq!(agent.attributes[attribute::OPERATION], "invoke_agent");
    assert_eq!(one(&spans, "execute_tool").parent_span_id, agent.span_id);
}

/// P119: a coordinator that dies and comes back continues the same trace; the retry is a link.
#[tokio::test]
async fn a_restarted_coordinator_continues_the_trace() {
    let collector = OtlpReceiver::start().await.unwrap();
    let (worker, worker_lines) = telemetry("ganger-worker", collector.endpoint());
    let (dying, _) = telemetry("ganger-coordinator", collector.endpoint());
    dying.projector().run_started(RUN, 500, Vec::new());
    work_as_dispatched(&worker_lines, &context::traceparent(RUN, &attempt(1)));
    collector.wait_for(|spans| spans.len() == 3, PATIENCE).await.unwrap();
    drop(dying);

    let (restarted, _) = telemetry("ganger-coordinator", collector.endpoint());
    let projector = restarted.projector();
    let lost = SpanStatus::Error("coordinator restarted".into());
    projector.project(attempt_record(1, lost));
    projector.project(SpanRecord {
        links: vec![Link::to(RUN, attempt(1), link::RETRY_OF)],
        ..attempt_record(2, SpanStatus::Ok)
    });
    project_unit_and_run(&projector);
    restarted.shutdown(PATIENCE).await.unwrap();
    worker.shutdown(PATIENCE).await.unwrap();

    let spans = collector.spans();
    assert_eq!(spans.len(), 7, "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace_id == ids::trace_id_hex(RUN)));
    assert_no_orphans(&spans, &[span::RUN]);
    let attempts: Vec<_> = spans.iter().filter(|span| span.name == span::ATTEMPT).collect();
    assert_eq!(attempts[0].error.as_deref(), Some("coordinator restarted"));
    let retry = ReceivedLink {
        trace_id: attempts[0].trace_id.clone(),
        span_id: attempts[0].span_id.clone(),
        attributes: [(attribute::LINK.into(), link::RETRY_OF.into())].into(),
    };
    assert_eq!((&attempts[0].links, &attempts[1].links), (&vec![], &vec![retry]));
    assert_eq!(one(&spans, span::RUN).received_order, 6);
}

#[tokio::test]
async fn the_same_fact_sent_again_is_the_same_span() {
    let collector = OtlpReceiver::start().await.unwrap();
    for _ in 0..2 {
        let (telemetry, _) = telemetry("ganger-coordinator", collector.endpoint());
        telemetry.projector().project(attempt_record(1, SpanStatus::Ok));
        telemetry.shutdown(PATIENCE).await.unwrap();
    }
    let mut spans = collector.spans();
    for span in &mut spans {
        span.received_order = 0;
    }
    assert_eq!(spans.len(), 2);
    assert_eq!(spans[0], spans[1]);
}

#[tokio::test]
async fn measurements_arrive_by_the_end() {
    let collector = OtlpReceiver::start().await.unwrap();
    let (telemetry, _) = telemetry("ganger-coordinator", collector.endpoint());
    let metrics = telemetry.metrics();
    metrics.count(Counter::AttemptsEnded, 2, &[Label::Outcome("ok"), Label::Executor("codex")]);
    metrics.record(Histogram::AttemptSeconds, 12.5, &[Label::Executor("codex")]);
    telemetry.shutdown(PATIENCE).await.unwrap();

    let received = collector.metrics();
    let seen = |name: &str| {
        let of_name = received.iter().filter(|metric| metric.name == name);
        of_name.map(|metric| (metric.value.clone(), metric.labels.clone())).collect::<Vec<_>>()
    };
    let executor = (attribute::EXECUTOR.to_owned(), "codex".to_owned());
    let outcome = (attribute::OUTCOME.to_owned(), "ok".to_owned());
    assert_eq!(
        seen(metric::ATTEMPTS_ENDED),
        [("2".to_owned(), [outcome, executor.clone()].into())]
    );
    assert_eq!(seen(metric::ATTEMPT), [("1".to_owned(), [executor].into())]);
    assert_eq!(seen(metric::EXPORT_FAILURES), [("0".to_owned(), [].into())]);
}

//! One trace for a run over every process, and none of it in the way of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ganger_harness::otlp::{BlackHole, OtlpReceiver, ReceivedSpan};
use ganger_harness::{Cluster, RollCall};
use serde_json::Value;

use crate::binary;
use crate::plans::{
    after, is, on_repository, plan, states, submit, user_repository, writes, writes_after,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn exporting(endpoint: &str) -> Cluster {
    let mut cluster = Cluster::new(binary());
    let set = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    cluster.environment.extend(set);
    cluster.start_coordinator();
    cluster.start_worker("east", 1, &[]);
    cluster.start_worker("west", 1, &[]);
    cluster.wait_for_workers(2);
    cluster
}

fn of_run<'a>(spans: &'a [ReceivedSpan], run: &Value) -> Vec<&'a ReceivedSpan> {
    let trace = run["trace_id"].as_str().expect("a run has a trace");
    spans.iter().filter(|span| span.trace_id == trace).collect()
}

fn has(spans: &[&ReceivedSpan], name: &str, key: &str, value: &str) -> bool {
    let is = |span: &&&ReceivedSpan| {
        span.name == name && span.attributes.get(key).is_some_and(|found| found == value)
    };
    spans.iter().any(|span| is(&span))
}

fn named(spans: &[&ReceivedSpan], name: &str) -> bool {
    spans.iter().any(|span| span.name == name)
}

/// Spans whose parent never arrived; the run's own span has none.
fn orphans(spans: &[&ReceivedSpan]) -> Vec<(String, String)> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.span_id.as_str()).collect();
    let known = |parent: &str| parent.is_empty() || ids.contains(parent);
    let lost = spans.iter().filter(|span| !known(&span.parent_span_id));
    lost.map(|span| (span.service.clone(), span.name.clone())).collect()
}

fn whole(spans: &[ReceivedSpan], run: &Value, units: &[&str]) -> bool {
    let spans = of_run(spans, run);
    let all = units.iter().all(|unit| has(&spans, "unit", "ganger.unit.id", unit));
    all && spans.iter().any(|span| span.name == "run") && orphans(&spans).is_empty()
}

fn services(spans: &[&ReceivedSpan]) -> BTreeSet<String> {
    spans.iter().map(|span| span.service.clone()).collect()
}

/// R183, P119: a run is one trace over coordinator and workers, one root, no orphan; a finished unit is
/// seen before the run ends.
#[tokio::test]
async fn a_run_is_one_trace_over_every_process() {
    let receiver = OtlpReceiver::start().await.expect("loopback has a free port");
    let cluster = exporting(&receiver.endpoint());
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let units =
        vec![writes("a", "a.txt"), after(writes_after("b", "b.txt", &calls.holds("b")), &["a"])];
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("b", 1);
    let run = cluster.run(&id);
    let early = |spans: &[ReceivedSpan]| {
        let spans = of_run(spans, &run);
        has(&spans, "unit", "ganger.unit.id", "a")
            && has(&spans, "attempt", "ganger.attempt.id", "a/main/1")
            && spans.iter().any(|span| span.name == "run started")
    };
    let spans = receiver.wait_for(early, PATIENCE).await.expect("a finished unit is sent at once");
    assert!(!of_run(&spans, &run).iter().any(|span| span.name == "run"), "the run goes on");
    calls.let_go("b");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let done = |spans: &[ReceivedSpan]| {
        let names = ["queue wait", "workspace", "command", "check", "judge", "apply"];
        let of_run = of_run(spans, &run);
        whole(spans, &run, &["a", "b"]) && names.iter().all(|name| named(&of_run, name))
    };
    let spans = receiver.wait_for(done, PATIENCE).await.expect("the trace becomes whole");
    let spans = of_run(&spans, &run);
    let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
    let roots: Vec<&str> = roots.map(|span| span.name.as_str()).collect();
    assert_eq!(roots, ["run"]);
    let command = spans.iter().find(|span| span.name == "command");
    assert_eq!(command.map(|span| span.service.as_str()), Some("ganger-worker"));
    assert_eq!(services(&spans).len(), 2, "{:?}", services(&spans));
}

/// R183, P119: the same after the coordinator was killed in between: one trace, one root, each attempt
/// once.
#[tokio::test]
async fn a_restarted_coordinator_goes_on_with_the_trace() {
    let receiver = OtlpReceiver::start().await.expect("loopback has a free port");
    let mut cluster = exporting(&receiver.endpoint());
    user_repository(&cluster);
    let mut calls = RollCall::open();
    let units =
        vec![writes("a", "a.txt"), after(writes_after("b", "b.txt", &calls.holds("b")), &["a"])];
    let id = submit(&cluster, &on_repository(&units));
    calls.wait_for("b", 1);
    let run = cluster.run(&id);
    let early = |spans: &[ReceivedSpan]| has(&of_run(spans, &run), "unit", "ganger.unit.id", "a");
    receiver.wait_for(early, PATIENCE).await.expect("a finished unit is sent at once");
    cluster.coordinator().kill();
    cluster.start_coordinator();
    cluster.wait_for_workers(2);
    calls.let_go("b");
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let done = |spans: &[ReceivedSpan]| whole(spans, &run, &["a", "b"]);
    let spans = receiver.wait_for(done, PATIENCE).await.expect("the trace becomes whole");
    let spans = of_run(&spans, &run);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.name == "attempt" || span.name == "run") {
        *times.entry(&span.span_id).or_default() += 1;
    }
    assert_eq!(times.len(), 3, "two attempts and the run");
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}

/// R180: an attempt's span carries what a person asks first: session, usage, cost and a short result.
#[tokio::test]
async fn an_attempts_span_says_what_it_used_and_what_came_out() {
    let receiver = OtlpReceiver::start().await.expect("loopback has a free port");
    let cluster = exporting(&receiver.endpoint());
    let script = "- say: looking\n- usage: { tokens_in: 70, tokens_out: 7, usd_micros: 900 }\n- finish: all is well\n";
    cluster.write("one.yaml", script);
    let id = submit(&cluster, &plan(&[crate::plans::scripted("one", "one.yaml")]));
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    let done = |spans: &[ReceivedSpan]| {
        whole(spans, &run, &["one"]) && named(&of_run(spans, &run), "invoke_agent scripted")
    };
    let spans = receiver.wait_for(done, PATIENCE).await.expect("the trace becomes whole");
    let spans = of_run(&spans, &run);
    let attempt = spans.iter().find(|span| span.name == "attempt").expect("there is one");
    let said = |key: &str| attempt.attributes.get(key).map(String::as_str);
    assert_eq!(said("gen_ai.usage.input_tokens"), Some("70"));
    assert_eq!(said("gen_ai.usage.output_tokens"), Some("7"));
    assert_eq!(said("gen_ai.usage.cache_read.input_tokens"), None, "unknown is not zero");
    assert_eq!(said("ganger.cost_usd_micros"), Some("900"));
    assert!(said("gen_ai.conversation.id").is_some_and(|session| !session.is_empty()));
    assert!(said("ganger.result.excerpt").is_some_and(|text| text.chars().count() <= 400));
    let agent = spans.iter().find(|span| span.name == "invoke_agent scripted");
    let agent = agent.expect("the agent at work is a span of the worker");
    assert_eq!(agent.service, "ganger-worker");
    assert_eq!(agent.parent_span_id, attempt.span_id);
}

/// What came out of a run, without what no two runs share.
fn outcome(cluster: &Cluster) -> (Value, BTreeMap<String, String>, Vec<Value>) {
    let id = submit(
        cluster,
        &plan(&[
            crate::plans::command("a", "echo a"),
            after(crate::plans::command("b", "exit 3"), &["a"]),
        ]),
    );
    let run = cluster.wait_run(&id, "the run is held", is("held"));
    let units = run["units"].as_array().cloned().unwrap_or_default();
    let failures = units.iter().map(|unit| unit["attempts"][0]["failure"].clone()).collect();
    (run["reason"].clone(), states(&run), failures)
}

/// P120: a collector that takes connections and never answers changes nothing of a run, nor the end of
/// its processes.
#[tokio::test]
async fn a_collector_that_never_answers_changes_nothing() {
    let quiet = Cluster::with_workers(binary(), &[("east", 1), ("west", 1)]);
    let without = outcome(&quiet);
    drop(quiet);
    let hole = BlackHole::start().await.expect("loopback has a free port");
    let mut cluster = exporting(&hole.endpoint());
    assert_eq!(outcome(&cluster), without);
    assert!(hole.wait_for_victim(PATIENCE).await, "nobody tried to export");
    let began = std::time::Instant::now();
    assert!(cluster.worker("west").terminate().success());
    cluster.coordinator().terminate();
    assert!(began.elapsed() < Duration::from_secs(20), "the end took {:?}", began.elapsed());
}

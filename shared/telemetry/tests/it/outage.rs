//! Collectors that are down or never answer: nobody waits for them.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ganger_harness::otlp::{BlackHole, OtlpReceiver};
use ganger_telemetry::{Projector, ShutdownError, SpanKey, SpanRecord, names};
use tokio::runtime::{Builder, Runtime};
use tracing::info_span;

use crate::{PATIENCE, telemetry};

/// What P120 allows for start, work and end together.
const IN_ALL: Duration = Duration::from_secs(5);
/// What the end is given of that.
const FOR_THE_END: Duration = Duration::from_millis(1_500);
/// More than the exporter's queue holds, so that it is full while the work goes on.
const SPANS: usize = 5_000;

fn single_worker() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn project(projector: &Projector, number: usize) {
    let key = SpanKey::Attempt(format!("build/0/{number}"));
    projector.project(SpanRecord::new("r-1", key, names::span::ATTEMPT, (1, 2)));
}

/// Start, work and end on the runtime's only worker; what the end said.
async fn start_work_and_end(endpoint: String) -> Result<(), ShutdownError> {
    let (telemetry, lines) = telemetry("ganger-worker", endpoint);
    let projector = telemetry.projector();
    tracing::dispatcher::with_default(&lines, || {
        for number in 0..SPANS {
            project(&projector, number);
            info_span!("execute_tool").in_scope(|| {});
        }
    });
    telemetry.shutdown(FOR_THE_END).await
}

/// Runs it all on a thread of its own, the runtime's end included, and waits as long as allowed.
fn within_the_deadline(runtime: fn() -> Runtime, endpoint: String) -> Result<(), ShutdownError> {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let runtime = runtime();
        let task = runtime.spawn(start_work_and_end(endpoint));
        let ended = runtime.block_on(task).unwrap();
        drop(runtime);
        done.send(ended).unwrap();
    });
    is_done.recv_timeout(IN_ALL).expect("start, work and end within the deadline")
}

fn refusing_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn assert_lost(ended: &Result<(), ShutdownError>) {
    let lost = matches!(ended, Err(ShutdownError::Deadline { .. } | ShutdownError::Export(_)));
    assert!(lost, "{ended:?}");
}

/// P120: one worker thread, collector refuses: start, work and end within 5 s.
#[test]
fn a_refusing_collector_holds_up_nobody_on_one_worker() {
    assert_lost(&within_the_deadline(single_worker, refusing_endpoint()));
    assert_lost(&within_the_deadline(current_thread, refusing_endpoint()));
}

/// P120: one worker thread, collector takes connections and never answers.
#[test]
fn a_collector_that_never_answers_holds_up_nobody_on_one_worker() {
    let tests = current_thread();
    let hole = tests.block_on(BlackHole::start()).unwrap();
    for runtime in [single_worker, current_thread] {
        let ended = within_the_deadline(runtime, hole.endpoint());
        assert!(matches!(ended, Err(ShutdownError::Deadline { .. })), "{ended:?}");
    }
    assert!(tests.block_on(hole.wait_for_victim(PATIENCE)), "the exporter did connect");
}

/// P120: one worker thread, collector healthy: everything queued arrives before the end.
#[test]
fn a_healthy_collector_gets_everything_on_one_worker() {
    let tests = current_thread();
    let collector = tests.block_on(OtlpReceiver::start()).unwrap();
    let endpoint = collector.endpoint();
    let ended = single_worker().block_on(async move {
        let work = async move {
            let (telemetry, _) = telemetry("ganger-worker", endpoint);
            (0..1_000).for_each(|number| project(&telemetry.projector(), number));
            telemetry.shutdown(PATIENCE).await
        };
        tokio::spawn(work).await.unwrap()
    });
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(collector.spans().len(), 1_000);
}

#[tokio::test]
async fn a_collector_that_comes_back_gets_what_comes_after() {
    let collector = OtlpReceiver::start().await.unwrap();
    let address = collector.address();
    let (telemetry, _) = telemetry("ganger-worker", collector.endpoint());
    let projector = telemetry.projector();
    project(&projector, 1);
    collector.wait_for(|spans| spans.len() == 1, PATIENCE).await.unwrap();
    collector.stop();
    project(&projector, 2);
    let collector = OtlpReceiver::start_at(address).await.unwrap();
    let again = async {
        let glance = Duration::from_millis(100);
        for number in 3.. {
            project(&projector, number);
            if collector.wait_for(|spans| !spans.is_empty(), glance).await.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
    telemetry.shutdown(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn telemetry_dropped_without_its_end_does_not_block() {
    let hole = BlackHole::start().await.unwrap();
    let (telemetry, lines) = telemetry("ganger-worker", hole.endpoint());
    project(&telemetry.projector(), 1);
    assert!(hole.wait_for_victim(PATIENCE).await);
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        drop((telemetry, lines));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(IN_ALL).unwrap();
}

//! All runs: what a start, a defect or a failed journal makes of them.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use ganger_coordinator_core::run::{Reply, Verb};
use ganger_shared::event::SystemEvent;
use ganger_shared::ids::RunId;
use ganger_shared::link::{Answer, CoordinatorSays, Fact};
use ganger_shared::rejection::Rejection;

use super::RunsMessage;
use crate::fleet::FleetMessage;
use crate::run::RunMessage;
use crate::stage::{ONE, Stage, TWO, done, pause};

/// Lets the run's actor panic, and waits for the next one or the quarantine.
async fn break_it(stage: &Stage, run: &RunId) {
    let actor = stage.find(run).await.unwrap();
    actor.cast(RunMessage::Break).unwrap();
    actor.wait(None).await.unwrap();
    while stage.find(run).await.is_ok_and(|other| other.get_id() == actor.get_id()) {
        tokio::task::yield_now().await;
    }
}

fn is_set_aside(stage: &Stage, run: &RunId) -> bool {
    stage.system().iter().any(
        |event| matches!(event, SystemEvent::RunQuarantined { run: other, .. } if other == run),
    )
}

async fn release(stage: &Stage, run: &RunId) {
    let name = run.to_string();
    let released = stage.ask_runs(|port| RunsMessage::Release { name, port }).await;
    assert_eq!(released.unwrap(), *run);
}

/// P042: two submits under one key that come together make one run, and both callers learn which.
#[tokio::test]
async fn two_submits_with_one_key_make_one_run() {
    let stage = Stage::new().await;
    let (one, two) = (stage.submitting("k", 1, ONE), stage.submitting("k", 2, ONE));
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert_eq!(one.run, two.run);
    assert!(matches!(one.reply, Reply::Done { replayed: false, .. }), "{:?}", one.reply);
    assert!(matches!(two.reply, Reply::Done { replayed: true, .. }), "{:?}", two.reply);
    assert_eq!(stage.ask_runs(|port| RunsMessage::List { port }).await.len(), 1);
    let stage = stage.crash().await;
    let (run, reply) = stage.submit("k", 3, ONE).await;
    assert_eq!(run, one.run, "also after a restart");
    assert!(matches!(reply, Reply::Done { replayed: true, .. }), "{reply:?}");
    let (_, reply) = stage.submit("k", 4, TWO).await;
    assert!(matches!(reply, Reply::Rejected(Rejection::KeyReused { .. })), "{reply:?}");
}

/// A submit that is refused leaves neither an actor nor a key behind.
#[tokio::test]
async fn a_refused_submit_leaves_nothing() {
    let stage = Stage::new().await;
    let run = RunId::from_uuid_bytes(&[1; 16]);
    let (port, answer) = tokio::sync::oneshot::channel();
    let reply = crate::run::ReplyTo::Caller(port);
    // Nothing but a submit begins a run.
    let asked = crate::run::Asked { by: crate::stage::anna(), verb: pause("p"), reply };
    let message = RunsMessage::Submit { run: run.clone(), asked: Box::new(asked) };
    stage.house.runs.cast(message).unwrap();
    assert!(matches!(answer.await.unwrap().reply, Reply::Rejected(_)));
    while stage.find(&run).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.run(1, ONE).await, run);
}

/// A run whose actor fails three times in a minute is set aside by a fact: its reports are to be sent
/// again later, its key still leads to it, and others go on.
#[tokio::test]
async fn three_failures_in_a_minute_set_a_run_aside() {
    let stage = Stage::new().await;
    let (run, other) = (stage.run(1, ONE).await, stage.run(2, ONE).await);
    let mut worker = stage.attach("w1", 1).await;
    let (one, two) = (worker.assigned().await, worker.assigned().await);
    let lease = if one.run == run { one } else { two };
    break_it(&stage, &run).await;
    break_it(&stage, &run).await;
    assert!(!is_set_aside(&stage, &run));
    break_it(&stage, &run).await;
    assert!(is_set_aside(&stage, &run));
    assert!(matches!(stage.find(&run).await, Err(Rejection::Quarantined { .. })));
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::RetryLater);
    assert_eq!(stage.stands(&other).await, "active: a running");
    // The fact outlives the process.
    let stage = stage.crash().await;
    assert!(matches!(stage.find(&run).await, Err(Rejection::Quarantined { .. })));
    let (made, reply) = stage.submit("k1", 3, ONE).await;
    assert_eq!(made, run);
    assert!(matches!(reply, Reply::Rejected(Rejection::Quarantined { .. })), "{reply:?}");
    release(&stage, &run).await;
    stage.until_stands(&run, "active: a running").await;
    // The release does, too.
    let stage = stage.crash().await;
    stage.until_stands(&run, "active: a running").await;
    let held = (vec![lease.clone()], Vec::new());
    let mut worker = stage.attach_with("w1", 1, held).await.unwrap();
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    assert_eq!(worker.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
}

#[tokio::test]
async fn failures_that_lie_apart_set_nothing_aside() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    for _ in 0..5 {
        break_it(&stage, &run).await;
        stage.pass(31_000).await;
    }
    assert!(!is_set_aside(&stage, &run));
    assert_eq!(stage.stands(&run).await, "active: a ready");
}

/// A run that cannot be folded is set aside at the start, and the fleet opens for the others.
#[tokio::test]
async fn a_run_that_cannot_be_folded_keeps_nobody_waiting() {
    let stage = Stage::new().await;
    let (run, other) = (stage.run(1, ONE).await, stage.run(2, ONE).await);
    let sequence = stage.written(&run).len() as u64;
    let stream = crate::stage::stream(&run);
    stage.journal.append(&stream, sequence, &["{\"type\":\"Unheard\"}".to_owned()]).unwrap();
    let stage = stage.crash().await;
    assert!(matches!(stage.find(&run).await, Err(Rejection::Quarantined { .. })));
    let mut worker = stage.attach("w1", 1).await;
    assert_eq!(worker.assigned().await.run, other);
}

/// A journal that failed ends the coordinator with the reason; whoever waited is told.
#[tokio::test]
async fn a_failed_journal_ends_the_coordinator() {
    let mut stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    stage.journal.fail_after(Some(0));
    let reply = stage.command(&run, pause("p")).await;
    assert!(matches!(reply, Reply::Rejected(Rejection::Journal { .. })), "{reply:?}");
    let reason = stage.fatal.recv().await.unwrap();
    assert!(reason.contains("the test said so"), "{reason}");
    // A start on what is written is as good as new.
    stage.journal.fail_after(None);
    let stage = stage.crash().await;
    stage.until_stands(&run, "active: a ready").await;
}

/// P006, P017: a worker that comes back before the runs are folded waits, keeps what it holds, and
/// what it finishes then is taken under the lease from before.
#[tokio::test]
async fn a_worker_that_comes_before_the_fold_is_answered_after_it() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    let stage = stage.crash_closed().await;
    stage.house.fleet.cast(FleetMessage::Begin(Box::new(stage.house.clone()))).unwrap();
    let held = (vec![lease.clone()], Vec::new());
    let mut worker = stage.attach_with("w1", 1, held).await.unwrap();
    stage.pass(2_000).await;
    let welcome = worker.told.try_recv().unwrap().says;
    assert!(matches!(welcome, CoordinatorSays::Welcome(_)), "{welcome:?}");
    assert!(worker.told.try_recv().is_err(), "nothing is said before the runs are folded");
    stage.house.runs.cast(RunsMessage::Open(Box::new(stage.house.clone()))).unwrap();
    let kept = worker
        .until(|says| if let CoordinatorSays::Keep(lease) = says { Some(lease) } else { None });
    assert_eq!(kept.await, lease);
    assert_eq!(worker.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
    assert_eq!(stage.times(&run, "AttemptLeased"), 1);
}

/// A run that dies while a worker's inventory waits for its word ends that session, so that the
/// worker dials again: otherwise its slots would never open.
#[tokio::test]
async fn an_inventory_nobody_answers_makes_the_worker_dial_again() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut first = stage.attach("w1", 1).await;
    let lease = first.assigned().await;
    stage.journal.hold(true);
    first.reports(&lease, 1, Fact::Accepted);
    stage.pass(500).await;
    // It waits for the journal; behind that are its end and the inventory.
    stage.find(&run).await.unwrap().cast(RunMessage::Break).unwrap();
    let held = || (vec![lease.clone()], Vec::new());
    let second = stage.attach_with("w1", 1, held()).await.unwrap();
    stage.pass(500).await;
    assert!(first.ended.is_cancelled(), "another stream took its place");
    assert!(!second.ended.is_cancelled());
    stage.journal.hold(false);
    second.ended.cancelled().await;
    let mut third = stage.attach_with("w1", 1, held()).await.unwrap();
    assert_eq!(third.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    assert_eq!(third.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
}

/// A run that is over and not at hand any more is folded for whoever asks.
#[tokio::test]
async fn a_run_that_is_over_is_found_after_its_actor_went() {
    let stage = Stage::new().await;
    let mut runs = Vec::new();
    let over = u8::try_from(super::AT_HAND + 2).unwrap();
    for number in 1..=over {
        let run = stage.run(number, ONE).await;
        let call = crate::stage::call("stop");
        let stop = Verb::Stop { call, reason: "enough".to_owned(), now: true };
        stage.command(&run, stop).await;
        runs.push(run);
    }
    for run in runs {
        assert_eq!(stage.stands(&run).await, "aborted: a skipped");
    }
}

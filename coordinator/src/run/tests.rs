//! A run's actor: what it answers, writes and hands out, whatever its journal does.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use ganger_coordinator_core::run::Reply;
use ganger_shared::event::RunEvent;
use ganger_shared::link::{Answer, CoordinatorSays, Fact};
use ganger_shared::rejection::Rejection;
use tokio::sync::oneshot;

use super::{Asked, ReplyTo, RunMessage};
use crate::stage::{ONE, Stage, TWO, anna, done, pause, stream};

/// A run of one unit comes to its end, with everything told in order.
#[tokio::test]
async fn a_run_is_carried_through_by_one_worker() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    assert_eq!(worker.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
}

/// P018: the same report again is answered as before and recorded once.
#[tokio::test]
async fn a_report_said_twice_is_one_event() {
    let stage = Stage::new().await;
    let run = stage.run(1, TWO).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    worker.reports(&lease, 1, Fact::Accepted);
    worker.reports(&lease, 2, done());
    worker.reports(&lease, 1, Fact::Accepted);
    worker.reports(&lease, 2, done());
    for _ in 0..4 {
        assert_eq!(worker.answered().await, Answer::Recorded);
    }
    assert_eq!(stage.times(&run, "AttemptAccepted"), 1);
    assert_eq!(stage.times(&run, "AttemptDelivered"), 1);
}

/// A batch the journal refuses is answered to everyone in it, nothing of it is kept, and the run
/// stands as the journal has it.
#[tokio::test]
async fn a_refused_batch_is_answered_to_all_and_folded_again() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    stage.write(&run, RunEvent::RunPaused { reason: "from elsewhere".to_owned() });
    let actor = stage.find(&run).await.unwrap();
    let ask = |key| {
        let (port, answer) = oneshot::channel();
        let asked = Asked { by: anna(), verb: pause(key), reply: ReplyTo::Caller(port) };
        actor.cast(RunMessage::Ask(Box::new(asked))).unwrap();
        answer
    };
    let (one, two) = (ask("p1"), ask("p2"));
    worker.reports(&lease, 1, Fact::Accepted);
    for answer in [one, two] {
        let reply = answer.await.unwrap().reply;
        assert!(matches!(reply, Reply::Rejected(Rejection::Journal { .. })), "{reply:?}");
    }
    let first = worker.answered().await;
    if first == Answer::RetryLater {
        assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    }
    stage.until_stands(&run, "paused: a running").await;
    assert_eq!(stage.times(&run, "AttemptAccepted"), 1);
}

/// P007: those who do not repeat themselves (here the fleet, whose lease ended) are asked again
/// after a refusal, by handing out what the run owes and holds.
#[tokio::test]
async fn what_a_refused_batch_lost_comes_again() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    stage.journal.hold(true);
    stage.pass(40_000).await;
    assert_eq!(stage.times(&run, "AttemptLost"), 0, "the journal stalls while the lease ends");
    stage.write(&run, RunEvent::RunPaused { reason: "from elsewhere".to_owned() });
    stage.journal.hold(false);
    stage.until_stands(&run, "paused: a running").await;
    stage.pass(40_000).await;
    assert_eq!(stage.times(&run, "AttemptLost"), 1);
}

/// A run's actor that panics is started again, and hands out what the run owes.
#[tokio::test]
async fn a_run_that_panics_is_folded_and_goes_on() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    stage.find(&run).await.unwrap().cast(RunMessage::Break).unwrap();
    assert_eq!(worker.assigned().await, lease, "what it was told before it is told again");
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    assert_eq!(worker.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
    assert_eq!(stage.times(&run, "AttemptLeased"), 1);
}

/// What waits in the mailbox of an actor that dies is answered, never forgotten.
#[tokio::test]
async fn a_report_whose_run_dies_is_to_be_sent_again() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    let (asked, died) = (stage.find(&run).await.unwrap(), stage.find(&run).await.unwrap());
    died.cast(RunMessage::Break).unwrap();
    let place = std::sync::Arc::clone(&worker.places).try_acquire_owned().unwrap();
    let report =
        ganger_shared::link::Report { lease: lease.clone(), number: 1, fact: Fact::Accepted };
    let (ended, told) = (worker.ended.clone(), crate::session::Outbound::new(worker.ended.clone()));
    let (outbound, mut read) = told;
    let reply = ReplyTo::Worker(crate::session::Reported::new(outbound, &report, place));
    let verb = ganger_coordinator_core::run::Verb::Report(Box::new(report));
    let by = ganger_shared::actor::Actor::Worker("w1".to_owned());
    // Cast or dropped: either way it is answered.
    drop(asked.cast(RunMessage::Ask(Box::new(Asked { by, verb, reply }))));
    let told = read.recv().await.unwrap();
    let CoordinatorSays::Answered { answer, .. } = told.says else { panic!("{:?}", told.says) };
    assert_eq!(answer, Answer::RetryLater);
    assert!(!ended.is_cancelled());
}

/// An actor that is drained still answers everything that reached it.
#[tokio::test]
async fn a_drained_run_answers_what_it_was_asked() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let actor = stage.find(&run).await.unwrap();
    let (port, answer) = oneshot::channel();
    let asked = Asked { by: anna(), verb: pause("p"), reply: ReplyTo::Caller(port) };
    actor.cast(RunMessage::Ask(Box::new(asked))).unwrap();
    actor.drain().unwrap();
    let reply = answer.await.unwrap().reply;
    assert!(matches!(reply, Reply::Done { replayed: false, .. }), "{reply:?}");
    assert_eq!(stage.times(&run, "RunPaused"), 1);
}

/// An offer that is answered too late is declined: the slot may be another's.
#[tokio::test]
async fn an_offer_that_lapsed_is_declined() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    stage.journal.hold(true);
    let paused = {
        let (port, answer) = oneshot::channel();
        let asked = Asked { by: anna(), verb: pause("p"), reply: ReplyTo::Caller(port) };
        let actor = stage.find(&run).await.unwrap();
        actor.cast(RunMessage::Ask(Box::new(asked))).unwrap();
        answer
    };
    // The offer reaches a run that waits for its journal, and is old when that is done.
    let mut worker = stage.attach("w1", 1).await;
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    stage.journal.hold(false);
    paused.await.unwrap();
    assert_eq!(stage.times(&run, "AttemptLeased"), 0);
    let resume = ganger_coordinator_core::run::Verb::Resume { call: crate::stage::call("r") };
    stage.command(&run, resume).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    assert_eq!(stage.times(&run, "AttemptLeased"), 1);
}

/// A snapshot is only a shorter way: with it and without it the same run is folded.
#[tokio::test]
async fn a_run_is_the_same_from_its_snapshot() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    for round in 0..200 {
        stage.command(&run, pause(&format!("p{round}"))).await;
        let call = crate::stage::call(&format!("r{round}"));
        stage.command(&run, ganger_coordinator_core::run::Verb::Resume { call }).await;
    }
    while stage.journal.load_snapshot(&stream(&run), super::fold::SCHEMA).is_none() {
        tokio::task::yield_now().await;
    }
    let before = stage.view(&run).await.unwrap();
    let stage = stage.crash().await;
    assert_eq!(stage.view(&run).await.unwrap(), before);
}

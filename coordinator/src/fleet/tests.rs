//! The fleet's actor: what a slow disk, a deaf worker and a standstill do to leases.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::time::Duration;

use ganger_shared::link::{Answer, CoordinatorSays, Fact};

use super::FleetMessage;
use crate::session::OUTBOUND;
use crate::stage::{ONE, Peer, Stage, done};

/// Beats with what it holds, so that the lease goes on.
fn beats(worker: &Peer, lease: &ganger_shared::link::Lease) {
    use ganger_shared::link::{Beat, Progress, WorkerSays};
    use ganger_shared::time::{DurationMs, Timestamp};
    let progress = Progress {
        lease: lease.clone(),
        phase: "running".to_owned(),
        lines: 1,
        quiet_ms: DurationMs(0),
        last_line: "…".to_owned(),
    };
    let sent_at = Timestamp::from_unix_ms(0);
    let (live, busy, draining) = (vec![progress], 1, false);
    worker.says(WorkerSays::Beat(Beat { live, busy, sent_at, draining }));
}

async fn states(stage: &Stage) -> Vec<String> {
    let workers = stage.ask_fleet(FleetMessage::List).await;
    workers.iter().map(|worker| format!("{} {}", worker.id, worker.state)).collect()
}

/// P113: a disk that stalls for two minutes makes no beat late and ends no lease.
#[tokio::test]
async fn a_slow_journal_makes_no_beat_late() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    stage.journal.hold(true);
    for _ in 0..24 {
        beats(&worker, &lease);
        stage.pass(5_000).await;
        assert_eq!(states(&stage).await, ["w1 live"]);
    }
    stage.journal.hold(false);
    assert_eq!(worker.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
    assert_eq!(stage.times(&run, "AttemptLost"), 0);
}

/// P036, P011: a worker that is silent for a lease's term loses it, and the run goes on elsewhere.
#[tokio::test]
async fn a_silent_worker_loses_its_lease() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    stage.pass(31_000).await;
    assert_eq!(stage.times(&run, "AttemptLost"), 1);
    let mut other = stage.attach("w2", 1).await;
    stage.pass(10_000).await;
    let next = other.assigned().await;
    assert!(next.epoch > lease.epoch);
}

/// P113: a coordinator that stood still itself ends no lease by it, wherever in a term that fell.
#[tokio::test]
async fn a_standstill_of_the_coordinator_ends_no_lease() {
    for before in [500, 14_500, 20_000, 29_000] {
        let stage = Stage::new().await;
        let run = stage.run(1, ONE).await;
        let mut worker = stage.attach("w1", 1).await;
        let lease = worker.assigned().await;
        assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
        beats(&worker, &lease);
        stage.pass(before).await;
        tokio::time::advance(Duration::from_mins(1)).await;
        stage.pass(500).await;
        beats(&worker, &lease);
        stage.pass(20_000).await;
        assert_eq!(stage.times(&run, "AttemptLost"), 0, "after {before} ms");
        tokio::time::resume();
    }
}

/// A worker that does not read what it is told is hung up on; what it holds it keeps until the clock
/// ends it, and may come back with (P041, P118).
#[tokio::test]
async fn a_worker_that_does_not_read_is_hung_up_on_and_keeps_its_lease() {
    let stage = Stage::new().await;
    let run = stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    for _ in 0..=OUTBOUND {
        let (worker, says) = (lease_holder(), Box::new(CoordinatorSays::Keep(lease.clone())));
        stage.house.fleet.cast(FleetMessage::Say { worker, says }).unwrap();
    }
    worker.ended.cancelled().await;
    stage.pass(5_000).await;
    assert_eq!(stage.times(&run, "AttemptLost"), 0);
    let held = (vec![lease.clone()], Vec::new());
    let mut again = stage.attach_with("w1", 1, held).await.unwrap();
    assert_eq!(again.report(&lease, 2, done()).await, Answer::Recorded);
    stage.until_stands(&run, "completed: a accepted").await;
    assert_eq!(stage.times(&run, "AttemptLeased"), 1);
}

fn lease_holder() -> ganger_shared::ids::WorkerId {
    ganger_shared::ids::WorkerId::parse("w1").unwrap()
}

/// As many answers as reports may be under way find room beside everything else.
#[tokio::test]
async fn a_burst_of_reports_hangs_nobody_up() {
    let stage = Stage::new().await;
    stage.run(1, ONE).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    let burst = u32::try_from(crate::session::INBOUND).unwrap();
    for _ in 0..burst {
        worker.reports(&lease, 1, Fact::Accepted);
    }
    assert_eq!(worker.places.available_permits(), 0, "nothing more is read from it");
    stage.pass(1_000).await;
    assert!(!worker.ended.is_cancelled());
    for _ in 0..burst {
        assert_eq!(worker.answered().await, Answer::Recorded);
    }
    assert_eq!(worker.places.available_permits(), crate::session::INBOUND);
}

/// A beat has its place among what a worker may say at once until the fleet has taken it.
#[tokio::test]
async fn a_beat_gives_its_place_back_when_it_was_taken() {
    let stage = Stage::new().await;
    let worker = stage.attach("w1", 1).await;
    for _ in 0..crate::session::INBOUND {
        worker.beats();
    }
    assert_eq!(worker.places.available_permits(), 0);
    stage.pass(1_000).await;
    assert_eq!(worker.places.available_permits(), crate::session::INBOUND);
}

/// Workers of earlier starts are listed before they are back.
#[tokio::test]
async fn the_fleet_is_remembered_over_a_restart() {
    let stage = Stage::new().await;
    let worker = stage.attach("w1", 1).await;
    stage.pass(1_000).await;
    assert_eq!(states(&stage).await, ["w1 live"]);
    drop(worker);
    let stage = stage.crash().await;
    let workers = stage.ask_fleet(FleetMessage::List).await;
    assert_eq!(workers.iter().map(|worker| worker.name.as_str()).collect::<Vec<_>>(), ["w1"]);
    let _worker = stage.attach("w1", 2).await;
    stage.pass(1_000).await;
    assert_eq!(states(&stage).await, ["w1 live"]);
}

/// What was to be remembered is written before a clean end.
#[tokio::test]
async fn the_last_facts_are_written_before_the_end() {
    let stage = Stage::new().await;
    stage.journal.hold(true);
    let _worker = stage.attach("w1", 1).await;
    let fleet = stage.house.fleet.clone();
    let ending = tokio::spawn(async move { fleet.drain_and_wait(None).await });
    tokio::task::yield_now().await;
    assert_eq!(stage.journal.streams("fleet"), []);
    stage.journal.hold(false);
    ending.await.unwrap().unwrap();
    assert_eq!(stage.journal.streams("fleet")[0].1, 2, "enrolled, and attached");
}

/// P038: an end of the stream before the present one changes nothing.
#[tokio::test]
async fn the_end_of_an_old_stream_does_not_end_the_new_one() {
    let stage = Stage::new().await;
    let first = stage.attach("w1", 1).await;
    let second = stage.attach("w1", 1).await;
    first.session.cast(crate::session::SessionMessage::Ended).unwrap();
    stage.pass(1_000).await;
    assert_eq!(states(&stage).await, ["w1 live"]);
    assert!(!second.ended.is_cancelled());
}

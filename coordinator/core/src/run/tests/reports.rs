//! What workers say, in every phase and at every time.

use ganger_shared::delivery::Usage;
use ganger_shared::event::LossReason;
use ganger_shared::failure::FailureClass;
use ganger_shared::ledger::Dimension;
use ganger_shared::link::{Answer, Fact};

use super::bench::*;
use crate::run::{Phase, Verb};

/// P018: a report that comes twice is answered, and nothing happens a second time.
#[test]
fn every_end_is_recorded_once() {
    for end in [failed(FailureClass::CommandFailed), stopped(true)] {
        let mut bench = Bench::units(&["a: retry: { attempts: 3 }"]);
        let lease = bench.lease("a");
        assert_eq!(bench.report(&lease, Fact::Accepted), Answer::Recorded);
        assert_eq!(bench.report(&lease, started()), Answer::Recorded);
        assert_eq!(bench.report(&lease, end.clone()), Answer::Recorded);
        let after = bench.run.clone();
        for again in [Fact::Accepted, started(), end, bench.hands_in(&lease, 1)] {
            assert_eq!(bench.report(&lease, again), Answer::Recorded);
            assert_eq!(bench.run, after);
        }
    }
}

#[test]
fn a_delivery_is_recorded_once() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    let after = bench.run.clone();
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    assert_eq!(bench.report(&lease, failed(FailureClass::Unknown)), Answer::Recorded);
    assert_eq!(bench.run, after);
}

#[test]
fn facts_may_come_without_the_ones_before() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.report(&lease, started());
    assert_eq!(bench.last, ["AttemptStarted"]);
    bench.report(&lease, Fact::Accepted);
    assert!(bench.last.is_empty());
    bench.report(&lease, started());
    assert!(bench.last.is_empty());
}

#[test]
fn nothing_that_was_never_leased_is_heard_of() {
    let mut bench = Bench::units(&["a"]);
    let mut lease = bench.lease("a");
    lease.work = "a/main/2".parse::<ganger_shared::ids::WorkId>().unwrap();
    assert_eq!(bench.report(&lease, started()), Answer::Stale);
    lease.work = "b/main/1".parse::<ganger_shared::ids::WorkId>().unwrap();
    assert_eq!(bench.report(&lease, started()), Answer::Stale);
    lease.work = "a/main/1".parse::<ganger_shared::ids::WorkId>().unwrap();
    let fact = measured(ganger_shared::delivery::Outcome::Pass, &tree("t"));
    assert_eq!(bench.report(&lease, fact), Answer::Stale);
}

/// P037 (b): a late delivery stands in for the rerun that nobody was granted yet.
#[test]
fn a_late_delivery_is_adopted_while_nothing_newer_runs() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.lost(&lease, LossReason::LeaseExpired);
    assert_eq!(bench.last, ["AttemptLost", "RetryScheduled"]);
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    assert_eq!(bench.last, ["LateResult"]);
    assert_eq!(bench.stand(), "a delivered");
    assert!(bench.declined("a"), "no rerun beside it");
    bench.taken(&lease);
    assert_eq!(bench.run.account(Dimension::ActiveMs).settled, 2_000);
}

/// P037 (a), P070: it is kept, and touches nothing, once a newer attempt runs.
#[test]
fn a_late_delivery_is_only_kept_once_another_attempt_runs() {
    let mut bench = Bench::units(&["a"]);
    let old = bench.lease("a");
    bench.lost(&old, LossReason::LeaseExpired);
    let new = bench.lease_on("a", "w2");
    assert_eq!(bench.deliver(&old, 1), Answer::Stale);
    assert_eq!(bench.stand(), "a running");
    let Phase::Lost { late, .. } = &bench.attempt(&attempt_of(&old)).phase else { panic!() };
    assert!(late.is_some(), "a finished result is never lost");
    let fact = bench.hands_in(&new, 1);
    assert_eq!(bench.report_by("w2", &new, fact), Answer::Recorded);
    assert_eq!(bench.deliver(&old, 1), Answer::Recorded, "known already");
    assert_eq!(bench.stand(), "a delivered");
}

#[test]
fn a_late_delivery_of_an_older_attempt_is_only_kept() {
    let mut bench = Bench::units(&["a"]);
    let old = bench.lease("a");
    bench.lost(&old, LossReason::LeaseExpired);
    let newer = bench.lease("a");
    bench.lost(&newer, LossReason::LeaseExpired);
    assert_eq!(bench.deliver(&old, 1), Answer::Stale, "a newer fence was granted");
    assert_eq!(bench.stand(), "a ready");
    assert_eq!(bench.deliver(&newer, 1), Answer::Recorded);
    assert_eq!(bench.stand(), "a delivered");
}

#[test]
fn a_unit_that_failed_by_its_losses_takes_a_late_delivery() {
    let mut bench = Bench::units(&["a"]);
    let mut last = None;
    for _ in 0..6 {
        let lease = bench.lease("a");
        bench.lost(&lease, LossReason::NotHeld);
        last = Some(lease);
    }
    assert_eq!(bench.stands(), "held unit_failed");
    bench.deliver(&last.unwrap(), 1);
    assert_eq!(bench.last, ["LateResult", "RunReleased"]);
    assert_eq!(bench.stand(), "a delivered");
}

/// The result of an attempt that was given up as stopped is kept, and its time booked anew.
#[test]
fn what_a_stopped_attempt_hands_in_after_its_lease_is_kept() {
    let mut bench = Bench::units(&["a: timeout: 1m"]);
    let lease = bench.lease("a");
    bench.cancel("a");
    bench.lost(&lease, LossReason::LeaseExpired);
    assert_eq!(bench.last, ["AttemptCancelled", "UnitCancelled", "RunHeld"]);
    assert_eq!(bench.run.account(Dimension::ActiveMs).settled, 60_000);
    assert_eq!(bench.deliver(&lease, 1), Answer::Stale);
    assert_eq!(bench.run.account(Dimension::ActiveMs).settled, 2_000);
    let Phase::Cancelled { late, .. } = &bench.attempt(&attempt_of(&lease)).phase else { panic!() };
    assert!(late.is_some());
    assert_eq!(bench.stand(), "a cancelled");
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    assert!(bench.last.is_empty());
}

#[test]
fn reports_of_a_run_that_is_over_are_kept_and_answered_so() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.stop(true);
    bench.lost(&lease, LossReason::WorkerLeft);
    assert_eq!(bench.stands(), "aborted");
    assert_eq!(bench.deliver(&lease, 1), Answer::RunClosed);
    assert_eq!(bench.last, ["LateResult"]);
    assert_eq!(bench.stand(), "a skipped");
    assert_eq!(bench.stands(), "aborted");
}

#[test]
fn a_delivery_that_contradicts_its_lease_is_a_failure() {
    let mut bench = Bench::units(&["a", "b"]);
    let lease = bench.lease("a");
    let other = ended(delivery(Some(&commit("elsewhere")), "x", 1), 10);
    bench.report(&lease, Fact::Delivered(Box::new(other)));
    assert_eq!(bench.last, ["AttemptFailed", "UnitFailed"]);
    let lease = bench.lease("b");
    let mut bare = delivery(Some(&commit("base")), "y", 1);
    bare.tree.as_mut().unwrap().bundle = None;
    bench.report(&lease, Fact::Delivered(Box::new(ended(bare, 10))));
    assert_eq!(bench.last, ["AttemptFailed", "UnitFailed", "RunHeld"]);
}

#[test]
fn a_worker_that_stops_by_itself_has_failed() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.report(&lease, stopped(true));
    assert_eq!(bench.last, ["AttemptFailed", "UnitFailed", "RunHeld"]);
}

#[test]
fn what_the_mirror_cannot_take_is_a_failure_and_keeps_its_time() {
    let mut bench = Bench::units(&["a: retry: { attempts: 2, delay: 0s }"]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 1);
    let failure =
        ganger_shared::failure::Failure::new(FailureClass::ScopeViolation, "x is outside");
    let verb = Verb::TakeFailed { attempt: attempt_of(&lease), failure };
    bench.tell(verb.clone());
    assert_eq!(bench.last, ["AttemptFailed", "RetryScheduled"]);
    let Phase::Failed { ended } = &bench.attempt(&attempt_of(&lease)).phase else { panic!() };
    assert_eq!((ended.active_ms.0, ended.end.usage), (2_000, Usage::default()));
    assert!(ended.end.left.is_some());
    bench.tell(verb);
    assert!(bench.last.is_empty(), "an answer that is not owed changes nothing");
    bench.lease("a");
}

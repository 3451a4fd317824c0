//! The beginning, readiness, leases and the ledger.

use ganger_shared::event::LossReason;
use ganger_shared::failure::FailureClass;
use ganger_shared::ids::WorkId;
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::link::{Answer, Lease};
use ganger_shared::rejection::Rejection;

use super::bench::*;
use crate::run::{Effect, EffectId, Reply, Run, Verb};

fn account(bench: &Bench, dimension: Dimension) -> (u64, u64) {
    let Account { reserved, settled, .. } = bench.run.account(dimension);
    (reserved, settled)
}

#[test]
fn a_submit_under_the_same_key_is_answered_and_not_repeated() {
    let text = format!("{REPO}units: [ {{ id: a, kind: command, run: make }} ]");
    let mut bench = Bench::submitted(&text);
    let mut call = bench.call();
    call.key = bench.run.calls().next().unwrap().0.clone();
    call.body = *bench.run.calls().next().unwrap().1;
    let sequence = bench.run.sequence();
    let again = bench.tell(submit(&text, call.clone()));
    assert_eq!(again, Reply::Done { sequence, replayed: true });
    call.body = ganger_shared::digest::Digest::of(b"another");
    let other = bench.tell(submit(&text, call));
    assert!(matches!(other, Reply::Rejected(Rejection::KeyReused { .. })), "{other:?}");
    let call = bench.call();
    let second = bench.tell(submit(&text, call));
    assert!(matches!(second, Reply::Rejected(Rejection::WrongState { .. })), "{second:?}");
    assert_eq!(bench.run.sequence(), sequence);
}

/// R011: units are counted when they are planned, and the refusal says so.
#[test]
fn more_units_than_the_budget_has_are_refused() {
    let text = format!(
        "{REPO}budgets: {{ units: 1 }}\nunits: [ {{ id: a, kind: command, run: make }}, {{ id: b, kind: command, run: make }} ]"
    );
    let mut run = Run::default();
    let call = Bench::units(&["a"]).call();
    let command = crate::run::Command {
        now: ganger_shared::time::Timestamp::default(),
        by: ganger_shared::actor::Actor::Coordinator,
        verb: submit(&text, call),
    };
    let decided = run.decide_all(vec![command]);
    let Reply::Rejected(Rejection::Plan { problems }) = &decided.replies[0] else {
        panic!("{:?}", decided.replies);
    };
    assert!(problems[0].to_string().contains("2 units are planned, and 1 are allowed"));
    assert!(decided.events.is_empty());
}

/// R009: completed is not enough, and neither is accepted; the branch must have it.
#[test]
fn a_unit_is_ready_once_what_it_needs_is_accepted_and_integrated() {
    let mut bench = Bench::units(&["a: checks: [{ name: c, run: make test }]", "b: after: [a]"]);
    assert_eq!(bench.stand(), "a ready, b pending");
    let lease = bench.lease("a");
    bench.deliver(&lease, 1);
    assert!(bench.declined("b"), "delivered is not enough");
    bench.taken(&lease);
    bench.measure("c", ganger_shared::delivery::Outcome::Pass);
    assert_eq!(bench.stand(), "a accepted, b pending");
    assert!(bench.declined("b"), "accepted is not enough");
    bench.commit_owed();
    assert_eq!(bench.stand(), "a accepted, b ready");
    bench.lease("b");
}

#[test]
fn a_slot_is_taken_once_and_never_before_its_time() {
    let mut bench = Bench::units(&["a: retry: { attempts: 2, delay: 9s }"]);
    let lease = bench.lease("a");
    assert!(bench.declined("a"), "one live lease for each unit");
    bench.report(&lease, failed(FailureClass::CommandFailed));
    assert_eq!(bench.last, ["AttemptFailed", "RetryScheduled"]);
    bench.wait(8_999);
    assert!(bench.declined("a"), "the retry waits");
    assert_eq!(bench.stands(), "active", "a unit that waits for its retry is not at rest");
    bench.wait(1);
    let second = bench.lease("a");
    assert_eq!(second.epoch, lease.epoch.next());
    assert_eq!(attempt_of(&second).to_string(), "a/main/2");
}

/// P032, P036, P038, R063: a fence that is not the newest changes nothing of the attempt that is.
#[test]
fn the_same_worker_with_an_old_fence_touches_nothing() {
    let mut bench = Bench::units(&["a"]);
    let old = bench.lease("a");
    bench.lost(&old, LossReason::LeaseExpired);
    let new = bench.lease("a");
    let before = bench.run.clone();
    let stale = Lease { epoch: old.epoch, ..new.clone() };
    for fact in [started(), bench.hands_in(&new, 1), stopped(true)] {
        assert_eq!(bench.report(&stale, fact), Answer::Stale);
    }
    bench.lost(&stale, LossReason::NotHeld);
    assert_eq!(bench.run, before);
}

/// P037: only the worker that holds the lease speaks about it.
#[test]
fn another_worker_says_nothing_about_a_lease() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    let fact = bench.hands_in(&lease, 1);
    assert_eq!(bench.report_by("w2", &lease, fact), Answer::Stale);
    assert_eq!(bench.stand(), "a running");
}

#[test]
fn the_assignment_is_owed_until_the_worker_has_it() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    let assign = EffectId::Assign(lease.work.clone(), lease.epoch);
    assert!(bench.owes(&assign));
    bench.restart();
    bench.report(&lease, ganger_shared::link::Fact::Accepted);
    assert!(!bench.owes(&assign));
    assert!(bench.run.assignment(&lease.work).is_some());
}

/// P072, invariant 4: an attempt is counted when it is leased, and the count is never exceeded.
#[test]
fn no_attempt_is_leased_past_the_budget() {
    let mut bench = Bench::of(
        "budgets: { attempts: 1 }\nunits: [ { id: a, kind: command, run: make }, { id: b, kind: command, run: make } ]",
    );
    let lease = bench.lease("a");
    assert_eq!(account(&bench, Dimension::Attempts), (0, 1));
    assert!(!bench.owes(&EffectId::WantSlot(unit("b"), ganger_shared::ids::LaneId::main())));
    assert!(bench.declined("b"));
    assert_eq!(bench.stands(), "active", "what runs, runs on");
    bench.report(&lease, failed(FailureClass::CommandFailed));
    assert_eq!(bench.stands(), "budget_limited attempts");
}

/// P072: the time of a lost attempt counts in full until its use is known.
#[test]
fn lost_time_is_booked_at_the_allotment_and_corrected_later() {
    let head = "budgets: { active: 60m }\n";
    let mut bench =
        Bench::of(&format!("{head}units: [ {{ id: a, kind: command, run: make, timeout: 40m }} ]"));
    let first = bench.lease("a");
    assert_eq!(account(&bench, Dimension::ActiveMs), (2_400_000, 0));
    bench.lost(&first, LossReason::LeaseExpired);
    assert_eq!(account(&bench, Dimension::ActiveMs), (0, 2_400_000));
    let second = bench.lease("a");
    assert_eq!(bench.attempt(&attempt_of(&second)).lease.allotted_ms.0, 1_200_000);
    bench.lost(&second, LossReason::LeaseExpired);
    assert_eq!(bench.stands(), "budget_limited active_ms");
    bench.report(&first, failed(FailureClass::CommandFailed));
    assert_eq!(bench.last, ["LateResult", "RunReleased"]);
    assert_eq!(account(&bench, Dimension::ActiveMs), (0, 1_201_000));
    assert_eq!(bench.report(&first, failed(FailureClass::CommandFailed)), Answer::Recorded);
    assert_eq!(account(&bench, Dimension::ActiveMs), (0, 1_201_000), "booked once");
    bench.lease("a");
}

#[test]
fn a_budget_that_is_reserved_wakes_the_others_when_it_is_given_back() {
    let mut bench = Bench::of(
        "budgets: { active: 30m }\nunits: [ { id: a, kind: command, run: make }, { id: b, kind: command, run: make } ]",
    );
    let lease = bench.lease("a");
    assert!(bench.declined("b"));
    bench.report(&lease, failed(FailureClass::CommandFailed));
    bench.lease("b");
    assert_eq!(bench.stands(), "active");
}

/// The files stay claimed from the lease until the branch has them.
#[test]
fn files_are_claimed_from_the_lease_to_the_branch() {
    let mut bench =
        Bench::units(&["a: files: [ 'src/**' ], checks: [{ name: c, run: make test }]"]);
    let claim = EffectId::Claim(unit("a"));
    assert!(!bench.owes(&claim));
    bench.delivered("a");
    assert!(bench.owes(&claim));
    bench.measure("c", ganger_shared::delivery::Outcome::Pass);
    assert!(bench.owes(&claim));
    bench.commit_owed();
    assert!(!bench.owes(&claim));
}

#[test]
fn a_want_carries_what_the_fleet_must_know() {
    let bench =
        Bench::units(&["a: files: [ 'src/**' ], requires: { labels: { os: linux } }, priority: 7"]);
    let id = EffectId::WantSlot(unit("a"), ganger_shared::ids::LaneId::main());
    let Some(Effect::WantSlot(want)) = bench.run.owed().get(&id) else { panic!("no want") };
    assert_eq!(want.labels["os"], "linux");
    assert_eq!(want.priority, 7);
    assert_eq!(want.claim.as_ref().unwrap().1, ["src/**"]);
}

#[test]
fn a_run_nobody_submitted_refuses_everything() {
    let mut bench = Bench::units(&["a"]);
    let call = bench.call();
    let mut run = Run::default();
    let verb = Verb::Stop { call, reason: "enough".to_owned(), now: false };
    let by = ganger_shared::actor::Actor::Coordinator;
    let decided = run.decide_all(vec![crate::run::Command { now: bench.now, by, verb }]);
    assert!(matches!(decided.replies[0], Reply::Rejected(Rejection::WrongState { .. })));
    assert_eq!(run, Run::default());
}

/// P006, P017: after a restart the same fence is still valid and nothing is leased again.
#[test]
fn a_restart_between_lease_and_report_changes_nothing() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.restart();
    let reconciled = bench.tell(Verb::Reconcile {
        worker: worker(MAIN),
        instance: instance("w1-i1"),
        live: vec![lease.clone()],
        finished: vec![],
    });
    assert_eq!(reconciled, Reply::Reconciled { keep: vec![lease.clone()], revoke: vec![] });
    assert_eq!(bench.deliver(&lease, 0), Answer::Recorded);
    assert!(bench.run.live().is_empty());
    assert_eq!(lease.work, WorkId::Attempt(attempt_of(&lease)));
}

/// A clock that is set back stops nothing: what is ready is ready.
#[test]
fn a_clock_that_was_set_back_stops_no_lease() {
    let mut bench = Bench::units(&["a: files: []", "b: after: [a]"]);
    let lease = bench.lease("a");
    let before = bench.now;
    bench.wait(5_000);
    bench.deliver(&lease, 0);
    bench.now = before;
    bench.lease("b");
    assert!(bench.log.is_sorted_by_key(|envelope| envelope.at));
}

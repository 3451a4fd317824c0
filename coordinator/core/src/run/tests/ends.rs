//! Failures, losses, timeouts, and what follows by itself.

use ganger_shared::event::LossReason;
use ganger_shared::failure::FailureClass;
use ganger_shared::link::{Fact, Lease};

use super::bench::*;
use crate::run::{EffectId, Reply, UnitState, Verb};

const LOSSES: [LossReason; 4] = [
    LossReason::LeaseExpired,
    LossReason::NotHeld,
    LossReason::InstanceReplaced,
    LossReason::WorkerLeft,
];

fn class(bench: &Bench, name: &str) -> FailureClass {
    match bench.state(name) {
        UnitState::Failed { failure } => failure.class,
        other => panic!("{name} is {}", other.word()),
    }
}

/// How many attempts follow by themselves, each failing in this way.
fn tries(line: &str, fail: &Fact) -> usize {
    let mut bench = Bench::units(&[line]);
    for n in 1..30 {
        let lease = bench.lease("a");
        bench.report(&lease, started());
        bench.report(&lease, fail.clone());
        if bench.last[1] == "UnitFailed" {
            return n;
        }
        bench.wait(240_000);
    }
    panic!("{line} is tried for ever");
}

/// R066, R067: only a declared retry, only for a class that allows it.
#[test]
fn a_failure_is_retried_as_the_unit_and_the_class_allow() {
    let declared = failed(FailureClass::CommandFailed);
    assert_eq!(tries("a", &declared), 1);
    assert_eq!(tries("a: retry: {}", &declared), 3);
    assert_eq!(tries("a: retry: { attempts: 5 }", &declared), 5);
    assert_eq!(tries("a: retry: { attempts: 5 }, effects: external", &declared), 1);
    assert_eq!(tries("a: retry: { attempts: 5, delay: 3m, within: 10m }", &declared), 3);
    let passing = failed(FailureClass::RateLimited);
    assert_eq!(tries("a", &passing), 3);
    assert_eq!(tries("a: retry: { attempts: 5 }", &passing), 5);
    assert_eq!(tries("a: effects: external", &passing), 1);
    for by_command in [FailureClass::AuthFailed, FailureClass::PermissionDenied] {
        assert_eq!(tries("a: retry: { attempts: 5 }", &failed(by_command)), 1);
    }
}

/// P002: a worker that says itself that its restart ended the work says no more than a lease that ends.
#[test]
fn a_restart_of_the_worker_is_a_loss_and_costs_no_declared_retry() {
    let restarted = failed(FailureClass::WorkerRestarted);
    assert_eq!(tries("a", &restarted), 6);
    assert_eq!(tries("a: effects: external", &restarted), 1);
    let mut bench = Bench::units(&["a: retry: { attempts: 2, delay: 0s }"]);
    for (fail, then) in [
        (FailureClass::WorkerRestarted, "RetryScheduled"),
        (FailureClass::CommandFailed, "RetryScheduled"),
        (FailureClass::WorkerRestarted, "RetryScheduled"),
        (FailureClass::CommandFailed, "UnitFailed"),
    ] {
        let lease = bench.lease("a");
        bench.report(&lease, started());
        bench.report(&lease, failed(fail));
        assert_eq!(bench.last[1], then, "{fail}");
    }
}

#[test]
fn the_time_for_retries_ends_with_its_own_class() {
    let mut bench = Bench::units(&["a: retry: { attempts: 9, delay: 3m, within: 2m }"]);
    let lease = bench.lease("a");
    bench.report(&lease, failed(FailureClass::CommandFailed));
    assert_eq!(class(&bench, "a"), FailureClass::RetryBudgetExceeded);
}

#[test]
fn what_passes_by_itself_does_not_count_against_the_declared_retries() {
    let mut bench = Bench::units(&["a: retry: { attempts: 2, delay: 0s }"]);
    for (fail, then) in [
        (FailureClass::Overloaded, "RetryScheduled"),
        (FailureClass::CommandFailed, "RetryScheduled"),
        (FailureClass::Overloaded, "RetryScheduled"),
        (FailureClass::CommandFailed, "UnitFailed"),
    ] {
        let lease = bench.lease("a");
        bench.report(&lease, failed(fail));
        assert_eq!(bench.last[1], then, "{fail}");
    }
}

/// Design section 4: losses have a bound of their own, and are no failures.
#[test]
fn the_sixth_loss_fails_the_unit() {
    for reason in LOSSES {
        let mut bench = Bench::units(&["a"]);
        for _ in 0..5 {
            let lease = bench.lease("a");
            bench.lost(&lease, reason);
            assert_eq!(bench.last, ["AttemptLost", "RetryScheduled"]);
        }
        let lease = bench.lease("a");
        bench.lost(&lease, reason);
        assert_eq!(bench.last, ["AttemptLost", "UnitFailed", "RunHeld"]);
        assert_eq!(class(&bench, "a"), FailureClass::WorkerLost);
    }
}

/// P002, P012: a restart of the worker is a loss, whoever is the first to say so.
#[test]
fn what_a_restart_cut_off_is_run_again_as_what_was_lost() {
    let restarted = || failed(FailureClass::WorkerRestarted);
    let mut bench = Bench::units(&["a"]);
    for n in 1..=6 {
        let lease = bench.lease("a");
        bench.report(&lease, started());
        bench.report(&lease, restarted());
        let next = if n < 6 { "RetryScheduled" } else { "UnitFailed" };
        assert_eq!(bench.last[..2], ["AttemptFailed", next]);
    }
    assert_eq!(class(&bench, "a"), FailureClass::WorkerLost);
    assert_eq!(bench.run.unit_view(0).losses, 6);
    let mut bench = Bench::units(&["a: effects: external, retry: { attempts: 5 }"]);
    let lease = bench.lease("a");
    bench.report(&lease, restarted());
    assert_eq!(bench.last[1], "UnitFailed");
}

/// `effects: external` is at most once: whatever may have started is not run again.
#[test]
fn external_work_that_may_have_started_is_not_run_again() {
    for reason in LOSSES {
        for heard in [vec![], vec![Fact::Accepted], vec![Fact::Accepted, started()]] {
            let mut bench = Bench::units(&["a: effects: external, retry: { attempts: 9 }"]);
            let lease = bench.lease("a");
            let silent = heard.is_empty();
            for fact in heard {
                bench.report(&lease, fact);
            }
            bench.lost(&lease, reason);
            let there = matches!(reason, LossReason::NotHeld | LossReason::InstanceReplaced);
            let next = if silent && there { "RetryScheduled" } else { "UnitFailed" };
            assert_eq!(bench.last[1], next, "{reason:?}");
        }
    }
    let line = "a: effects: external, retry: { attempts: 2 }";
    let mut bench = Bench::units(&[line]);
    let lease = bench.lease("a");
    bench.report(&lease, failed(FailureClass::WorkspaceFailed));
    assert_eq!(bench.last[1], "RetryScheduled", "without a tree nothing can have started");
}

/// R082, R083, P007: a worker that never ends its attempt is told to; then it is not waited for.
#[test]
fn an_attempt_that_outlives_its_time_is_stopped_and_then_given_up() {
    let mut bench = Bench::units(&["a: timeout: 1m, retry: { attempts: 2, delay: 0s }"]);
    for (n, then) in [(1, "RetryScheduled"), (2, "UnitFailed")] {
        let lease = bench.lease("a");
        bench.report(&lease, started());
        let due = bench.run.next_deadline().unwrap();
        assert_eq!(due.since(bench.now).0, 10_000 + 60_000 + 4 * 1_000 + 60_000);
        bench.now = due;
        bench.tell(Verb::Tick);
        assert_eq!(bench.last, ["AttemptStopping"], "attempt {n}");
        assert!(bench.owes(&EffectId::Stop(lease.work.clone(), lease.epoch)));
        assert!(
            bench.run.next_deadline().unwrap() > bench.now,
            "a deadline that is dealt with moves"
        );
        bench.tell(Verb::Tick);
        assert!(bench.last.is_empty());
        bench.now = bench.run.next_deadline().unwrap();
        bench.tell(Verb::Tick);
        assert_eq!(bench.last[..2], ["AttemptCancelled", then]);
        assert_eq!(bench.run.next_deadline(), None);
    }
    assert_eq!(class(&bench, "a"), FailureClass::Timeout);
}

#[test]
fn a_stop_for_its_time_ends_as_the_worker_says() {
    let overdue = |fact: fn(&Bench, &Lease) -> Fact| {
        let mut bench = Bench::units(&["a"]);
        let lease = bench.lease("a");
        bench.now = bench.run.next_deadline().unwrap();
        bench.tell(Verb::Tick);
        let fact = fact(&bench, &lease);
        bench.report(&lease, fact);
        bench
    };
    let bench = overdue(|bench, lease| bench.hands_in(lease, 1));
    assert_eq!(bench.stand(), "a delivered", "a finished result is never lost");
    let bench = overdue(|_, _| failed(FailureClass::TaskFailed));
    assert_eq!(class(&bench, "a"), FailureClass::TaskFailed);
    let bench = overdue(|_, _| stopped(true));
    assert_eq!(class(&bench, "a"), FailureClass::Timeout);
}

/// P011: nothing stays running once its worker is gone.
#[test]
fn a_worker_that_comes_back_anew_has_lost_what_it_does_not_name() {
    let mut bench = Bench::units(&["a", "b", "c"]);
    let (kept, gone, told) = (bench.lease("a"), bench.lease("b"), bench.lease("c"));
    bench.report(&gone, started());
    let same = |live: &[&Lease], finished: &[&Lease]| Verb::Reconcile {
        worker: worker(MAIN),
        instance: instance("w1-i1"),
        live: live.iter().map(|lease| (*lease).clone()).collect(),
        finished: finished.iter().map(|lease| (*lease).clone()).collect(),
    };
    let unknown = Lease { epoch: epoch(9), ..kept.clone() };
    let reply = bench.tell(same(&[&kept, &unknown], &[]));
    assert_eq!(reply, Reply::Reconciled { keep: vec![kept.clone()], revoke: vec![unknown] });
    assert_eq!(bench.last, ["AttemptLost", "RetryScheduled"], "of b: c may not have arrived yet");
    assert_eq!(bench.stand(), "a running, b ready, c running");
    bench.report(&told, started());
    bench.tell(same(&[], &[&kept, &told]));
    assert!(bench.last.is_empty(), "what ended there is reported next");
    let anew = Verb::Reconcile {
        worker: worker(MAIN),
        instance: instance("w1-i2"),
        live: vec![],
        finished: vec![kept],
    };
    bench.tell(anew);
    assert_eq!(bench.last, ["AttemptLost", "RetryScheduled"]);
    assert_eq!(bench.stand(), "a running, b ready, c ready");
}

#[test]
fn a_lease_a_worker_should_not_hold_is_revoked() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    let unheld = |bench: &mut Bench, on: &str, lease: &Lease| {
        bench.tell(Verb::Unheld { worker: worker(on), lease: lease.clone() })
    };
    let kept = Reply::Reconciled { keep: vec![lease.clone()], revoke: vec![] };
    assert_eq!(unheld(&mut bench, MAIN, &lease), kept);
    let revoked = Reply::Reconciled { keep: vec![], revoke: vec![lease.clone()] };
    assert_eq!(unheld(&mut bench, "w2", &lease), revoked);
    bench.lost(&lease, LossReason::NotHeld);
    assert_eq!(unheld(&mut bench, MAIN, &lease), revoked);
}

/// P046, P047: nobody waits for what cannot come, and the view names the path to it.
#[test]
fn a_failed_unit_holds_the_run_and_blocks_what_depends_on_it() {
    let mut bench = Bench::units(&["a", "b: after: [a]", "c: after: [b]"]);
    let lease = bench.lease("a");
    bench.report(&lease, failed(FailureClass::TaskFailed));
    assert_eq!(bench.stands(), "held unit_failed");
    let view = bench.run.unit_view(2);
    assert_eq!(
        (view.state.as_str(), view.reason.as_deref()),
        ("blocked", Some("c -> b -> a is failed"))
    );
    bench.stop(false);
    assert_eq!(bench.stand(), "a failed, b skipped, c skipped");
    assert_eq!(bench.stands(), "aborted");
}

//! Checks and the gate over them.

use ganger_shared::delivery::{NotMeasured, Outcome};
use ganger_shared::event::LossReason;
use ganger_shared::failure::FailureClass;
use ganger_shared::ids::{CheckId, WorkId};
use ganger_shared::link::{Answer, Fact, Lease};

use super::bench::*;
use crate::run::{EffectId, Measurement, Phase, Verb};

const TWO: &str =
    "a: checks: [{ name: c, run: make test }, { name: d, run: make lint, required: false }]";
const ONE: &str = "a: checks: [{ name: c, run: make test }]";

fn measurement(bench: &Bench) -> &Measurement {
    bench.run.measured.values().next().unwrap()
}

fn why(bench: &Bench) -> Option<NotMeasured> {
    measurement(bench).checks[0].result.as_ref().unwrap().not_measured
}

fn check_of(lease: &Lease) -> CheckId {
    match &lease.work {
        WorkId::Check(id) => id.clone(),
        WorkId::Attempt(id) => panic!("{id} is an attempt"),
    }
}

#[test]
fn the_gate_opens_when_every_required_check_passes() {
    let mut bench = Bench::units(&[TWO]);
    bench.delivered("a");
    bench.measure("d", Outcome::Fail);
    assert_eq!(bench.stand(), "a delivered", "what is not required decides nothing");
    bench.measure("c", Outcome::Pass);
    assert_eq!(bench.last, ["CheckMeasured", "VerdictGiven", "ApplyIntended"]);
    let verdicts = &bench.attempt(&"a/main/1".parse().unwrap()).verdicts;
    assert_eq!(verdicts[0].evidence_refs.len(), 1);
}

/// Invariant 5: a failed check closes the gate, one that was not measured opens nothing.
#[test]
fn a_gate_that_is_not_open_holds_the_run() {
    for (outcome, gate) in [(Outcome::Fail, "closed"), (Outcome::NotMeasured, "held")] {
        let mut bench = Bench::units(&[ONE, "b: after: [a]"]);
        bench.delivered("a");
        bench.measure("c", outcome);
        assert_eq!(bench.last, ["CheckMeasured", "RunHeld"]);
        assert_eq!(bench.stands(), "held gate");
        assert_eq!(bench.run.unit_view(0).gate.as_deref(), Some(gate));
        assert_eq!(bench.stand(), "a delivered, b pending", "never retried by itself");
        assert!(!bench.owes(&EffectId::Claim(unit("a"))), "nothing follows by itself");
    }
}

#[test]
fn a_check_is_lost_twice_and_then_the_harness_is_to_blame() {
    let mut bench = Bench::units(&[ONE]);
    bench.delivered("a");
    let mut epochs = vec![];
    for n in 1..=3 {
        let id = bench.wanted("c")[0].clone();
        assert_eq!(id.n, n);
        let lease = bench.lease_check(&id, "w2");
        epochs.push(lease.epoch.0);
        bench.lost(&lease, LossReason::LeaseExpired);
        let late = measured(Outcome::Pass, &tree("x"));
        let answer = bench.report_by("w2", &lease, late);
        assert_eq!(answer, if n == 3 { Answer::Recorded } else { Answer::Stale });
    }
    assert_eq!(epochs, [1, 2, 3]);
    assert_eq!(why(&bench), Some(NotMeasured::HarnessDefect));
    assert_eq!(bench.stands(), "held gate");
}

/// What cut a measuring off says nothing about what it measures: it is measured again, boundedly.
#[test]
fn a_measuring_that_was_cut_off_is_repeated() {
    for end in [failed(FailureClass::WorkerRestarted), stopped(true)] {
        let mut bench = Bench::units(&[ONE]);
        bench.delivered("a");
        for n in 1..=3 {
            let id = bench.wanted("c")[0].clone();
            assert_eq!(id.n, n);
            let lease = bench.lease_check(&id, "w2");
            assert_eq!(bench.report_by("w2", &lease, end.clone()), Answer::Recorded);
        }
        assert_eq!(why(&bench), Some(NotMeasured::HarnessDefect));
    }
}

/// Invariant 5: what the harness did wrong is never a fact about the delivery.
#[test]
fn a_measuring_that_cannot_be_trusted_is_a_harness_defect() {
    let no_evidence = |tree: &_| {
        let Fact::Measured(mut ended) = measured(Outcome::Pass, tree) else { unreachable!() };
        ended.end.evidence = None;
        Fact::Measured(ended)
    };
    let failed_evidence = |tree: &_| {
        let Fact::Measured(mut ended) = measured(Outcome::Pass, tree) else { unreachable!() };
        ended.end.evidence = Some(evidence(false));
        Fact::Measured(ended)
    };
    let right = |bench: &Bench| measurement(bench).tree.clone();
    let facts: [&dyn Fn(&Bench) -> Fact; 4] = [
        &|_| measured(Outcome::Pass, &tree("another")),
        &|bench| no_evidence(&right(bench)),
        &|bench| failed_evidence(&right(bench)),
        &|_| failed(FailureClass::WorkspaceFailed),
    ];
    for fact in facts {
        let mut bench = Bench::units(&[ONE]);
        bench.delivered("a");
        let id = bench.wanted("c")[0].clone();
        let lease = bench.lease_check(&id, "w2");
        let fact = fact(&bench);
        assert_eq!(bench.report_by("w2", &lease, fact), Answer::Recorded);
        assert_eq!(why(&bench), Some(NotMeasured::HarnessDefect));
        assert_eq!(bench.stands(), "held gate");
    }
}

#[test]
fn a_check_is_only_measured_under_its_lease() {
    let mut bench = Bench::units(&[ONE]);
    bench.delivered("a");
    let id = bench.wanted("c")[0].clone();
    let pass = measured(Outcome::Pass, &bench.tree_of(&id));
    let run = bench.run.id();
    let forged = Lease { run, work: WorkId::Check(id.clone()), epoch: epoch(0) };
    assert_eq!(bench.report_by("w2", &forged, pass.clone()), Answer::Stale);
    let lease = bench.lease_check(&id, "w2");
    assert_eq!(bench.report_by(MAIN, &lease, pass.clone()), Answer::Stale, "P037");
    let future = Lease { epoch: epoch(2), ..lease.clone() };
    assert_eq!(bench.report_by("w2", &future, pass.clone()), Answer::Stale);
    assert_eq!(bench.report_by("w2", &lease, Fact::Accepted), Answer::Recorded);
    assert_eq!(bench.report_by("w2", &lease, pass.clone()), Answer::Recorded);
    let after = bench.run.clone();
    assert_eq!(bench.report_by("w2", &lease, pass), Answer::Recorded);
    assert_eq!(bench.run, after);
}

#[test]
fn a_check_that_never_ends_is_not_measured() {
    let mut bench = Bench::units(&["a: checks: [{ name: c, run: make test, timeout: 1m }]"]);
    bench.delivered("a");
    let id = bench.wanted("c")[0].clone();
    bench.lease_check(&id, "w2");
    bench.now = bench.run.next_deadline().unwrap();
    bench.tell(Verb::Tick);
    assert_eq!(why(&bench), Some(NotMeasured::Timeout));
    assert_eq!(bench.run.next_deadline(), None);
    assert_eq!(bench.stands(), "held gate");
}

/// A cancelled unit needs no facts: what is wanted is dropped, what runs is stopped, what is lost
/// is not measured again.
#[test]
fn the_checks_of_a_cancelled_unit_are_withdrawn() {
    let mut bench = Bench::units(&[TWO]);
    bench.delivered("a");
    let id = bench.wanted("c")[0].clone();
    let lease = bench.lease_check(&id, "w2");
    bench.cancel("a");
    assert!(bench.wanted("d").is_empty());
    assert!(bench.owes(&EffectId::Stop(lease.work.clone(), lease.epoch)));
    assert_eq!(bench.stands(), "active", "a check still runs");
    bench.lost(&lease, LossReason::WorkerLeft);
    assert_eq!(bench.last, ["CheckMeasured", "RunHeld"]);
    assert_eq!(why(&bench), Some(NotMeasured::Withdrawn));
    assert!(bench.wanted("c").is_empty());
    assert_eq!(bench.run.tally.measuring, 0);
}

#[test]
fn the_checks_of_a_run_that_stops_are_withdrawn() {
    let mut bench = Bench::units(&[ONE, "b"]);
    bench.delivered("a");
    let id = bench.wanted("c")[0].clone();
    let lease = bench.lease_check(&id, "w2");
    bench.stop(false);
    assert_eq!(bench.stands().split(' ').next(), Some("stopping"));
    assert_eq!(bench.report_by("w2", &lease, stopped(true)), Answer::Recorded);
    assert_eq!(bench.last, ["CheckMeasured", "RunAborted"]);
    assert_eq!(check_of(&lease), id);
    assert!(bench.run.owed().is_empty());
}

/// What wrote without a required check is never accepted by a policy, whatever the plan check let
/// through.
#[test]
fn a_policy_accepts_nothing_that_wrote_without_a_fact() {
    let optional = "a: checks: [{ name: d, run: make lint, required: false }]";
    for line in ["a", "a: files: []", optional] {
        let mut bench = Bench::units(&[line]);
        bench.delivered("a");
        if line == optional {
            bench.measure("d", Outcome::Pass);
        }
        assert_eq!((bench.stand().as_str(), bench.stands().as_str()), ("a delivered", "held gate"));
    }
}

#[test]
fn what_wrote_nothing_needs_no_check_but_passes_those_it_has() {
    let mut bench = Bench::units(&["a: files: []"]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 0);
    assert_eq!(bench.last, ["AttemptDelivered", "VerdictGiven", "RunCompleted"]);
    let mut bench = Bench::units(&[ONE]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 0);
    assert_eq!(bench.stand(), "a delivered");
    assert_eq!(measurement(&bench).commit, commit("base"), "no other commit has the tree");
    bench.measure("c", Outcome::Pass);
    assert_eq!(bench.stands(), "completed");
}

#[test]
fn a_delivery_without_a_tree_passes_no_required_check() {
    let mut bench = Bench::units(&[ONE]);
    let lease = bench.lease("a");
    bench.report(&lease, Fact::Delivered(Box::new(ended(delivery(None, "x", 0), 5))));
    assert_eq!(bench.last, ["AttemptDelivered", "RunHeld"]);
    assert_eq!(bench.stands(), "held gate");
}

#[test]
fn a_judge_is_not_forestalled() {
    let mut bench = Bench::units(&["a: accept: judge, checks: [{ name: c, run: make test }]"]);
    bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    assert_eq!(bench.stand(), "a delivered");
    let attempt = bench.attempt(&"a/main/1".parse().unwrap());
    assert!(matches!(attempt.phase, Phase::Delivered { taken: true, .. }));
}

/// Invariant 9: what waits behind the files of a delivery that nobody judges cannot start by itself.
#[test]
fn a_run_in_which_all_waits_behind_a_judge_is_held_until_its_files_are_free() {
    let mut bench = Bench::units(&[
        "a: accept: judge, files: ['src/**'], checks: [{ name: c, run: make test }]",
        "b: files: ['src/lib.rs'], checks: [{ name: c, run: make test }]",
    ]);
    bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    assert_eq!(bench.last, ["CheckMeasured", "RunHeld"]);
    assert_eq!(
        (bench.stands(), bench.stand()),
        ("held gate".into(), "a delivered, b ready".into())
    );
    bench.cancel("a");
    assert_eq!(bench.last, ["UnitCancelled", "CommandRecorded", "RunReleased"]);
    assert_eq!(bench.stands(), "active");
}

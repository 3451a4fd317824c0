//! What people ask: cancel, stop, pause, resume.

use ganger_shared::delivery::Outcome;
use ganger_shared::event::LossReason;
use ganger_shared::failure::FailureClass;
use ganger_shared::link::Answer;
use ganger_shared::rejection::Rejection;

use super::bench::*;
use crate::run::{Effect, EffectId, Phase, Reply, UnitState, Verb};

const A: &str = "a: checks: [{ name: c, run: make test }]";

fn refused(reply: &Reply) -> String {
    match reply {
        Reply::Rejected(rejection) => rejection.to_string(),
        other => panic!("{other:?} is no refusal"),
    }
}

/// P050: what depends on it goes with it, nothing else does.
#[test]
fn cancelling_a_unit_takes_what_depends_on_it_and_nothing_else() {
    let mut bench =
        Bench::units(&["a: files: []", "b: after: [a]", "c: after: [b]", "d", "e: after: [d]"]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 0);
    let running = bench.lease("d");
    bench.cancel("b");
    assert_eq!(bench.last, ["UnitCancelled", "UnitCancelled", "CommandRecorded"]);
    assert_eq!(bench.stand(), "a accepted, b cancelled, c cancelled, d running, e pending");
    bench.cancel("d");
    assert_eq!(bench.last, ["UnitStopping", "AttemptStopping", "UnitCancelled", "CommandRecorded"]);
    bench.report(&running, stopped(true));
    assert_eq!(bench.last, ["AttemptCancelled", "UnitCancelled", "RunHeld"]);
    assert_eq!(bench.stands(), "held unit_failed");
}

/// Catalogue 2.1, repair (b) and (c): what was judged is not cancelled.
#[test]
fn what_is_accepted_cancelled_or_skipped_is_not_cancelled() {
    let mut bench = Bench::units(&["a: files: []", "b", "c"]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 0);
    assert!(refused(&bench.cancel("a")).contains("unit a is accepted"));
    bench.cancel("b");
    assert!(refused(&bench.cancel("b")).contains("unit b is cancelled"));
    assert!(matches!(bench.cancel("x"), Reply::Rejected(Rejection::UnknownUnit { .. })));
}

/// P018: the cancel came first, so the delivery is kept as late; it is counted once.
#[test]
fn a_delivery_that_meets_a_cancel_is_kept() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.cancel("a");
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    assert_eq!(bench.last, ["AttemptCancelled", "LateResult", "UnitCancelled", "RunHeld"]);
    let Phase::Cancelled { late: Some(_), .. } = &bench.attempt(&attempt_of(&lease)).phase else {
        panic!("the delivery is lost");
    };
    assert_eq!(bench.run.account(ganger_shared::ledger::Dimension::ActiveMs).settled, 2_000);
    assert_eq!(bench.deliver(&lease, 1), Answer::Recorded);
    assert!(bench.last.is_empty());
}

/// P018: the delivery came first, so the cancel meets a delivered unit; what was handed in stays.
#[test]
fn a_cancel_that_meets_a_delivery_keeps_it() {
    let mut bench = Bench::units(&[A]);
    let lease = bench.lease("a");
    bench.deliver(&lease, 1);
    bench.cancel("a");
    assert_eq!(bench.stand(), "a cancelled");
    bench.taken(&lease);
    assert_eq!(bench.last, ["DeliveryTaken", "RunHeld"]);
    assert!(bench.wanted("c").is_empty(), "and is not measured");
}

#[test]
fn a_worker_that_is_gone_leaves_a_cancel_unconfirmed() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.cancel("a");
    assert!(!bench.owes(&EffectId::Assign(lease.work.clone(), lease.epoch)), "nothing starts now");
    bench.lost(&lease, LossReason::LeaseExpired);
    assert!(matches!(bench.state("a"), UnitState::Cancelled { confirmed: false, .. }));
}

#[test]
fn a_stop_waits_for_what_runs_and_ends_aborted() {
    let mut bench = Bench::units(&["a", "b: after: [a]", "c"]);
    let lease = bench.lease("a");
    bench.stop(false);
    assert_eq!(bench.last, ["RunStopping", "AttemptStopping", "CommandRecorded"]);
    assert!(bench.declined("c"));
    assert_eq!(bench.report(&lease, stopped(true)), Answer::Recorded);
    assert_eq!(bench.last, ["AttemptCancelled", "RunAborted"]);
    assert_eq!(bench.stand(), "a skipped, b skipped, c skipped");
    assert!(bench.run.owed().is_empty());
    assert!(refused(&bench.stop(false)).contains("is aborted"));
}

/// P013: a stop ends, however often it is asked for and whatever became of the workers.
#[test]
fn a_second_stop_only_hurries_the_first() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.stop(false);
    assert!(matches!(bench.stop(false), Reply::Done { replayed: false, .. }));
    assert_eq!(bench.last, ["CommandRecorded"]);
    bench.stop(true);
    assert_eq!(bench.last, ["RunStopping", "AttemptStopping", "CommandRecorded"]);
    let stop = EffectId::Stop(lease.work.clone(), lease.epoch);
    assert!(matches!(bench.run.owed().get(&stop), Some(Effect::Stop { now: true, .. })));
    bench.stop(false);
    assert_eq!(bench.last, ["CommandRecorded"]);
    bench.restart();
    bench.lost(&lease, LossReason::WorkerLeft);
    assert_eq!(bench.stands(), "aborted");
}

#[test]
fn a_unit_whose_attempt_the_stop_has_ended_is_cancelled_at_once() {
    let mut bench = Bench::units(&["a", "b"]);
    let (ended, other) = (bench.lease("a"), bench.lease("b"));
    bench.stop(false);
    bench.report(&ended, stopped(true));
    bench.cancel("a");
    assert_eq!(bench.last, ["UnitCancelled", "CommandRecorded"]);
    bench.report(&other, stopped(true));
    assert_eq!(bench.stand(), "a cancelled, b skipped");
}

/// What was journalled as intended is carried through: the branch and the journal say the same.
#[test]
fn a_stop_waits_for_the_commit_that_is_being_made() {
    let mut bench = Bench::units(&[A, "b: after: [a]"]);
    bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    bench.stop(false);
    assert_eq!(bench.stands().split(' ').next(), Some("stopping"));
    bench.commit_owed();
    assert_eq!(bench.last, ["Applied", "RunAborted"]);
    assert_eq!(bench.stand(), "a accepted, b skipped");
    let mut bench = Bench::units(&[A]);
    bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    bench.stop(true);
    assert_eq!(bench.stands(), "aborted", "without grace nothing is waited for");
}

#[test]
fn a_stop_begins_no_merge_and_no_check() {
    let mut bench = Bench::units(&[
        "a: files: [a], checks: [{ name: c, run: make test }]",
        "b: files: [b], checks: [{ name: d, run: make lint }]",
        "z",
    ]);
    bench.delivered("a");
    let lease = bench.delivered("b");
    bench.measure("c", Outcome::Pass);
    let tip = bench.commit_owed();
    bench.measure("d", Outcome::Pass);
    let running = bench.lease("z");
    bench.stop(false);
    assert!(!bench.owes(&EffectId::Merge(attempt_of(&lease))));
    let result = Ok((tree("ab"), commit("ab")));
    bench.tell(Verb::Merged { attempt: attempt_of(&lease), parent: tip, result });
    assert!(bench.last.is_empty());
    bench.report(&running, stopped(true));
    assert_eq!(bench.stands(), "aborted");
    assert_eq!(bench.stand(), "a accepted, b accepted, z skipped");
}

/// R172: what runs, runs on; nothing new begins; the resume hands out again what was not begun.
#[test]
fn a_pause_starts_nothing_and_the_resume_goes_on() {
    let mut bench = Bench::units(&[A, "b: files: []", "z"]);
    let (first, second) = (bench.lease("a"), bench.lease("b"));
    bench.pause();
    let begins = |bench: &Bench| {
        let owed = bench.run.owed().keys();
        let begins = owed.filter(|id| {
            matches!(
                id,
                EffectId::WantSlot(..)
                    | EffectId::WantCheck(_)
                    | EffectId::Merge(_)
                    | EffectId::Apply(_)
            )
        });
        begins.count()
    };
    assert_eq!(begins(&bench), 0);
    assert!(bench.declined("z"));
    bench.deliver(&second, 0);
    bench.deliver(&first, 1);
    bench.taken(&first);
    assert_eq!(begins(&bench), 0);
    bench.restart();
    bench.resume();
    assert_eq!(begins(&bench), 2);
    let check = bench.wanted("c")[0].clone();
    let lease = bench.lease_check(&check, "w2");
    bench.pause();
    let pass = measured(Outcome::Pass, &bench.tree_of(&check));
    bench.report_by("w2", &lease, pass);
    assert_eq!(begins(&bench), 0, "no commit is begun");
    bench.resume();
    assert_eq!(bench.last, ["RunResumed", "CommandRecorded", "ApplyIntended"]);
}

#[test]
fn a_pause_merges_nothing() {
    let mut bench = Bench::units(&[
        "a: files: [a], checks: [{ name: c, run: make test }]",
        "b: files: [b], checks: [{ name: d, run: make lint }]",
    ]);
    bench.delivered("a");
    let lease = bench.delivered("b");
    bench.measure("c", Outcome::Pass);
    let check = bench.wanted("d")[0].clone();
    let measuring = bench.lease_check(&check, "w2");
    bench.pause();
    bench.commit_owed();
    let pass = measured(Outcome::Pass, &bench.tree_of(&check));
    bench.report_by("w2", &measuring, pass);
    assert!(!bench.owes(&EffectId::Merge(attempt_of(&lease))));
    bench.resume();
    assert!(bench.owes(&EffectId::Merge(attempt_of(&lease))));
}

#[test]
fn a_hold_and_a_pause_do_not_hide_each_other() {
    let mut bench = Bench::units(&["a"]);
    let lease = bench.lease("a");
    bench.report(&lease, failed(FailureClass::TaskFailed));
    assert!(refused(&bench.resume()).contains("resume needs a paused run"));
    bench.pause();
    assert_eq!(bench.stands(), "paused lunch");
    bench.resume();
    assert_eq!(bench.last, ["RunResumed", "CommandRecorded", "RunHeld"]);
    assert_eq!(bench.stands(), "held unit_failed");
}

#[test]
fn a_stale_sequence_is_refused_and_an_unrelated_one_is_not() {
    let mut bench = Bench::units(&["a", "b"]);
    let seen = bench.run.sequence();
    bench.lease("a");
    let with = |bench: &mut Bench, unit: &str, expected| {
        let call = crate::run::Call { expected: Some(expected), ..bench.call() };
        bench.tell(Verb::Cancel { call, unit: unit.to_owned(), reason: "r".to_owned() })
    };
    assert!(refused(&with(&mut bench, "a", seen)).contains("unit a changed"));
    assert!(matches!(with(&mut bench, "b", seen), Reply::Done { replayed: false, .. }));
    let call = crate::run::Call { expected: Some(seen), ..bench.call() };
    let paused = bench.tell(Verb::Pause { call: call.clone(), reason: "r".to_owned() });
    assert!(matches!(paused, Reply::Done { replayed: false, .. }), "no event was about the run");
    let again = bench.tell(Verb::Pause { call, reason: "r".to_owned() });
    assert!(matches!(again, Reply::Done { replayed: true, .. }));
}

/// Nobody waits for the gate of a run that stops, so nobody is kept off the files either.
#[test]
fn a_stop_gives_the_files_of_an_unmeasured_delivery_back() {
    let mut bench = Bench::units(&["a: files: [a], checks: [{ name: c, run: make test }]", "b"]);
    bench.delivered("a");
    bench.lease("b");
    assert!(bench.owes(&EffectId::Claim(unit("a"))));
    bench.stop(false);
    assert!(!bench.owes(&EffectId::Claim(unit("a"))));
    assert!(bench.owes(&EffectId::Claim(unit("b"))), "what still runs keeps its own");
}

//! From an accepted delivery to the branch, and from the last one to the end of the run.

use ganger_shared::delivery::Outcome;
use ganger_shared::event::Conflict;
use ganger_shared::ids::{CommitId, Subject};

use super::bench::*;
use crate::run::{Effect, EffectId, Integration, UnitState, Verb};

const A: &str = "a: files: [ 'a/**' ], checks: [{ name: c, run: make test }]";
const B: &str = "b: files: [ 'b/**' ], checks: [{ name: d, run: make lint }]";

fn integration(bench: &Bench, name: &str) -> Integration {
    match bench.state(name) {
        UnitState::Accepted { integration, .. } => integration.clone(),
        other => panic!("{name} is {}", other.word()),
    }
}

/// Both delivered from the base; `a` stands on the branch, `b` is accepted and must be merged.
fn behind() -> (Bench, CommitId) {
    let mut bench = Bench::units(&[A, B]);
    bench.delivered("a");
    bench.delivered("b");
    bench.measure("c", Outcome::Pass);
    let tip = bench.commit_owed();
    bench.measure("d", Outcome::Pass);
    (bench, tip)
}

fn merged(bench: &mut Bench, onto: &CommitId, result: Result<&str, &[&str]>) {
    let result = result
        .map(|tag| (tree(tag), commit(tag)))
        .map_err(|files| files.iter().map(|file| (*file).to_owned()).collect());
    let attempt = "b/main/1".parse().unwrap();
    bench.tell(Verb::Merged { attempt, parent: onto.clone(), result });
}

#[test]
fn a_tip_that_has_not_moved_takes_the_delivered_tree() {
    let mut bench = Bench::units(&[A]);
    let lease = bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    let id = EffectId::Apply(attempt_of(&lease));
    let Some(Effect::Apply { parent, tree: made, .. }) = bench.run.owed().get(&id) else {
        panic!()
    };
    assert_eq!((parent, made), (&commit("base"), &tree("a/main/1@1")));
    let tip = bench.commit_owed();
    assert_eq!(bench.last, ["Applied", "RunCompleted"], "measured on exactly the final tree");
    assert_eq!(bench.run.view().unwrap().tip, Some(tip.clone()));
    assert_eq!(integration(&bench, "a"), Integration::Done { commit: tip });
    assert!(bench.run.owed().is_empty());
}

/// The tip moved: merged, measured again on the merged tree, and once more where the final tree is
/// another than the one that was measured.
#[test]
fn a_tip_that_moved_is_merged_and_measured_again() {
    let (mut bench, tip) = behind();
    let id = EffectId::Merge("b/main/1".parse().unwrap());
    assert!(matches!(bench.run.owed().get(&id), Some(Effect::Merge { onto, .. }) if *onto == tip));
    merged(&mut bench, &tip, Ok("ab"));
    assert_eq!(bench.last, ["MergePrepared"]);
    assert_eq!(bench.wanted("d")[0].subject, Subject::Merge("b/main/1".parse().unwrap()));
    merged(&mut bench, &tip, Ok("other"));
    assert!(bench.last.is_empty(), "an answer that is not owed changes nothing");
    bench.measure("d", Outcome::Pass);
    assert_eq!(bench.last, ["CheckMeasured", "ApplyIntended"]);
    bench.commit_owed();
    assert_eq!(bench.last, ["Applied"]);
    assert!(bench.wanted("d").is_empty(), "measured on exactly the final tree");
    assert_eq!(bench.wanted("c")[0].subject, Subject::Final(tree("ab")));
    bench.measure("c", Outcome::Pass);
    assert_eq!(bench.last, ["CheckMeasured", "RunCompleted"]);
}

#[test]
fn a_final_tree_that_fails_holds_the_run() {
    let (mut bench, tip) = behind();
    merged(&mut bench, &tip, Ok("ab"));
    bench.measure("d", Outcome::Pass);
    bench.commit_owed();
    bench.measure("c", Outcome::Fail);
    assert_eq!(bench.stands(), "held gate");
    assert_eq!(bench.run.view().unwrap().final_checks.len(), 1);
}

#[test]
fn files_in_conflict_hold_the_unit() {
    let (mut bench, tip) = behind();
    merged(&mut bench, &tip, Err(&["src/x"]));
    assert_eq!(bench.last, ["IntegrationConflicted", "RunHeld"]);
    let conflict = Conflict::Files { files: vec!["src/x".to_owned()] };
    assert_eq!(integration(&bench, "b"), Integration::Conflict { conflict });
    assert_eq!(bench.stands(), "held gate");
}

#[test]
fn a_merged_tree_that_fails_its_checks_holds_the_unit() {
    let (mut bench, tip) = behind();
    merged(&mut bench, &tip, Ok("ab"));
    let check = bench.wanted("d")[0].clone();
    bench.measure("d", Outcome::Fail);
    assert_eq!(bench.last, ["CheckMeasured", "IntegrationConflicted", "RunHeld"]);
    let conflict = Conflict::Checks { failed: vec![check] };
    assert_eq!(integration(&bench, "b"), Integration::Conflict { conflict });
}

/// P070: a branch that somebody else moved is left alone.
#[test]
fn a_foreign_tip_holds_the_unit() {
    let mut bench = Bench::units(&[A]);
    let lease = bench.delivered("a");
    bench.measure("c", Outcome::Pass);
    let found = Some(commit("foreign"));
    let verb = Verb::ApplyRefused { attempt: attempt_of(&lease), found: found.clone() };
    bench.tell(verb.clone());
    assert_eq!(bench.last, ["IntegrationConflicted", "RunHeld"]);
    assert_eq!(
        integration(&bench, "a"),
        Integration::Conflict { conflict: Conflict::ForeignTip { found } }
    );
    bench.tell(verb);
    assert!(bench.last.is_empty());
}

#[test]
fn answers_of_the_mirror_count_once() {
    let mut bench = Bench::units(&[A, "z: after: [a]"]);
    let lease = bench.delivered("a");
    bench.taken(&lease);
    assert!(bench.last.is_empty());
    bench.measure("c", Outcome::Pass);
    let wrong = Verb::ApplyDone {
        attempt: attempt_of(&lease),
        commit: commit("wrong"),
        tree: tree("wrong"),
    };
    bench.tell(wrong);
    assert!(bench.last.is_empty(), "another tree than was intended is no answer");
    let made = bench.commit_owed();
    let again =
        Verb::ApplyDone { attempt: attempt_of(&lease), commit: made, tree: tree("a/main/1@1") };
    bench.tell(again);
    assert!(bench.last.is_empty());
}

#[test]
fn without_a_repository_acceptance_is_all_there_is() {
    let mut bench = Bench::without_repository(&["a", "b: after: [a]"]);
    let lease = bench.lease("a");
    bench.report(&lease, bench_delivery());
    assert_eq!(bench.last, ["AttemptDelivered", "VerdictGiven"]);
    assert_eq!(bench.stand(), "a accepted, b ready");
    let lease = bench.lease("b");
    // A tree nobody asked for is not looked at.
    let fact = ended(delivery(Some(&commit("odd")), "odd", 1), 1);
    bench.report(&lease, ganger_shared::link::Fact::Delivered(Box::new(fact)));
    assert_eq!(bench.last, ["AttemptDelivered", "VerdictGiven", "RunCompleted"]);
    assert_eq!(integration(&bench, "b"), Integration::NotNeeded);
}

fn bench_delivery() -> ganger_shared::link::Fact {
    ganger_shared::link::Fact::Delivered(Box::new(ended(delivery(None, "x", 0), 1)))
}

#[test]
fn deliveries_reach_the_branch_one_by_one_in_order_of_acceptance() {
    let mut bench = Bench::units(&[A, B]);
    bench.delivered("a");
    bench.delivered("b");
    bench.measure("d", Outcome::Pass);
    bench.measure("c", Outcome::Pass);
    let commits = |bench: &Bench| {
        let owed = bench.run.owed().keys();
        owed.filter(|id| matches!(id, EffectId::Apply(_) | EffectId::Merge(_)))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(commits(&bench), [EffectId::Apply("b/main/1".parse().unwrap())]);
    bench.commit_owed();
    assert_eq!(commits(&bench), [EffectId::Merge("a/main/1".parse().unwrap())]);
}

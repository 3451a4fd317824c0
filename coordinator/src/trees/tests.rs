//! Orders to real git: once each, to the right run, and whole after a crash at the worst moment.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::path::Path;

use ganger_coordinator_core::run::{Effect, Verb};
use ganger_git::{CommitRequest, Mirror};
use ganger_harness::repository::Repository;
use ganger_shared::delivery::{
    Change, ChangeKind, Changes, CheckResult, CommandEvidence, Delivery, Outcome, TreeDelivery,
};
use ganger_shared::ids::{AttemptId, CommitId, RepositoryId, RunId, TreeId};
use ganger_shared::link::{Answer, Ended, Fact};
use ganger_shared::time::DurationMs;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{TreesMessage, mirrors};
use crate::journal::MemoryJournal;
use crate::runs::RunsMessage;
use crate::stage::{Peer, Stage};

/// A unit that may change what is below `a`, and is measured.
const UNIT: &str = "units: [{ id: a, kind: command, run: make, files: ['a/**'], \
                    checks: [{ name: c, run: make test }] }]";

/// Hands on what the trees say to runs.
struct Ear;

impl Actor for Ear {
    type Msg = RunsMessage;
    type State = mpsc::Sender<Verb>;
    type Arguments = mpsc::Sender<Verb>;

    async fn pre_start(
        &self,
        _myself: ActorRef<RunsMessage>,
        heard: mpsc::Sender<Verb>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _myself: ActorRef<RunsMessage>,
        message: RunsMessage,
        heard: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let RunsMessage::Tell { asked, .. } = message {
            heard.send(asked.verb).await?;
        }
        Ok(())
    }
}

fn repository() -> RepositoryId {
    RepositoryId::parse("repo").unwrap()
}

async fn stage() -> Stage {
    let stage = Stage::set(MemoryJournal::default(), TempDir::new().unwrap()).await;
    stage.open();
    stage
}

async fn mirror(stage: &Stage) -> Mirror {
    stage.mirrors.mirror(&repository()).await.unwrap()
}

/// Another commit on top of `parent`, with the same tree.
async fn on_top(mirror: &Mirror, parent: &CommitId, message: &str) -> CommitId {
    let request = CommitRequest {
        tree: mirror.tree_of(parent).await.unwrap(),
        parents: vec![parent.clone()],
        message: message.to_owned(),
        author_name: "anna".to_owned(),
        author_email: "anna@localhost".to_owned(),
        time_unix: 7,
    };
    mirror.commit_tree(&request).await.unwrap()
}

fn merge(attempt: &str, commit: &CommitId, onto: &CommitId) -> Effect {
    let attempt: AttemptId = attempt.parse().unwrap();
    let (commit, onto) = (commit.clone(), onto.clone());
    Effect::Merge { attempt, repository: repository(), commit, onto }
}

async fn merged(heard: &mut mpsc::Receiver<Verb>) -> (String, CommitId) {
    let verb = heard.recv().await.unwrap();
    let Verb::Merged { attempt, parent, result } = verb else { panic!("{verb:?}") };
    result.unwrap();
    (attempt.to_string(), parent)
}

/// An order that is handed out again while it is under way is carried out once, and one that asks for
/// something else by then is carried out after it.
#[tokio::test]
async fn an_order_handed_out_twice_runs_once() {
    let stage = stage().await;
    let mirror = mirror(&stage).await;
    let base = mirror.empty_commit().await.unwrap();
    let tip = on_top(&mirror, &base, "tip").await;
    let run = RunId::from_uuid_bytes(&[1; 16]);
    let (hear, mut heard) = mpsc::channel(8);
    let (runs, _) = Actor::spawn(None, Ear, hear).await.unwrap();
    let order = |effect: Effect| {
        let (run, runs) = (run.clone(), runs.clone());
        stage.house.trees.cast(TreesMessage::Do { run, effect, runs }).unwrap();
    };
    order(merge("a/main/1", &base, &base));
    order(merge("a/main/1", &base, &base));
    assert_eq!(merged(&mut heard).await, ("a/main/1".to_owned(), base.clone()));
    order(merge("b/main/1", &base, &base));
    order(merge("b/main/1", &base, &tip));
    assert_eq!(
        merged(&mut heard).await,
        ("b/main/1".to_owned(), base.clone()),
        "and not `a` again"
    );
    assert_eq!(merged(&mut heard).await, ("b/main/1".to_owned(), tip));
    order(merge("a/main/1", &base, &base));
    assert_eq!(merged(&mut heard).await.0, "a/main/1", "an order that ended may come again");
}

/// What an attempt hands in: its commit in a bundle, on top of the base.
struct Handed {
    base: CommitId,
    commit: CommitId,
    tree: TreeId,
    bundle: Vec<u8>,
}

fn handed(dir: &Path, path: &str) -> (Handed, Vec<u8>) {
    let user = Repository::make(dir, &[("README", "hello\n")]);
    let rev = |name: &str| user.git(&["rev-parse", name]);
    let bundle = |range: &str| {
        user.git(&["bundle", "create", "--quiet", "made.bundle", range]);
        std::fs::read(dir.join("made.bundle")).unwrap()
    };
    let (base, first) = (rev("HEAD"), bundle("main"));
    std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
    std::fs::write(dir.join(path), "work\n").unwrap();
    user.git(&["add", path]);
    user.git(&["commit", "--quiet", "--message=work"]);
    let handed = Handed {
        commit: CommitId::parse(&rev("HEAD")).unwrap(),
        tree: TreeId::parse(&rev("HEAD^{tree}")).unwrap(),
        bundle: bundle(&format!("{base}..main")),
        base: CommitId::parse(&base).unwrap(),
    };
    (handed, first)
}

fn delivered(stage: &Stage, handed: &Handed, path: &str) -> Fact {
    let mut delivery = Delivery::new("done");
    delivery.tree = Some(TreeDelivery {
        base: handed.base.clone(),
        tree: handed.tree.clone(),
        commit: handed.commit.clone(),
        bundle: Some(stage.artifacts.put_bytes(&handed.bundle).unwrap()),
        patch: None,
        changes: Changes::list([Change { path: path.to_owned(), kind: ChangeKind::Added }]),
    });
    let active_ms = DurationMs(10);
    Fact::Delivered(Box::new(Ended {
        end: delivery,
        active_ms,
        output: None,
        output_truncated: false,
    }))
}

/// The check of what was handed in passes.
async fn measured(worker: &mut Peer, tree: TreeId) {
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    let evidence = CommandEvidence {
        cmd: "make test".to_owned(),
        pass: true,
        exit_code: Some(0),
        log_tail: String::new(),
        log: None,
        duration_ms: DurationMs(9),
    };
    let (outcome, evidence) = (Outcome::Pass, Some(evidence));
    let end = CheckResult { outcome, not_measured: None, evidence, tree, message: None };
    let (active_ms, output) = (DurationMs(10), None);
    let ended = Ended { end, active_ms, output, output_truncated: false };
    assert_eq!(worker.report(&lease, 2, Fact::Measured(Box::new(ended))).await, Answer::Recorded);
}

/// A run whose one unit is handed in, its worker, and the tree that is to be measured.
async fn handing_in(stage: &Stage, user: &TempDir, path: &str) -> (RunId, Peer, TreeId) {
    let (handed, first) = handed(user.path(), path);
    let run = RunId::from_uuid_bytes(&[1; 16]);
    let from = user.path().join("first");
    std::fs::write(&from, first).unwrap();
    let source = (Some(from.as_path()), &handed.base);
    stage.mirrors.begin(&repository(), &run, source).await.unwrap();
    stage.run_over(1, UNIT, &handed.base).await;
    let mut worker = stage.attach("w1", 1).await;
    let lease = worker.assigned().await;
    assert_eq!(worker.report(&lease, 1, Fact::Accepted).await, Answer::Recorded);
    let fact = delivered(stage, &handed, path);
    assert_eq!(worker.report(&lease, 2, fact).await, Answer::Recorded);
    (run, worker, handed.tree)
}

async fn tip(stage: &Stage, run: &RunId) -> CommitId {
    let branch = mirrors::branch_ref(run).unwrap();
    mirror(stage).await.read_ref(&branch).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_delivery_is_taken_in_and_put_on_the_branch() {
    let (stage, user) = (stage().await, TempDir::new().unwrap());
    let (run, mut worker, tree) = handing_in(&stage, &user, "a/x").await;
    measured(&mut worker, tree).await;
    stage.until("completed", |stage| stage.times(&run, "RunCompleted") == 1).await;
    assert_eq!(stage.times(&run, "DeliveryTaken"), 1);
    let view = stage.view(&run).await.unwrap();
    assert_eq!(view.tip, Some(tip(&stage, &run).await));
}

#[tokio::test]
async fn a_delivery_outside_its_files_is_not_taken() {
    let (stage, user) = (stage().await, TempDir::new().unwrap());
    let (run, _worker, _) = handing_in(&stage, &user, "b/x").await;
    stage.until("failed", |stage| stage.times(&run, "AttemptFailed") == 1).await;
    assert_eq!(stage.times(&run, "DeliveryTaken"), 0);
}

/// The commit is intended and made, and the coordinator dies before it writes that down.
async fn crashed_between(user: &TempDir) -> (Stage, RunId, CommitId) {
    let stage = stage().await;
    let (run, mut worker, tree) = handing_in(&stage, user, "a/x").await;
    let before = tip(&stage, &run).await;
    measured(&mut worker, tree).await;
    stage.until("intended", |stage| stage.times(&run, "ApplyIntended") == 1).await;
    stage.journal.hold(true);
    let made = loop {
        let now = tip(&stage, &run).await;
        if now != before {
            break now;
        }
    };
    let stage = stage.crash_live().await;
    stage.journal.hold(false);
    assert_eq!(stage.times(&run, "Applied"), 0);
    (stage, run, made)
}

/// Invariant 9: the branch stands at the intended commit, so that it only has to be written down.
#[tokio::test]
async fn a_commit_that_was_made_before_a_crash_is_recorded_after_it() {
    let user = TempDir::new().unwrap();
    let (stage, run, made) = crashed_between(&user).await;
    stage.open();
    stage.until("applied", |stage| stage.times(&run, "RunCompleted") == 1).await;
    assert_eq!(stage.times(&run, "Applied"), 1);
    assert_eq!(stage.times(&run, "ApplyIntended"), 1);
    assert_eq!(tip(&stage, &run).await, made);
}

/// The branch was moved by somebody else meanwhile: nothing is overwritten, the run says so.
#[tokio::test]
async fn a_branch_that_somebody_moved_is_a_conflict() {
    let user = TempDir::new().unwrap();
    let (stage, run, made) = crashed_between(&user).await;
    let mirror = mirror(&stage).await;
    let foreign = on_top(&mirror, &made, "from elsewhere").await;
    let branch = mirrors::branch_ref(&run).unwrap();
    mirror.update_ref(&branch, &foreign, Some(&made)).await.unwrap();
    stage.open();
    stage.until("conflict", |stage| stage.times(&run, "IntegrationConflicted") == 1).await;
    assert_eq!(stage.times(&run, "Applied"), 0);
    assert_eq!(tip(&stage, &run).await, foreign);
}

//! The steps of an attempt and the programs they run, as chance has them: trees are made, programs
//! work, fail, hang or die on some rung, evidence is collected.
//!
//! What is handed in follows from the lease alone: the same names give the same ids.

use ganger_shared::delivery::{
    Change, ChangeKind, Changes, CheckResult, CommandEvidence, Delivery, NotMeasured, Outcome,
    TreeDelivery, Usage,
};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{CommitId, TreeId};
use ganger_shared::link::{Lease, Started};
use ganger_shared::spec::{Assignment, Body};
use ganger_shared::time::DurationMs;
use ganger_worker_core::attempt::{Ending, Evidence, Exited, Handed, Rung};

use super::WorkerEvent;
use super::attempt::AttemptMail;
use super::attempts::AttemptsMail;
use crate::world::World;

/// How soon a step that needs the coordinator looks again whether there is one.
const LOOK_AGAIN_MS: u64 = 200;

const CLASSES: [FailureClass; 5] = [
    FailureClass::CommandFailed,
    FailureClass::RateLimited,
    FailureClass::AuthFailed,
    FailureClass::TaskFailed,
    FailureClass::CliCrash,
];

/// A program that runs.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// It prints nothing.
    mute: bool,
    /// The first rung that ends it.
    obeys: Rung,
    since_ms: u64,
}

impl Program {
    /// When it last printed.
    pub(super) fn heard(&self, now_ms: u64) -> u64 {
        if self.mute { self.since_ms } else { now_ms }
    }
}

/// What a step comes to.
#[derive(Debug)]
pub(crate) enum Done {
    Prepared(bool),
    Spawned(bool),
    Ready,
    Exited { failure: Option<Failure>, confirmed: bool },
    Collected(Ending),
    Discarded,
}

impl World {
    fn step_takes(&mut self, on: usize, lease: &Lease, wait_ms: u64, done: Done) {
        let Some(room) = self.attempt_room(on, lease) else { return };
        let step = room.step;
        self.on_worker(on, wait_ms, WorkerEvent::Step(lease.clone(), step, done));
    }

    pub(super) fn prepare(&mut self, on: usize, lease: &Lease) {
        let well = self.calm || !self.chance.once_in(25);
        let wait = self.chance.within(5, 400);
        self.step_takes(on, lease, wait, Done::Prepared(well));
    }

    pub(super) fn spawn(&mut self, on: usize, lease: &Lease) {
        self.rules.started(lease);
        self.note(|| format!("w{on} runs {} @{}", lease.work, lease.epoch));
        let well = self.calm || !self.chance.once_in(40);
        let never = !self.calm && self.chance.once_in(60);
        let wait = if never { 20_000 } else { self.chance.within(1, 60) };
        self.step_takes(on, lease, wait, Done::Spawned(well));
    }

    /// The program runs: what becomes of it is settled here.
    fn runs(&mut self, on: usize, lease: &Lease) {
        let obeys = match self.chance.below(4) {
            0 => Rung::Terminate,
            1 => Rung::Kill,
            _ => Rung::Interrupt,
        };
        let hangs = self.chance.once_in(if self.calm { 200 } else { 15 });
        let program = Program {
            mute: hangs && self.chance.once_in(2),
            obeys,
            since_ms: self.worker_now(on).mono_ms,
        };
        if let Some(room) = self.attempt_room(on, lease) {
            room.program = Some(program);
        }
        let wakes = self.chance.within(1, 50);
        if !self.chance.once_in(80) {
            self.step_takes(on, lease, wakes, Done::Ready);
        }
        if !hangs {
            let fails = self.chance.once_in(if self.calm { 30 } else { 10 });
            let class = CLASSES[self.chance.place(CLASSES.len())];
            let failure = fails.then(|| Failure::new(class, "it did not work"));
            let lasts = wakes + self.chance.within(20, 6_000);
            self.step_takes(on, lease, lasts, Done::Exited { failure, confirmed: true });
        }
    }

    pub(super) fn climb(&mut self, on: usize, lease: &Lease, rung: Rung) {
        let Some(room) = self.attempt_room(on, lease) else { return };
        if room.program.as_ref().is_none_or(|program| rung < program.obeys) {
            return;
        }
        room.step += 1;
        let confirmed = !self.chance.once_in(10);
        let failure = Some(Failure::new(FailureClass::ProcessTerminated, "a signal ended it"));
        let wait = self.chance.within(1, 300);
        self.step_takes(on, lease, wait, Done::Exited { failure, confirmed });
    }

    pub(super) fn abandon(&mut self, on: usize, lease: &Lease) {
        if let Some(room) = self.attempt_room(on, lease) {
            room.step += 1;
            room.program = None;
        }
    }

    pub(super) fn collect(&mut self, on: usize, lease: &Lease, ending: Ending) {
        if let Some(room) = self.attempt_room(on, lease) {
            room.step += 1;
            room.program = None;
        }
        let wait = self.chance.within(2, 300);
        self.step_takes(on, lease, wait, Done::Collected(ending));
    }

    pub(super) fn discard(&mut self, on: usize, lease: &Lease) {
        let closed = AttemptsMail::Closed(lease.clone());
        self.within_worker(on, WorkerEvent::Attempts(closed));
        if let Some(room) = self.attempt_room(on, lease) {
            room.step += 1;
        }
        let wait = self.chance.within(1, 200);
        self.step_takes(on, lease, wait, Done::Discarded);
    }

    /// A step is over. Trees come from the coordinator and evidence goes there: without one, both
    /// wait.
    pub(super) fn step_done(&mut self, on: usize, lease: &Lease, step: u64, done: Done) {
        let attached = self.workers[on].process.link.is_attached();
        let Some(room) = self.attempt_room(on, lease).filter(|room| room.step == step) else {
            return;
        };
        let mail = match done {
            Done::Prepared(_) | Done::Collected(_) if !attached => {
                return self.step_takes(on, lease, LOOK_AGAIN_MS, done);
            }
            Done::Prepared(true) => AttemptMail::Prepared(Ok(())),
            Done::Prepared(false) => AttemptMail::Prepared(Err(workspace())),
            Done::Spawned(true) => AttemptMail::Spawned(Ok(how())),
            Done::Spawned(false) => AttemptMail::Spawned(Err(workspace())),
            Done::Ready => AttemptMail::Ready,
            Done::Exited { failure, confirmed } => {
                room.program = None;
                let at_ms = self.worker_now(on).mono_ms;
                AttemptMail::Exited(Exited { failure, confirmed, at_ms })
            }
            Done::Collected(ending) => {
                let assignment = room.assignment.clone();
                let roll = self.chance.below(60);
                AttemptMail::Collected(Box::new(evidence(&assignment, ending, roll)))
            }
            Done::Discarded => AttemptMail::Discarded,
        };
        let runs = matches!(mail, AttemptMail::Spawned(Ok(_)));
        self.within_worker(on, WorkerEvent::Attempt(lease.clone(), mail));
        if runs {
            self.runs(on, lease);
        }
    }
}

fn workspace() -> Failure {
    Failure::new(FailureClass::WorkspaceFailed, "no room to work in")
}

fn how() -> Started {
    Started { pid: 7, isolated: false, containment: "cgroup".to_owned() }
}

fn evidence(assignment: &Assignment, ending: Ending, roll: u64) -> Evidence {
    let handed = match ending {
        Ending::Finished => handed(assignment, roll),
        Ending::Failed(failure) => Handed::Failed { failure, left: None },
        Ending::Stopped { .. } => Handed::Nothing,
    };
    Evidence { handed, usage: Usage::default(), output: None, output_truncated: false }
}

fn handed(assignment: &Assignment, roll: u64) -> Handed {
    match &assignment.body {
        Body::Check(task) => Handed::Measured(Box::new(measured(&task.tree, roll))),
        Body::Command { files, .. } => {
            let paths = if files.is_empty() || roll == 1 { 0 } else { 1 + roll % 3 };
            Handed::Delivery(Box::new(delivery(assignment, paths)))
        }
        Body::Agent(_) => Handed::Delivery(Box::new(delivery(assignment, 1))),
    }
}

fn measured(tree: &TreeId, roll: u64) -> CheckResult {
    let outcome = match roll {
        0 | 1 => Outcome::Fail,
        2 => Outcome::NotMeasured,
        _ => Outcome::Pass,
    };
    CheckResult {
        outcome,
        not_measured: (outcome == Outcome::NotMeasured).then_some(NotMeasured::HarnessDefect),
        evidence: (outcome != Outcome::NotMeasured).then(|| CommandEvidence {
            cmd: "make test".to_owned(),
            pass: outcome == Outcome::Pass,
            exit_code: Some(i32::from(outcome != Outcome::Pass)),
            log_tail: String::new(),
            log: None,
            duration_ms: DurationMs(1),
        }),
        tree: if roll == 3 { tree_of("another") } else { tree.clone() },
        message: None,
    }
}

fn delivery(assignment: &Assignment, paths: u64) -> Delivery {
    let name = format!("{}/{}/{}", assignment.run, assignment.work, assignment.epoch);
    let mut delivery = Delivery::new(name.clone());
    delivery.tree = assignment.source.as_ref().map(|source| TreeDelivery {
        base: source.commit.clone(),
        tree: tree_of(if paths > 0 { &name } else { source.commit.as_str() }),
        commit: commit_of(&name),
        bundle: (paths > 0).then(|| ArtifactRef::of(name.as_bytes())),
        patch: None,
        changes: Changes::list(
            (0..paths).map(|n| Change { path: format!("src/{n}"), kind: ChangeKind::Modified }),
        ),
    });
    delivery
}

/// The commit of this name.
pub(crate) fn commit_of(name: &str) -> CommitId {
    let digest = Digest::of(format!("commit {name}").as_bytes()).to_string();
    CommitId::parse(&digest[..40]).expect("40 hex digits")
}

/// The tree of this name.
pub(crate) fn tree_of(name: &str) -> TreeId {
    let digest = Digest::of(format!("tree {name}").as_bytes()).to_string();
    TreeId::parse(&digest[..40]).expect("40 hex digits")
}

//! What a seed stands for: plans, workers, what people ask for and which faults come when.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ganger_coordinator_core::run::{Call, Verb};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::{Repository, Submitted};
use ganger_shared::ids::{IdempotencyKey, RepositoryId, RunId};
use ganger_shared::limits::Limits;
use ganger_shared::plan::{self, PlanFile};
use ganger_shared::time::DurationMs;

use crate::bug::Bug;
use crate::chance::Chance;
use crate::worker::program::commit_of;

/// How long faults come, at most.
const FAULTS_MS: u64 = 90_000;

/// One world, as it begins.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) plans: Vec<String>,
    /// Labels and slots of each worker.
    pub(crate) workers: Vec<(BTreeMap<String, String>, u32)>,
    /// What people ask for, and when they first do.
    pub(crate) wishes: Vec<(u64, Wish)>,
    pub(crate) faults: Vec<(u64, Fault)>,
    /// When the faults stop.
    pub(crate) calm_ms: u64,
}

/// What somebody asks for, of the run of this plan.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Submit { plan: usize },
    Cancel { plan: usize, unit: u64 },
    Stop { plan: usize, now: bool },
    Pause { plan: usize },
    Resume { plan: usize },
}

impl Wish {
    pub(crate) fn plan(&self) -> usize {
        match self {
            Self::Submit { plan }
            | Self::Cancel { plan, .. }
            | Self::Stop { plan, .. }
            | Self::Pause { plan }
            | Self::Resume { plan } => *plan,
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The coordinator dies after so many more events.
    CoordinatorDies {
        after: u64,
    },
    WorkerDies {
        on: usize,
    },
    /// The worker is asked to end.
    WorkerLeaves {
        on: usize,
    },
    /// Nothing passes one way, or both.
    Wall {
        on: usize,
        up: bool,
        down: bool,
        for_ms: u64,
    },
    /// Its connections break.
    Cut {
        on: usize,
    },
    /// A machine's processes are stopped; `None` is the coordinator's.
    Freeze {
        on: Option<usize>,
        for_ms: u64,
    },
    /// A machine sleeps, its monotonic clock too.
    Sleep {
        on: Option<usize>,
        for_ms: u64,
    },
    /// A machine's wall clock is set.
    Set {
        on: Option<usize>,
        by_ms: i64,
    },
    /// The next sync of the journal fails.
    SyncFails,
    /// The next write of an outbox fails.
    OutboxFails {
        on: usize,
    },
    /// The journal's disk is full for a while.
    DiskFull {
        for_ms: u64,
    },
    /// The journal's disk is slow for a while: offers lapse before they are taken.
    DiskSlow {
        for_ms: u64,
    },
    /// Somebody closes a worker for new work, until the calm.
    Cordon {
        on: usize,
        drain: bool,
    },
    /// Somebody else moves a run's branch.
    Stranger {
        plan: usize,
    },
}

impl Scenario {
    pub(crate) fn of(chance: &mut Chance) -> Self {
        let plans: Vec<String> = (0..chance.within(1, 3)).map(|_| plan(chance)).collect();
        let mut workers: Vec<_> = (0..chance.within(1, 4)).map(|_| worker(chance)).collect();
        workers[0].0.insert("os".to_owned(), "linux".to_owned());
        let wishes = wishes(chance, plans.len());
        let calm_ms = chance.within(5_000, FAULTS_MS);
        let mut faults = Vec::new();
        // Some worlds are quiet, so that runs also come far; some are wild.
        for _ in 0..[0, 2, 6, 14, 30][chance.place(5)] {
            let at = chance.below(calm_ms);
            faults.push((at, fault(chance, workers.len(), plans.len())));
        }
        Self { plans, workers, wishes, faults, calm_ms }
    }
}

fn worker(chance: &mut Chance) -> (BTreeMap<String, String>, u32) {
    let mut labels = BTreeMap::new();
    if chance.once_in(2) {
        labels.insert("os".to_owned(), "linux".to_owned());
    }
    (labels, u32::try_from(chance.within(1, 3)).unwrap_or(1))
}

fn wishes(chance: &mut Chance, plans: usize) -> Vec<(u64, Wish)> {
    let mut wishes = Vec::new();
    for plan in 0..plans {
        let begins = if chance.once_in(2) { 0 } else { chance.below(20_000) };
        wishes.push((begins, Wish::Submit { plan }));
        let later = |chance: &mut Chance| begins + chance.below(60_000);
        if chance.once_in(4) {
            let pauses = later(chance);
            wishes.push((pauses, Wish::Pause { plan }));
            let resumes = pauses + chance.below(20_000);
            wishes.push((resumes, Wish::Resume { plan }));
        }
        if chance.once_in(4) {
            wishes.push((later(chance), Wish::Cancel { plan, unit: chance.next() }));
        }
        if chance.once_in(8) {
            wishes.push((later(chance), Wish::Stop { plan, now: chance.once_in(2) }));
        }
    }
    wishes
}

fn fault(chance: &mut Chance, workers: usize, plans: usize) -> Fault {
    let on = chance.place(workers);
    let host = if chance.once_in(2) { None } else { Some(on) };
    match chance.below(27) {
        0..=4 => Fault::CoordinatorDies { after: chance.within(1, 60) },
        5..=8 => Fault::WorkerDies { on },
        9 => Fault::WorkerLeaves { on },
        10..=12 => {
            let ways = chance.below(3);
            let for_ms = chance.within(100, 25_000);
            Fault::Wall { on, up: ways != 1, down: ways != 2, for_ms }
        }
        13..=15 => Fault::Cut { on },
        16 | 17 => Fault::Freeze { on: host, for_ms: chance.within(200, 20_000) },
        18 => Fault::Sleep { on: host, for_ms: chance.within(1_000, 40_000) },
        19 => {
            let by = i64::try_from(chance.below(120_000)).unwrap_or(0);
            Fault::Set { on: host, by_ms: by - 60_000 }
        }
        20 => Fault::SyncFails,
        21 => Fault::OutboxFails { on },
        23 => Fault::Cordon { on, drain: chance.once_in(2) },
        24 | 25 => Fault::DiskSlow { for_ms: chance.within(500, 15_000) },
        22 => Fault::DiskFull { for_ms: chance.within(50, 6_000) },
        _ => {
            if chance.once_in(4) {
                Fault::Stranger { plan: chance.place(plans) }
            } else {
                Fault::Cut { on }
            }
        }
    }
}

fn plan(chance: &mut Chance) -> String {
    let mut text = "version: 1\nname: p\nmode: autonomous\n".to_owned();
    if !chance.once_in(6) {
        text.push_str("repository: { url: . }\n");
    }
    if chance.once_in(4) {
        let _ = writeln!(text, "budgets: {{ attempts: {} }}", chance.within(1, 12));
    } else if chance.once_in(5) {
        let _ = writeln!(text, "budgets: {{ active: {}s }}", chance.within(10, 120));
    }
    text.push_str("units:\n");
    for nth in 0..chance.within(1, 7) {
        text.push_str(&unit(chance, nth));
    }
    text
}

fn unit(chance: &mut Chance, nth: u64) -> String {
    let after: Vec<String> =
        (0..nth).filter(|_| chance.once_in(3)).map(|on| format!("u{on}")).collect();
    let files = ["", "'src/**'", "'src/**'", "'docs/**'", "'lib/a*'"][chance.place(5)];
    let mut line = format!(
        "  - {{ id: u{nth}, kind: command, run: make, timeout: {}s, after: [{}], files: [{files}]",
        chance.within(8, 30),
        after.join(", "),
    );
    if !files.is_empty() || chance.once_in(4) {
        line.push_str(", checks: [{ name: c0, run: make test, required: true, timeout: 10s }");
        if chance.once_in(4) {
            line.push_str(", { name: c1, run: make lint, required: false, timeout: 10s }");
        }
        line.push(']');
    }
    if chance.once_in(2) {
        let _ = write!(line, ", silence: {}s", chance.within(2, 9));
    }
    if chance.once_in(2) {
        let (attempts, delay) = (chance.within(2, 4), chance.below(5));
        let _ = write!(line, ", retry: {{ attempts: {attempts}, delay: {delay}s }}");
    }
    if chance.once_in(8) {
        line.push_str(", requires: { labels: { os: linux } }");
    }
    if chance.once_in(8) {
        line.push_str(", effects: external");
    }
    if chance.once_in(12) {
        line.push_str(", accept: judge");
    }
    if chance.once_in(4) {
        line.push_str(", on_disconnect: stop");
    }
    if chance.once_in(6) {
        let _ = write!(line, ", priority: {}", chance.below(10));
    }
    line.push_str(" }\n");
    line
}

/// The plan as people wrote it.
pub(crate) fn read(text: &str) -> PlanFile {
    plan::read(text, &Limits::default()).expect("the scenario writes plans that can be read").0
}

/// The command that submits a plan.
pub(crate) fn submit(text: &str, key: IdempotencyKey, run: &RunId, bug: Option<Bug>) -> Verb {
    let plan = read(text);
    let repository = plan.repository.as_ref().map(|_| Repository {
        id: RepositoryId::parse("repo").expect("a plain name"),
        shown: ".".to_owned(),
        base: commit_of("base"),
        base_name: "main".to_owned(),
    });
    let submitted = Submitted {
        run: run.clone(),
        project: plan.project(),
        name: plan.name.to_string(),
        labels: plan.labels.clone(),
        goal: String::new(),
        contract: plan.contract.clone(),
        contract_hash: Digest::of(b"contract"),
        plan: ArtifactRef::of(text.as_bytes()),
        attachments: BTreeMap::new(),
        repository,
        mode: plan.mode(),
        dispatch: plan.dispatch(),
        priority: plan.priority(),
        budgets: plan.budgets.clone(),
        delivery: plan.delivery_mode(),
        grace_ms: DurationMs(1_000),
        prepare_ms: DurationMs(10_000),
    };
    let mut units = plan.resolved_units().units;
    if bug == Some(Bug::NoDependencies) {
        for unit in &mut units {
            unit.after.clear();
        }
    }
    let call = Call { key, body: Digest::of(text.as_bytes()), expected: None };
    Verb::Submit { call, submitted: Box::new(submitted), tasks: plan.tasks, units }
}

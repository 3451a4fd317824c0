//! A bench for one run: short words for what the world says, and proof after every command that the
//! state folded from the events, or from a snapshot, is the state decided on.

use std::fmt::Write as _;

use ganger_shared::actor::Actor;
use ganger_shared::delivery::{
    Change, ChangeKind, Changes, CheckResult, CommandEvidence, Delivery, NotMeasured, Outcome,
    TreeDelivery, Usage,
};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::{Envelope, Repository, RunEvent, Submitted};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{
    AttemptId, CheckId, CommitId, Epoch, IdempotencyKey, InstanceId, LaneId, RepositoryId, RunId,
    TreeId, UnitId, WorkId, WorkerId,
};
use ganger_shared::limits::Limits;
use ganger_shared::link::{Answer, Ended, Fact, Failed, Lease, Report, Started, Stopped};
use ganger_shared::plan;
use ganger_shared::time::{DurationMs, Timestamp};

use super::rules::Rules;
use crate::run::{
    Call, Command, Decided, Effect, EffectId, Offer, Reply, Run, UnitState, Verb, WantKind,
};

pub(super) const MAIN: &str = "w1";

/// One run and everything that was recorded of it.
pub(super) struct Bench {
    pub(super) run: Run,
    pub(super) folded: Run,
    pub(super) log: Vec<Envelope<RunEvent>>,
    /// The events of the last command, by their names.
    pub(super) last: Vec<String>,
    pub(super) now: Timestamp,
    rules: Rules,
    keys: u32,
}

pub(super) fn commit(tag: &str) -> CommitId {
    CommitId::parse(&Digest::of(format!("commit {tag}").as_bytes()).to_string()[..40]).unwrap()
}

pub(super) fn tree(tag: &str) -> TreeId {
    TreeId::parse(&Digest::of(format!("tree {tag}").as_bytes()).to_string()[..40]).unwrap()
}

pub(super) fn artifact(tag: &str) -> ArtifactRef {
    ArtifactRef { sha256: Digest::of(tag.as_bytes()), bytes: 7 }
}

pub(super) fn worker(name: &str) -> WorkerId {
    WorkerId::parse(name).unwrap()
}

pub(super) fn instance(name: &str) -> InstanceId {
    InstanceId::parse(name).unwrap()
}

pub(super) fn unit(name: &str) -> UnitId {
    UnitId::parse(name).unwrap()
}

pub(super) fn ended<T>(end: T, active_ms: u64) -> Ended<T> {
    Ended { end, active_ms: DurationMs(active_ms), output: None, output_truncated: false }
}

pub(super) fn failed(class: FailureClass) -> Fact {
    let failure = Failure::new(class, "it broke");
    let end = Failed { failure, left: None, usage: Usage::default() };
    Fact::Failed(Box::new(ended(end, 1_000)))
}

pub(super) fn stopped(confirmed: bool) -> Fact {
    Fact::Stopped(ended(Stopped { confirmed, usage: Usage::default() }, 500))
}

pub(super) fn started() -> Fact {
    Fact::Started(Started { pid: 7, isolated: true, containment: "cgroup".to_owned() })
}

/// A delivery of `paths` changed paths; its tree and commit are named by `tag`.
pub(super) fn delivery(base: Option<&CommitId>, tag: &str, paths: u64) -> Delivery {
    let mut delivery = Delivery::new("done");
    let change = |n| Change { path: format!("src/{tag}-{n}"), kind: ChangeKind::Modified };
    delivery.tree = base.map(|base| TreeDelivery {
        base: base.clone(),
        tree: if paths > 0 { tree(tag) } else { tree(base.as_str()) },
        commit: commit(tag),
        bundle: (paths > 0).then(|| artifact(tag)),
        patch: None,
        changes: Changes::list((0..paths).map(change)),
    });
    delivery
}

pub(super) fn evidence(pass: bool) -> CommandEvidence {
    CommandEvidence {
        cmd: "make test".to_owned(),
        pass,
        exit_code: Some(i32::from(!pass)),
        log_tail: String::new(),
        log: None,
        duration_ms: DurationMs(9),
    }
}

pub(super) fn measured(outcome: Outcome, tree: &TreeId) -> Fact {
    let result = CheckResult {
        outcome,
        not_measured: (outcome == Outcome::NotMeasured).then_some(NotMeasured::Timeout),
        evidence: (outcome != Outcome::NotMeasured).then(|| evidence(outcome == Outcome::Pass)),
        tree: tree.clone(),
        message: None,
    };
    Fact::Measured(Box::new(ended(result, 300)))
}

pub(super) const REPO: &str = "version: 1\nname: p\nmode: autonomous\nrepository: { url: . }\n";
pub(super) const NO_REPO: &str = "version: 1\nname: p\nmode: autonomous\n";

impl Bench {
    /// A run over a repository whose plan has these lines after its head.
    pub(super) fn of(lines: &str) -> Self {
        Self::submitted(&format!("{REPO}{lines}"))
    }

    /// A run over a repository of units that are one line each: `id: more keys`.
    pub(super) fn units(lines: &[&str]) -> Self {
        Self::of(&unit_lines(lines))
    }

    pub(super) fn without_repository(lines: &[&str]) -> Self {
        Self::submitted(&format!("{NO_REPO}{}", unit_lines(lines)))
    }

    pub(super) fn submitted(text: &str) -> Self {
        let mut bench = Self {
            run: Run::default(),
            folded: Run::default(),
            log: Vec::new(),
            last: Vec::new(),
            now: Timestamp::from_unix_ms(1_700_000_000_000),
            rules: Rules::default(),
            keys: 0,
        };
        let call = bench.call();
        let verb = submit(text, call);
        assert!(matches!(bench.tell(verb), Reply::Done { replayed: false, .. }));
        bench
    }

    /// A key nobody used.
    pub(super) fn call(&mut self) -> Call {
        self.keys += 1;
        let key = IdempotencyKey::parse(&format!("k{}", self.keys)).unwrap();
        Call { body: Digest::of(key.as_str().as_bytes()), key, expected: None }
    }

    pub(super) fn wait(&mut self, ms: u64) -> &mut Self {
        self.now = self.now.plus(DurationMs(ms));
        self
    }

    pub(super) fn tell(&mut self, verb: Verb) -> Reply {
        self.tell_as(Actor::Principal("anna".to_owned()), verb)
    }

    pub(super) fn tell_as(&mut self, by: Actor, verb: Verb) -> Reply {
        self.tell_all(vec![(by, verb)]).pop().unwrap()
    }

    pub(super) fn tell_all(&mut self, batch: Vec<(Actor, Verb)>) -> Vec<Reply> {
        let command = |(by, verb)| Command { now: self.now, by, verb };
        let decided = self.run.decide_all(batch.into_iter().map(command).collect());
        self.record(&decided);
        decided.replies
    }

    /// Writes what was decided, folds it, and compares.
    pub(super) fn record(&mut self, decided: &Decided) {
        self.last.clear();
        for envelope in &decided.events {
            let line = serde_json::to_string(envelope).unwrap();
            let read: Envelope<RunEvent> = serde_json::from_str(&line).unwrap();
            assert_eq!(read, *envelope, "an event reads back as written");
            self.last.push(name_of(&envelope.event));
            let before = self.folded.clone();
            self.folded.apply(before.sequence() + 1, &read).unwrap();
            self.rules.hold(&before, &self.folded, &read);
            self.log.push(read);
        }
        self.folded.settle();
        assert_eq!(self.folded, self.run, "the fold is the live state");
    }

    /// What a coordinator has after a restart from a snapshot.
    pub(super) fn restart(&mut self) {
        let snapshot = serde_json::to_vec(&self.run).unwrap();
        self.run = serde_json::from_slice(&snapshot).unwrap();
        assert_eq!(self.folded, self.run, "a snapshot holds the whole state");
    }

    /// Takes a slot for the unit on the first worker.
    pub(super) fn lease(&mut self, name: &str) -> Lease {
        self.lease_on(name, MAIN)
    }

    pub(super) fn lease_on(&mut self, name: &str, on: &str) -> Lease {
        match self.tell(Verb::TakeSlot(offer(name, on))) {
            Reply::Leased(lease) => lease,
            other => panic!("{name} was not leased: {other:?}"),
        }
    }

    pub(super) fn declined(&mut self, name: &str) -> bool {
        self.tell(Verb::TakeSlot(offer(name, MAIN))) == Reply::Declined
    }

    pub(super) fn report(&mut self, lease: &Lease, fact: Fact) -> Answer {
        self.report_by(MAIN, lease, fact)
    }

    pub(super) fn report_by(&mut self, on: &str, lease: &Lease, fact: Fact) -> Answer {
        let report = Report { lease: lease.clone(), number: 1, fact };
        match self.tell_as(Actor::Worker(on.to_owned()), Verb::Report(Box::new(report))) {
            Reply::Answered(answer) => answer,
            other => panic!("a report was answered {other:?}"),
        }
    }

    /// A delivery of an attempt, based on what its lease says; `paths` is how much it changed.
    pub(super) fn hands_in(&self, lease: &Lease, paths: u64) -> Fact {
        let WorkId::Attempt(id) = &lease.work else { panic!("{lease:?} is a check") };
        let base = self.attempt(id).lease.base.clone();
        let tag = format!("{id}@{}", lease.epoch);
        Fact::Delivered(Box::new(ended(delivery(base.as_ref(), &tag, paths), 2_000)))
    }

    pub(super) fn deliver(&mut self, lease: &Lease, paths: u64) -> Answer {
        let fact = self.hands_in(lease, paths);
        self.report(lease, fact)
    }

    pub(super) fn attempt(&self, id: &AttemptId) -> &crate::run::Attempt {
        let unit = self.run.units().iter().find(|unit| unit.spec.id == id.unit).unwrap();
        unit.attempts.iter().find(|attempt| attempt.lease.attempt == *id).unwrap()
    }

    /// Leases the unit and brings its delivery of one changed path into the mirror.
    pub(super) fn delivered(&mut self, name: &str) -> Lease {
        let lease = self.lease(name);
        self.deliver(&lease, 1);
        self.taken(&lease);
        lease
    }

    pub(super) fn taken(&mut self, lease: &Lease) -> Reply {
        self.tell(Verb::Taken { attempt: attempt_of(lease) })
    }

    /// The check wanted of this name, wherever it is wanted.
    pub(super) fn wanted(&self, check: &str) -> Vec<CheckId> {
        let wants = self.run.owed().keys().filter_map(|id| match id {
            EffectId::WantCheck(id) if id.check.as_str() == check => Some(id.clone()),
            _ => None,
        });
        wants.collect()
    }

    pub(super) fn lease_check(&mut self, id: &CheckId, on: &str) -> Lease {
        let (worker, instance) = (worker(on), instance(&format!("{on}-i1")));
        let want = WantKind::Check { check: id.clone(), author: worker.clone(), place: None };
        match self.tell(Verb::TakeSlot(Offer { token: 2, want, worker, instance, place: None })) {
            Reply::Leased(lease) => lease,
            other => panic!("{id} was not leased: {other:?}"),
        }
    }

    /// Measures the one check of this name that is wanted.
    pub(super) fn measure(&mut self, check: &str, outcome: Outcome) -> Lease {
        let wanted = self.wanted(check);
        assert_eq!(wanted.len(), 1, "{wanted:?}");
        let lease = self.lease_check(&wanted[0], "w2");
        let tree = self.tree_of(&wanted[0]);
        self.report_by("w2", &lease, measured(outcome, &tree));
        lease
    }

    pub(super) fn tree_of(&self, id: &CheckId) -> TreeId {
        self.run.measured[&(id.unit.clone(), id.subject.clone())].tree.clone()
    }

    /// Makes the commit that is owed, as the mirror would.
    pub(super) fn commit_owed(&mut self) -> CommitId {
        let owed = self.run.owed().values().find_map(|effect| match effect {
            Effect::Apply { attempt, parent, tree, .. } => Some((attempt, parent, tree)),
            _ => None,
        });
        let (attempt, parent, tree) = owed.expect("a commit is owed");
        let made = commit(&format!("{parent} {tree}"));
        let (attempt, tree) = (attempt.clone(), tree.clone());
        self.tell(Verb::ApplyDone { attempt, commit: made.clone(), tree });
        made
    }

    pub(super) fn owes(&self, id: &EffectId) -> bool {
        self.run.owed().contains_key(id)
    }

    pub(super) fn lost(&mut self, lease: &Lease, reason: ganger_shared::event::LossReason) {
        let (work, epoch) = (lease.work.clone(), lease.epoch);
        self.tell(Verb::LeaseEnded { work, epoch, reason });
    }

    pub(super) fn cancel(&mut self, name: &str) -> Reply {
        let call = self.call();
        self.tell(Verb::Cancel { call, unit: name.to_owned(), reason: "not needed".to_owned() })
    }

    pub(super) fn stop(&mut self, now: bool) -> Reply {
        let call = self.call();
        self.tell(Verb::Stop { call, reason: "enough".to_owned(), now })
    }

    pub(super) fn pause(&mut self) -> Reply {
        let call = self.call();
        self.tell(Verb::Pause { call, reason: "lunch".to_owned() })
    }

    pub(super) fn resume(&mut self) -> Reply {
        let call = self.call();
        self.tell(Verb::Resume { call })
    }

    /// Where the run stands, with its reason.
    pub(super) fn stands(&self) -> String {
        let row = self.run.row().unwrap();
        row.reason.map_or(row.state.clone(), |reason| format!("{} {reason}", row.state))
    }

    /// Where every unit stands, as `a accepted, b ready`.
    pub(super) fn stand(&self) -> String {
        let mut text = String::new();
        for unit in self.run.units() {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{} {}", unit.spec.id, unit.state.word()).unwrap();
        }
        text
    }

    pub(super) fn state(&self, name: &str) -> &UnitState {
        &self.run.units().iter().find(|one| one.spec.id.as_str() == name).unwrap().state
    }
}

/// An offer of a slot for a unit.
/// An offer of a slot for a unit.
pub(super) fn offer(name: &str, on: &str) -> Offer {
    let want = WantKind::Attempt { unit: unit(name), lane: LaneId::main() };
    let (worker, instance) = (worker(on), instance(&format!("{on}-i1")));
    Offer { token: 1, want, worker, instance, place: None }
}

pub(super) fn attempt_of(lease: &Lease) -> AttemptId {
    match &lease.work {
        WorkId::Attempt(id) => id.clone(),
        WorkId::Check(id) => panic!("{id} is a check"),
    }
}

pub(super) fn epoch(n: u64) -> Epoch {
    Epoch(n)
}

fn name_of(event: &RunEvent) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

fn unit_lines(lines: &[&str]) -> String {
    let mut text = "units:\n".to_owned();
    for line in lines {
        let (id, keys) = line.split_once(':').unwrap_or((line, ""));
        let comma = if keys.trim().is_empty() { "" } else { "," };
        writeln!(text, "  - {{ id: {id}, kind: command, run: make{comma} {keys} }}").unwrap();
    }
    text
}

/// The command that submits this plan.
pub(super) fn submit(text: &str, call: Call) -> Verb {
    let (plan, _) = plan::read(text, &Limits::default()).unwrap();
    let repository = plan.repository.as_ref().map(|_| Repository {
        id: RepositoryId::parse("repo").unwrap(),
        shown: ".".to_owned(),
        base: commit("base"),
        base_name: "main".to_owned(),
    });
    let submitted = Submitted {
        run: RunId::from_uuid_bytes(&[1; 16]),
        project: plan.project(),
        name: plan.name.to_string(),
        labels: plan.labels.clone(),
        goal: String::new(),
        contract: plan.contract.clone(),
        contract_hash: Digest::of(b"contract"),
        plan: artifact("plan"),
        attachments: std::collections::BTreeMap::new(),
        repository,
        mode: plan.mode(),
        dispatch: plan.dispatch(),
        priority: plan.priority(),
        budgets: plan.budgets.clone(),
        delivery: plan.delivery_mode(),
        grace_ms: DurationMs(1_000),
        prepare_ms: DurationMs(10_000),
    };
    let units = plan.resolved_units().units;
    Verb::Submit { call, submitted: Box::new(submitted), tasks: plan.tasks, units }
}

//! The world around a run: workers that die, repeat themselves and come back, and a mirror that a
//! stranger may move. It answers what is owed, in whatever order it is told to.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::actor::Actor;
use ganger_shared::delivery::Outcome;
use ganger_shared::event::LossReason;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{AttemptId, CommitId, Epoch, TreeId, UnitId, WorkId};
use ganger_shared::link::{Answer, Fact, Lease, Report};
use ganger_shared::plan::Effects;

use super::bench::*;
use crate::run::{Effect, EffectId, Offer, Phase, Reply, Verb, WantKind};

const CLASSES: [FailureClass; 6] = [
    FailureClass::CommandFailed,
    FailureClass::RateLimited,
    FailureClass::AuthFailed,
    FailureClass::Timeout,
    FailureClass::WorkspaceFailed,
    FailureClass::TaskFailed,
];

/// How far a worker is with what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Told,
    Accepted,
    Started,
}

/// One worker: what it holds, what it ever held, and what it has not got rid of.
#[derive(Default)]
struct Machine {
    starts: u32,
    held: BTreeMap<(WorkId, Epoch), Stage>,
    seen: BTreeSet<(WorkId, Epoch)>,
    outbox: Vec<Report>,
}

pub(super) struct World {
    pub(super) bench: Bench,
    machines: Vec<Machine>,
    branch: CommitId,
    pub(super) foreign: bool,
    /// Most things go well, and nobody interferes: such runs come far.
    pub(super) gentle: bool,
    /// Units whose program really ran, by the attempt that ran it.
    ran: BTreeMap<UnitId, AttemptId>,
    said: Vec<Verb>,
}

impl World {
    pub(super) fn new(bench: Bench, machines: usize, gentle: bool) -> Self {
        let machines = (0..machines).map(|_| Machine { starts: 1, ..Machine::default() }).collect();
        let branch = commit("base");
        let (ran, said) = (BTreeMap::new(), Vec::new());
        Self { bench, machines, branch, foreign: false, gentle, ran, said }
    }

    fn name(worker: usize) -> String {
        format!("w{worker}")
    }

    pub(super) fn worker(&self, pick: usize) -> usize {
        pick % self.machines.len()
    }

    fn by_name(&self, name: &str) -> usize {
        (0..self.machines.len()).find(|worker| Self::name(*worker) == name).unwrap()
    }

    fn tell(&mut self, verb: Verb) -> Reply {
        self.said.push(verb.clone());
        self.bench.tell(verb)
    }

    /// Owed effects of some kind, in order.
    fn owed(&self, kind: fn(&Effect) -> bool) -> Vec<Effect> {
        self.bench.run.owed().values().filter(|effect| kind(effect)).cloned().collect()
    }

    fn one(&self, pick: usize, kind: fn(&Effect) -> bool) -> Option<Effect> {
        let owed = self.owed(kind);
        (!owed.is_empty()).then(|| owed[pick % owed.len()].clone())
    }

    pub(super) fn grant(&mut self, pick: usize, on: usize) {
        if let Some(effect) = self.one(pick, |e| matches!(e, Effect::WantSlot(_))) {
            self.grant_one(&effect, on);
        }
    }

    fn grant_one(&mut self, effect: &Effect, on: usize) {
        let Effect::WantSlot(want) = effect else { return };
        let (worker, instance) =
            (worker(&Self::name(on)), instance(&format!("w{on}-i{}", self.machines[on].starts)));
        let offer = Offer { token: 1, want: want.kind.clone(), worker, instance, place: None };
        let reply = self.tell(Verb::TakeSlot(offer));
        if let (Reply::Leased(_), WantKind::Attempt { unit, .. }) = (&reply, &want.kind) {
            let spec = self.bench.run.units().iter().find(|one| one.spec.id == *unit).unwrap();
            let once = spec.spec.effects() == Effects::External;
            assert!(!once || !self.ran.contains_key(unit), "{unit} ran before and acts outside");
        }
        let early = want.not_before > self.bench.now.max(self.bench.run.at);
        assert_eq!(matches!(reply, Reply::Leased(_)), !early, "{effect:?}: {reply:?}");
    }

    pub(super) fn assign(&mut self, pick: usize) {
        if let Some(effect) = self.one(pick, |e| matches!(e, Effect::Assign { .. })) {
            self.assign_one(&effect);
        }
    }

    fn assign_one(&mut self, effect: &Effect) {
        let Effect::Assign { worker, work, epoch } = effect else { return };
        assert!(self.bench.run.assignment(work).is_some(), "{work} has no assignment");
        let machine = self.by_name(worker.as_str());
        let machine = &mut self.machines[machine];
        if machine.seen.insert((work.clone(), *epoch)) {
            machine.held.insert((work.clone(), *epoch), Stage::Told);
        }
    }

    pub(super) fn halt(&mut self, pick: usize) {
        if let Some(effect) = self.one(pick, |e| matches!(e, Effect::Stop { .. })) {
            self.halt_one(&effect);
        }
    }

    fn halt_one(&mut self, effect: &Effect) {
        let Effect::Stop { worker, work, epoch, .. } = effect else { return };
        let machine = self.by_name(worker.as_str());
        self.end(machine, &(work.clone(), *epoch), stopped(true));
    }

    /// Something ends on a worker; what it never held it has nothing of.
    fn end(&mut self, on: usize, held: &(WorkId, Epoch), fact: Fact) {
        let run = self.bench.run.id();
        let machine = &mut self.machines[on];
        machine.held.remove(held);
        machine.seen.insert(held.clone());
        let lease = Lease { run, work: held.0.clone(), epoch: held.1 };
        let is_end = |report: &Report| {
            report.lease == lease && !matches!(report.fact, Fact::Accepted | Fact::Started(_))
        };
        if !machine.outbox.iter().any(is_end) {
            machine.outbox.push(Report { lease, number: 3, fact });
        }
    }

    /// The next step of something a worker holds.
    pub(super) fn work(&mut self, on: usize, pick: usize, roll: u8) {
        let roll = self.luck(roll);
        let held: Vec<_> = self.machines[on].held.iter().map(|(k, s)| (k.clone(), *s)).collect();
        if held.is_empty() {
            return;
        }
        let (key, stage) = held[pick % held.len()].clone();
        let lease = Lease { run: self.bench.run.id(), work: key.0.clone(), epoch: key.1 };
        let (next, fact) = match stage {
            Stage::Told => (Stage::Accepted, Fact::Accepted),
            Stage::Accepted if roll % 16 == 1 => {
                return self.end(on, &key, failed(FailureClass::WorkspaceFailed));
            }
            Stage::Accepted => (Stage::Started, started()),
            Stage::Started => {
                let fact = self.outcome(&lease, roll);
                return self.end(on, &key, fact);
            }
        };
        if let (Stage::Started, WorkId::Attempt(id)) = (next, &key.0) {
            self.ran.insert(id.unit.clone(), id.clone());
        }
        let machine = &mut self.machines[on];
        machine.held.insert(key, next);
        machine.outbox.push(Report { lease, number: 1, fact });
    }

    fn outcome(&self, lease: &Lease, roll: u8) -> Fact {
        match &lease.work {
            WorkId::Attempt(id) => match roll % 8 {
                0 => failed(CLASSES[usize::from(roll / 8) % CLASSES.len()]),
                1 => stopped(true),
                _ => {
                    let spec = &self.bench.run.units()[self.bench.run.index[&id.unit]].spec;
                    let writes = spec.files.as_ref().is_none_or(|files| !files.is_empty());
                    self.bench.hands_in(lease, u64::from(writes) * u64::from(roll % 8 - 2).min(2))
                }
            },
            WorkId::Check(id) => {
                let right = self.bench.tree_of(id);
                match roll % 16 {
                    0 => measured(Outcome::Fail, &right),
                    1 => measured(Outcome::NotMeasured, &right),
                    2 => measured(Outcome::Pass, &tree("wrong")),
                    3 => failed(FailureClass::WorkspaceFailed),
                    _ => measured(Outcome::Pass, &right),
                }
            }
        }
    }

    /// A report arrives; `keep` where its answer is lost.
    pub(super) fn send(&mut self, on: usize, pick: usize, keep: bool) {
        let waiting = self.machines[on].outbox.len();
        if waiting == 0 {
            return;
        }
        let report = self.machines[on].outbox[pick % waiting].clone();
        let answer = self.bench.report_by(&Self::name(on), &report.lease, report.fact.clone());
        if answer.settles() {
            self.kept(&report, answer);
            if !keep {
                self.machines[on].outbox.remove(pick % waiting);
            }
        }
    }

    /// Everything that waits anywhere arrives as one batch.
    pub(super) fn flood(&mut self) {
        let from = |on: usize, machine: &Machine| {
            let by = Actor::Worker(Self::name(on));
            let verbs = machine.outbox.iter().cloned().map(|report| Verb::Report(Box::new(report)));
            verbs.map(move |verb| (by.clone(), verb)).collect::<Vec<_>>()
        };
        let machines = self.machines.iter().enumerate();
        let batch: Vec<_> = machines.flat_map(|(on, machine)| from(on, machine)).collect();
        let replies = self.bench.tell_all(batch);
        let sent: Vec<Report> =
            self.machines.iter_mut().flat_map(|machine| machine.outbox.drain(..)).collect();
        for (report, reply) in sent.iter().zip(replies) {
            let Reply::Answered(answer) = reply else { panic!("{reply:?}") };
            assert!(answer.settles());
            self.kept(report, answer);
        }
    }

    /// Invariant 6: what a worker may forget, the run holds.
    fn kept(&self, report: &Report, answer: Answer) {
        let (WorkId::Attempt(id), Fact::Delivered(ended)) = (&report.lease.work, &report.fact)
        else {
            return;
        };
        let held = match &self.bench.attempt(id).phase {
            Phase::Delivered { ended, .. } => Some(&ended.end),
            Phase::Failed { ended } => ended.end.left.as_ref(),
            Phase::Cancelled { late, .. } | Phase::Lost { late, .. } => late.as_deref(),
            _ => None,
        };
        assert_eq!(held, Some(&ended.end), "{id} was answered {answer:?} and is lost");
    }

    /// A live lease ends; a worker that is there is only said not to hold what it never took.
    pub(super) fn lose(&mut self, pick: usize, reason: LossReason) {
        let live: Vec<_> =
            self.bench.run.live().iter().map(|(w, l)| (w.clone(), l.clone())).collect();
        if live.is_empty() {
            return;
        }
        let (work, lease) = live[pick % live.len()].clone();
        let on = self.by_name(lease.worker.as_str());
        let reason = match reason {
            LossReason::NotHeld | LossReason::InstanceReplaced
                if self.machines[on].seen.contains(&(work.clone(), lease.epoch)) =>
            {
                LossReason::LeaseExpired
            }
            other => other,
        };
        self.lease_ended(&work, lease.epoch, reason);
    }

    fn lease_ended(&mut self, work: &WorkId, epoch: Epoch, reason: LossReason) {
        self.tell(Verb::LeaseEnded { work: work.clone(), epoch, reason });
        let live = self.bench.run.live().get(work);
        assert!(live.is_none_or(|live| live.epoch != epoch), "P007: {work} is lost and still live");
    }

    /// Time passes; what is overdue is dealt with, so that no alarm rings twice for it.
    pub(super) fn pass(&mut self, ms: u64) {
        self.bench.wait(ms);
        self.bench.tell(Verb::Tick);
        let due = self.bench.run.next_deadline();
        assert!(due.is_none_or(|due| due > self.bench.now), "{due:?} is over and stays due");
    }

    /// The worker's process is killed and started anew: what was on its disk ended with it.
    pub(super) fn crash(&mut self, on: usize) {
        let held = std::mem::take(&mut self.machines[on].held);
        self.machines[on].starts += 1;
        for (key, stage) in held {
            match stage {
                Stage::Told => drop(self.machines[on].seen.remove(&key)),
                Stage::Accepted | Stage::Started => {
                    self.end(on, &key, failed(FailureClass::WorkerRestarted));
                }
            }
        }
    }

    pub(super) fn reconcile(&mut self, on: usize) {
        let run = self.bench.run.id();
        let machine = &self.machines[on];
        let held = machine.held.keys().cloned();
        let live = held.map(|(work, epoch)| Lease { run: run.clone(), work, epoch });
        let verb = Verb::Reconcile {
            worker: worker(&Self::name(on)),
            instance: instance(&format!("w{on}-i{}", machine.starts)),
            live: live.collect(),
            finished: machine.outbox.iter().map(|report| report.lease.clone()).collect(),
        };
        let reply = self.bench.tell(verb);
        self.told(on, reply);
    }

    pub(super) fn beat(&mut self, on: usize) {
        let held: Vec<_> = self.machines[on].held.keys().cloned().collect();
        for (work, epoch) in held {
            let lease = Lease { run: self.bench.run.id(), work, epoch };
            let reply = self.bench.tell(Verb::Unheld { worker: worker(&Self::name(on)), lease });
            self.told(on, reply);
        }
    }

    fn told(&mut self, on: usize, reply: Reply) {
        let Reply::Reconciled { revoke, .. } = reply else { panic!("{reply:?}") };
        for lease in revoke {
            self.end(on, &(lease.work, lease.epoch), stopped(true));
        }
    }

    pub(super) fn trees(&mut self, pick: usize, roll: u8, lost: bool) {
        let order = |e: &Effect| {
            matches!(e, Effect::Take { .. } | Effect::Merge { .. } | Effect::Apply { .. })
        };
        if let Some(effect) = self.one(pick, order) {
            let verb = self.order(&effect, self.luck(roll));
            if !lost {
                self.tell(verb);
            }
        }
    }

    /// A roll of the dice; seven is a hit.
    fn luck(&self, roll: u8) -> u8 {
        if self.gentle && roll < 240 { 7 } else { roll }
    }

    fn order(&mut self, effect: &Effect, roll: u8) -> Verb {
        match effect {
            Effect::Take { attempt, .. } if roll.is_multiple_of(8) => {
                let failure = Failure::new(FailureClass::ScopeViolation, "outside");
                Verb::TakeFailed { attempt: attempt.clone(), failure }
            }
            Effect::Take { attempt, .. } => Verb::Taken { attempt: attempt.clone() },
            Effect::Merge { attempt, commit: theirs, onto, .. } => {
                let result = match roll % 8 {
                    0 => Err(vec!["src/x".to_owned()]),
                    1 => Ok((self.tree_delivered(attempt), theirs.clone())),
                    _ => {
                        Ok((tree(&format!("{theirs} {onto}")), commit(&format!("{theirs} {onto}"))))
                    }
                };
                Verb::Merged { attempt: attempt.clone(), parent: onto.clone(), result }
            }
            Effect::Apply { attempt, parent, tree, time_unix, .. } => {
                let attempt = attempt.clone();
                let made = commit(&format!("{parent} {tree} {time_unix}"));
                if self.branch == *parent {
                    self.branch = made.clone();
                }
                if self.branch == made {
                    return Verb::ApplyDone { attempt, commit: made, tree: tree.clone() };
                }
                Verb::ApplyRefused { attempt, found: Some(self.branch.clone()) }
            }
            _ => panic!("{effect:?} is no order"),
        }
    }

    fn tree_delivered(&self, id: &AttemptId) -> TreeId {
        self.bench.attempt(id).delivery().unwrap().tree.as_ref().unwrap().tree.clone()
    }

    pub(super) fn stranger(&mut self, n: u8) {
        self.foreign = true;
        self.branch = commit(&format!("foreign {n}"));
    }

    /// Something that was said before is said again.
    pub(super) fn again(&mut self, pick: usize) {
        if !self.said.is_empty() {
            let verb = self.said[pick % self.said.len()].clone();
            if !matches!(verb, Verb::TakeSlot(_)) {
                self.bench.tell(verb);
            }
        }
    }

    pub(super) fn branch(&self) -> &CommitId {
        &self.branch
    }

    /// One round of a world without faults: everything owed is done, everything said is heard.
    pub(super) fn round(&mut self, roll: &mut impl FnMut() -> u8) {
        for effect in self.owed(|_| true) {
            match &effect {
                Effect::WantSlot(want) if want.not_before <= self.bench.now => {
                    if self.bench.run.owed().values().any(|owed| *owed == effect) {
                        let on = self.worker(usize::from(roll()));
                        self.grant_one(&effect, on);
                    }
                }
                Effect::WantSlot(_) | Effect::Claim { .. } => {}
                Effect::Assign { .. } => self.assign_one(&effect),
                Effect::Stop { .. } => self.halt_one(&effect),
                Effect::Take { .. } | Effect::Merge { .. } | Effect::Apply { .. } => {
                    let luck = self.luck(roll());
                    let verb = self.order(&effect, luck);
                    self.tell(verb);
                }
            }
        }
        for on in 0..self.machines.len() {
            for pick in 0..self.machines[on].held.len() {
                self.work(on, pick, roll());
            }
            while !self.machines[on].outbox.is_empty() {
                self.send(on, 0, false);
            }
            self.beat(on);
        }
        self.expire();
        self.pass(20_000);
    }

    /// Beats without a lease end it, once its worker has been told of it.
    fn expire(&mut self) {
        for (work, lease) in self.bench.run.live().clone() {
            let key = (work.clone(), lease.epoch);
            let machine = &self.machines[self.by_name(lease.worker.as_str())];
            if machine.seen.contains(&key) && !machine.held.contains_key(&key) {
                self.lease_ended(&work, lease.epoch, LossReason::NotHeld);
            }
        }
    }

    /// Whether there is nothing left that anybody but a person could do.
    pub(super) fn quiet(&self) -> bool {
        let orders = self.owed(|e| !matches!(e, Effect::WantSlot(_) | Effect::Claim { .. }));
        let wants = self
            .bench
            .run
            .owed()
            .keys()
            .any(|id| matches!(id, EffectId::WantSlot(..) | EffectId::WantCheck(_)));
        let still = |machine: &Machine| machine.outbox.is_empty() && machine.held.is_empty();
        orders.is_empty()
            && !wants
            && self.bench.run.live().is_empty()
            && self.machines.iter().all(still)
    }
}

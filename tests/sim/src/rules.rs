//! What must hold in every world, whatever goes wrong: checked as it happens, from the outside.
//!
//! The checkers know the plans as people wrote them, what was durable when, what was said to whom and
//! which programs ran; they fold the journal for themselves. Not here: whether a world comes to rest
//! (`world.rs`).

mod answers;
mod facts;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use ganger_coordinator_core::run::Run;
use ganger_shared::delivery::Delivery;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, Epoch, IdempotencyKey, RunId, UnitId, WorkId};
use ganger_shared::link::{Answer, Fact, Lease};
use ganger_shared::plan::PlanFile;
use ganger_worker_core::outbox::{Record, lease_of};

use crate::scenario::read;
use times::Times;

/// Everything that was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    broke: Option<String>,
    /// Each plan, by the digest of its text.
    plans: BTreeMap<Digest, PlanFile>,
    /// The fold of everything durable.
    folded: BTreeMap<RunId, Run>,
    /// Which run a call was carried out on.
    calls: BTreeMap<IdempotencyKey, RunId>,
    /// Leases under which a program was started.
    starts: BTreeSet<Lease>,
    /// Leases that are or were on a worker's disk.
    held: BTreeSet<Lease>,
    /// Every report ever durable on a worker.
    reports: BTreeMap<(Lease, u32), Fact>,
    /// Reports whose run was over when they were answered.
    closed: BTreeSet<Lease>,
    epochs: BTreeMap<(RunId, WorkId), Epoch>,
    accepted: BTreeMap<(RunId, UnitId), (AttemptId, Delivery)>,
    /// Attempts whose commit is on the branch.
    applied: BTreeSet<(RunId, AttemptId)>,
    passed: BTreeSet<(RunId, CheckId)>,
    times: Times,
}

impl Rules {
    pub(crate) fn of(plans: &[String]) -> Self {
        let plans = plans.iter().map(|text| (ArtifactRef::of(text.as_bytes()).sha256, read(text)));
        Self { plans: plans.collect(), ..Self::default() }
    }

    /// Something does not hold. The first is told; what follows may follow from it.
    pub(crate) fn broken(&mut self, what: String) {
        self.broke.get_or_insert(what);
    }

    pub(crate) fn what_broke(&self) -> Option<&String> {
        self.broke.as_ref()
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = (&RunId, &Run)> {
        self.folded.iter()
    }

    pub(crate) fn run(&self, id: &RunId) -> Option<&Run> {
        self.folded.get(id)
    }

    /// The plan of a run as people wrote it.
    fn plan(&self, run: &Run) -> Option<&PlanFile> {
        self.plans.get(&run.submitted()?.plan.sha256)
    }

    /// A batch is durable.
    pub(crate) fn recorded(
        &mut self,
        id: &RunId,
        (before, now): (u64, u64),
        events: &[Envelope<RunEvent>],
    ) {
        let mut run = self.folded.remove(id).unwrap_or_default();
        if run.sequence() != before {
            self.broken(format!("{id} is at {} and a batch goes behind {before}", run.sequence()));
        }
        for envelope in events {
            let was = run.clone();
            if let Err(error) = run.apply(run.sequence() + 1, envelope) {
                self.broken(format!("{id}: {:?} does not fold: {error}", envelope.event));
            }
            run.settle();
            self.fact(&was, &run, envelope);
        }
        self.times.leased(id, &run, now);
        self.folded.insert(id.clone(), run);
    }

    /// The coordinator folded a run after a start: nothing durable is missing, nothing else is there.
    pub(crate) fn restarted(&mut self, id: &RunId, run: &Run) {
        if self.folded.get(id) != Some(run) {
            self.broken(format!("{id} came back otherwise than it was recorded"));
        }
    }

    /// A worker's record is durable.
    pub(crate) fn written(&mut self, record: &Record) {
        match record {
            Record::Accepted { assignment } => {
                let lease = lease_of(assignment);
                if !self.leased(&lease) {
                    self.broken(format!(
                        "{} @{} is held and was never leased",
                        lease.work, lease.epoch
                    ));
                }
                self.held.insert(lease);
            }
            Record::Reported { report } => {
                let key = (report.lease.clone(), report.number);
                let first = self.reports.entry(key).or_insert_with(|| report.fact.clone());
                if *first != report.fact {
                    let (lease, number) = (&report.lease, report.number);
                    let what = format!("report {number} on {} @{}", lease.work, lease.epoch);
                    self.broken(format!("{what} was made and forgotten, and is another now"));
                }
            }
            Record::Settled { .. }
            | Record::Fenced { .. }
            | Record::Seen { .. }
            | Record::Anew
            | Record::Numbered { .. } => {}
        }
    }

    /// A program is started under a lease: once, when the lease is held, and not before its time.
    pub(crate) fn started(&mut self, lease: &Lease) {
        let what = format!("{} @{} of {}", lease.work, lease.epoch, lease.run);
        if !self.starts.insert(lease.clone()) {
            self.broken(format!("{what} was started twice"));
        }
        if !self.held.contains(lease) {
            self.broken(format!("{what} was started and is on no worker's disk"));
        }
        if !self.leased(lease) {
            self.broken(format!("{what} was started before it was claimed"));
        }
        if let WorkId::Attempt(id) = &lease.work {
            self.may_start(&lease.run, &id.unit);
        }
    }

    /// Whether this lease was ever granted, as far as is durable.
    fn leased(&self, lease: &Lease) -> bool {
        let newest = self.epochs.get(&(lease.run.clone(), lease.work.clone()));
        newest.is_some_and(|newest| *newest >= lease.epoch)
    }

    /// What people wrote it comes after is accepted, and on the branch where there is one.
    fn may_start(&mut self, id: &RunId, unit: &UnitId) {
        let Some(run) = self.folded.get(id) else { return };
        let Some(plan) = self.plan(run) else { return };
        let planned = plan.units.iter().find(|planned| planned.id == *unit);
        let after = planned.map(|planned| planned.after.clone()).unwrap_or_default();
        let missing = after.into_iter().find(|on| !self.integrated(id, on));
        if let Some(on) = missing {
            self.broken(format!("{unit} of {id} begins before {on} is integrated"));
        }
    }

    fn integrated(&self, id: &RunId, unit: &UnitId) -> bool {
        let Some((attempt, delivery)) = self.accepted.get(&(id.clone(), unit.clone())) else {
            return false;
        };
        let wrote = delivery.tree.as_ref().is_some_and(|tree| tree.changes.total > 0);
        !wrote || self.applied.contains(&(id.clone(), attempt.clone()))
    }

    /// Everything is over and said: what workers had to hand in is kept.
    pub(crate) fn at_the_end(&mut self) {
        let lost = self.reports.iter().find_map(|((lease, _), fact)| {
            let run = self.folded.get(&lease.run)?;
            let kept = self.closed.contains(lease) || answers::kept(run, lease, fact);
            (!kept).then(|| format!("{} @{} handed in and it is nowhere", lease.work, lease.epoch))
        });
        if let Some(lost) = lost {
            self.broken(lost);
        }
    }

    /// An answer to a report leaves: what it says is recorded must be so already.
    pub(crate) fn answered(&mut self, (lease, number): (&Lease, u32), answer: Answer) {
        let Some(fact) = self.reports.get(&(lease.clone(), number)) else {
            let what = format!("{} @{}", lease.work, lease.epoch);
            return self.broken(format!("report {number} on {what} was answered and never made"));
        };
        let stands = match (answer, self.folded.get(&lease.run)) {
            (Answer::RetryLater, _) => true,
            (Answer::UnknownRun, _) | (_, None) => false,
            (Answer::Recorded, Some(run)) => answers::stands(run, lease, fact),
            (Answer::Stale, Some(run)) => answers::kept(run, lease, fact),
            (Answer::RunClosed, Some(run)) => {
                run.state().terminal() && answers::kept(run, lease, fact)
            }
        };
        if !stands {
            let what =
                format!("report {number} on {} @{} of {}", lease.work, lease.epoch, lease.run);
            self.broken(format!("{what} was answered {answer:?}, which is not in the journal"));
        } else if answer == Answer::RunClosed {
            self.closed.insert(lease.clone());
        }
    }

    /// A caller is told that its call was carried out.
    pub(crate) fn done(&mut self, run: &RunId, key: &IdempotencyKey) {
        let recorded = self.folded.get(run).is_some_and(|run| run.calls().any(|(of, _)| of == key));
        if !recorded {
            self.broken(format!(
                "call {key} on {run} is said to be done and is not in the journal"
            ));
        }
    }
}

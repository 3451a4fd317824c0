//! Leases, and how they end when their worker is silent about them.
//!
//! A lease lasts a term from the last beat that named it. When it ends it is forgotten here at once,
//! so its end is said once; a run that was not reached asserts the lease anew and gets a new end.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::event::LossReason;
use ganger_shared::ids::{InstanceId, RunId, WorkerId};
use ganger_shared::link::Lease;

use super::claims::Part;
use super::message::{HeldLease, Now, Output};
use super::seats::{Seat, Sort};
use super::timers::{Timer, Timers};
use super::{Fleet, claims};

/// One lease.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) held: HeldLease,
    /// When it ends, unless a beat names it.
    until_ms: u64,
    /// Whose claim stands because of it.
    claim: Option<claims::Owner>,
}

impl Term {
    fn seat(&self) -> Seat {
        Seat {
            worker: self.held.worker.clone(),
            run: self.held.lease.run.clone(),
            project: self.held.project.clone(),
            sort: Sort::of(&self.held.lease.work),
        }
    }
}

/// All leases.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases {
    terms: BTreeMap<Lease, Term>,
    workers: BTreeMap<WorkerId, BTreeSet<Lease>>,
}

impl Leases {
    pub(super) fn get(&self, lease: &Lease) -> Option<&Term> {
        self.terms.get(lease)
    }

    pub(super) fn of_worker(&self, worker: &WorkerId) -> impl Iterator<Item = &Lease> {
        self.workers.get(worker).into_iter().flatten()
    }

    pub(super) fn of_run(&self, run: &RunId) -> Vec<Lease> {
        self.terms.keys().filter(|lease| lease.run == *run).cloned().collect()
    }

    pub(super) fn put_off(&mut self, by_ms: u64) {
        for term in self.terms.values_mut() {
            term.until_ms = term.until_ms.saturating_add(by_ms);
        }
    }

    fn insert(&mut self, term: Term) {
        let lease = term.held.lease.clone();
        self.workers.entry(term.held.worker.clone()).or_default().insert(lease.clone());
        self.terms.insert(lease, term);
    }

    fn remove(&mut self, lease: &Lease) -> Option<Term> {
        let term = self.terms.remove(lease)?;
        if let Some(leases) = self.workers.get_mut(&term.held.worker) {
            leases.remove(lease);
            if leases.is_empty() {
                self.workers.remove(&term.held.worker);
            }
        }
        Some(term)
    }

    /// A beat of this worker's process named the lease; whether it is held there.
    pub(super) fn renew(
        &mut self,
        lease: &Lease,
        (worker, instance): (&WorkerId, &InstanceId),
        until_ms: u64,
        timers: &mut Timers,
    ) -> bool {
        let Some(term) = self.terms.get_mut(lease) else { return false };
        if term.held.worker != *worker || term.held.instance != *instance {
            return false;
        }
        timers.disarm(term.until_ms, Timer::Lease(lease.clone()));
        term.until_ms = term.until_ms.max(until_ms);
        timers.arm(term.until_ms, Timer::Lease(lease.clone()));
        true
    }
}

impl Fleet {
    /// A run says that it holds a lease; what is known goes on with the term it has.
    pub(super) fn lease_held(&mut self, now: Now, held: HeldLease) {
        if self.leases.get(&held.lease).is_none() {
            self.hold(now, held, None);
        }
    }

    /// Begins a term. `claim` says whose claim stands as long as the lease does.
    pub(super) fn hold(&mut self, now: Now, held: HeldLease, claim: Option<claims::Owner>) {
        let until_ms = now.ms.saturating_add(self.terms.lease_ms);
        self.timers.arm(until_ms, Timer::Lease(held.lease.clone()));
        let term = Term { held, until_ms, claim };
        self.seats.take(&term.seat());
        self.leases.insert(term);
    }

    pub(super) fn lease_gone(&mut self, lease: &Lease, out: &mut Vec<Output>) {
        let Some(term) = self.leases.remove(lease) else { return };
        self.timers.disarm(term.until_ms, Timer::Lease(lease.clone()));
        self.seats.leave(&term.seat());
        if let Some(owner) = &term.claim {
            self.drop_claim(owner, &Part::Lease(lease.clone()));
        }
        self.leave_if_done(&term.held.worker, out);
    }

    pub(super) fn lease_due(&mut self, now: Now, lease: &Lease, out: &mut Vec<Output>) {
        let Some(term) = self.leases.get(lease) else { return };
        let reason = match self.workers.get(&term.held.worker) {
            Some(worker) if worker.said_goodbye() => LossReason::WorkerLeft,
            Some(worker) if worker.was_heard_within(now, self.terms.suspect_ms) => {
                LossReason::NotHeld
            }
            Some(_) | None => LossReason::LeaseExpired,
        };
        out.push(Output::LeaseEnded { lease: lease.clone(), reason });
        self.lease_gone(lease, out);
    }
}

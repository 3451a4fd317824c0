//! The fleet: workers, their slots and leases, who waits for a slot, and which files are whose.
//!
//! One input, its outputs, and the moment as a value: no clock is read. Leases, beats and offers are
//! counted by the coordinator's monotonic clock from what it received itself; what a worker's clock
//! says is shown and never used (P030). Runs own their graphs and budgets; the fleet only knows what
//! they want and hold, and they assert it anew after a restart. Not here: what a run makes of an
//! offer or a lost lease (`run`), streams and journals (the actor).
//!
//! What one input costs: a placement looks at every line with a free worker and at the first want of
//! each run in it; never at wants times workers.

mod assets;
mod claims;
mod explain;
mod leases;
mod message;
mod offers;
mod place;
mod seats;
mod timers;
mod wants;
mod workers;

use std::collections::BTreeMap;

use ganger_shared::ids::WorkerId;
use ganger_shared::limits::{Limits, SUSPECT_BEATS};
use ganger_shared::time::DurationMs;

use claims::{Claims, Files, Part};
use leases::Leases;
use offers::Offers;
use seats::Seats;
use timers::{Timer, Timers};
use wants::{Shape, Standing, Want, WantKey, Wants};
use workers::{Closed, Worker};

pub use assets::Demand;
pub use explain::Waiting;
pub use message::{
    Attached, Folded, HeldClaim, HeldLease, Input, Inventory, Now, Output, Refusal, Wanted,
};

/// Workers that may ever enroll with one coordinator.
pub const WORKERS_MAX: usize = 10_000;
/// How often the wait after an offer that was not taken doubles.
const SETBACK_DOUBLINGS: u32 = 5;

/// The lengths the fleet counts with.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit stands last in every length of time")]
struct Terms {
    suspect_ms: u64,
    lease_ms: u64,
    offer_ms: u64,
}

/// Workers, slots, wants and claims.
#[derive(Debug, Clone)]
pub struct Fleet {
    terms: Terms,
    open: bool,
    workers: BTreeMap<WorkerId, Worker>,
    leases: Leases,
    wants: Wants,
    offers: Offers,
    claims: Claims,
    seats: Seats,
    timers: Timers,
}

impl Fleet {
    /// An empty fleet. Tokens of offers count up from `first_token`, which no fleet before used.
    pub fn new(limits: &Limits, first_token: u64) -> Self {
        let DurationMs(beat_ms) = limits.beat_ms;
        let DurationMs(lease_ms) = limits.lease_ms;
        let terms = Terms {
            suspect_ms: beat_ms.saturating_mul(SUSPECT_BEATS).min(lease_ms),
            lease_ms,
            offer_ms: limits.offer_ms.0,
        };
        Self {
            terms,
            open: false,
            workers: BTreeMap::new(),
            leases: Leases::default(),
            wants: Wants::default(),
            offers: Offers::new(first_token),
            claims: Claims::default(),
            seats: Seats::default(),
            timers: Timers::default(),
        }
    }

    /// Takes in one input; the outputs are to be carried out in their order.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        let mut out = vec![];
        match input {
            Input::Open => self.opened(&mut out),
            Input::Attached(attached) => self.attached(now, *attached, &mut out),
            Input::Reconciled { worker, instance } => {
                self.reconciled(&worker, &instance, &mut out);
            }
            Input::Detached { worker, session, goodbye } => {
                self.detached(&worker, session, goodbye, &mut out);
            }
            Input::Beat { worker, instance, beat } => {
                self.beat(now, (&worker, &instance), &beat, &mut out);
            }
            Input::Want(wanted) => self.want(now, *wanted),
            Input::Unwant { run, id } => self.unwant(&(run, id)),
            Input::ClaimHeld(claim) => self.claim_held(*claim),
            Input::ClaimReleased { run, unit } => self.drop_claim(&(run, unit), &Part::Held),
            Input::LeaseHeld(held) => self.lease_held(now, *held),
            Input::LeaseGone(lease) => self.lease_gone(&lease, &mut out),
            Input::OfferTaken { token, lease } => self.taken(now, token, &lease, &mut out),
            Input::OfferDeclined { token } => self.declined(now, token),
            Input::Folded(folded) => self.folded(now, *folded, &mut out),
            Input::Cordon(worker) => self.mark(&worker, |w| w.close(Closed::Cordoned), &mut out),
            Input::Uncordon(worker) => self.mark(&worker, Worker::reopen, &mut out),
            Input::Drain(worker) => self.mark(&worker, |w| w.close(Closed::Drained), &mut out),
            Input::Suspended { by_ms } => self.suspended(by_ms),
            Input::Tick => self.tick(now, &mut out),
        }
        self.place(now, &mut out);
        out
    }

    /// When a `Tick` is due next, by `Now::ms`.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    fn opened(&mut self, out: &mut Vec<Output>) {
        self.open = true;
        self.ask_about_waiting_workers(out);
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        while let Some(timer) = self.timers.due(now.ms) {
            match timer {
                Timer::Lease(lease) => self.lease_due(now, &lease, out),
                Timer::Worker(worker) => self.worker_due(now, &worker, out),
                Timer::Offer(token) => self.offer_due(now, token),
                Timer::Want(key) => self.wants.stand(&key, Standing::Queued, &mut self.timers),
            }
        }
    }

    fn suspended(&mut self, by_ms: u64) {
        self.timers.put_off(by_ms);
        self.leases.put_off(by_ms);
        self.offers.put_off(by_ms);
        for worker in self.workers.values_mut() {
            worker.put_off(by_ms);
        }
    }

    fn want(&mut self, now: Now, wanted: message::Wanted) {
        let key = (wanted.run.clone(), wanted.id.clone());
        // First, because a line goes with its last want.
        self.unwant(&key);
        let want = &wanted.want;
        // A clock that was set back must not make a wish wait for it to catch up.
        let DurationMs(wait_ms) = want.not_before.since(now.at.max(want.since));
        let standing = match self.offers.token_for(&key) {
            Some(token) => Standing::Offered { token },
            None if wait_ms > 0 => Standing::Timed { until_ms: now.ms.saturating_add(wait_ms) },
            None => Standing::Queued,
        };
        let files = want.claim.as_ref().map(|(of, globs)| Files::new(of.clone(), globs));
        let workers = &self.workers;
        let line = self.wants.line_for(Shape::of(want), |shape| {
            let fit = |worker: &&Worker| worker.is_offerable() && shape.fits(&worker.facts);
            workers.values().filter(fit).map(|worker| worker.facts.worker.clone()).collect()
        });
        let want = Want { wanted, files, line, standing, setbacks: 0 };
        self.wants.insert(want, &mut self.timers);
    }

    /// An offer that is out for it stays out until it is answered.
    fn unwant(&mut self, key: &WantKey) {
        self.wants.remove(key, &mut self.timers);
    }

    fn claim_held(&mut self, claim: HeldClaim) {
        let owner = (claim.run, claim.unit);
        self.claims.add(&owner, Part::Held, &Files::new(claim.repository, &claim.files));
    }

    fn drop_claim(&mut self, owner: &claims::Owner, part: &Part) {
        if self.claims.remove(owner, part) {
            self.wants.wake(owner, &mut self.timers);
        }
    }

    /// Everything of the run is as said here; leases that go on keep their terms.
    fn folded(&mut self, now: Now, folded: Folded, out: &mut Vec<Output>) {
        for token in self.offers.of_run(&folded.run) {
            self.void(token);
        }
        for key in self.wants.of_run(&folded.run) {
            self.unwant(&key);
        }
        for lease in self.leases.of_run(&folded.run) {
            if !folded.leases.iter().any(|held| held.lease == lease) {
                self.lease_gone(&lease, out);
            }
        }
        for owner in self.claims.of_run(&folded.run) {
            if !folded.claims.iter().any(|claim| claim.unit == owner.1) {
                self.drop_claim(&owner, &Part::Held);
            }
        }
        folded.claims.into_iter().for_each(|claim| self.claim_held(claim));
        folded.leases.into_iter().for_each(|held| self.lease_held(now, held));
        folded.wants.into_iter().for_each(|wanted| self.want(now, wanted));
    }
}

#[cfg(test)]
mod tests;

//! Slots that are offered and not answered yet.
//!
//! An offer keeps its slot and its files until it is taken, declined or lapsed; no fence is used up
//! by it (P035). Run and fleet share a process and a clock, so a run can tell that an offer lapsed
//! and declines it. If one is taken late all the same, it stands where slot and files are still
//! free; otherwise its lease ends at once.

use std::collections::BTreeMap;

use ganger_shared::event::LossReason;
use ganger_shared::ids::{InstanceId, RunId};
use ganger_shared::link::Lease;

use super::claims::{Files, Owner, Part};
use super::message::{HeldLease, Now, Output};
use super::seats::Seat;
use super::timers::Timer;
use super::wants::{Standing, WantKey};
use super::{Fleet, SETBACK_DOUBLINGS};

/// Lapsed offers that are remembered, in case that one is taken late.
const LAPSED_MAX: usize = 1_024;

/// One offer.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub(super) key: WantKey,
    pub(super) seat: Seat,
    pub(super) instance: InstanceId,
    pub(super) claim: Option<(Owner, Files)>,
    pub(super) until_ms: u64,
}

/// Offers that are out, and lapsed ones.
#[derive(Debug, Clone)]
pub(super) struct Offers {
    out: BTreeMap<u64, Offered>,
    by_want: BTreeMap<WantKey, u64>,
    lapsed: BTreeMap<u64, Offered>,
    next_token: u64,
}

impl Offers {
    pub(super) fn new(first_token: u64) -> Self {
        Self {
            out: BTreeMap::new(),
            by_want: BTreeMap::new(),
            lapsed: BTreeMap::new(),
            next_token: first_token,
        }
    }

    pub(super) fn token_for(&self, key: &WantKey) -> Option<u64> {
        self.by_want.get(key).copied()
    }

    pub(super) fn of_run(&self, run: &RunId) -> Vec<u64> {
        self.out.iter().filter(|(_, offer)| offer.key.0 == *run).map(|(token, _)| *token).collect()
    }

    pub(super) fn next_token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }

    pub(super) fn insert(&mut self, token: u64, offer: Offered) {
        self.by_want.insert(offer.key.clone(), token);
        self.out.insert(token, offer);
    }

    pub(super) fn put_off(&mut self, by_ms: u64) {
        for offer in self.out.values_mut() {
            offer.until_ms = offer.until_ms.saturating_add(by_ms);
        }
    }

    /// Every offer that is out.
    #[cfg(test)]
    pub(super) fn out(&self) -> impl Iterator<Item = &Offered> {
        self.out.values()
    }

    fn remove(&mut self, token: u64) -> Option<Offered> {
        let offer = self.out.remove(&token)?;
        self.by_want.remove(&offer.key);
        Some(offer)
    }

    fn remember(&mut self, token: u64, offer: Offered) {
        self.lapsed.insert(token, offer);
        if self.lapsed.len() > LAPSED_MAX {
            self.lapsed.pop_first();
        }
    }
}

impl Fleet {
    pub(super) fn taken(&mut self, now: Now, token: u64, lease: &Lease, out: &mut Vec<Output>) {
        if let Some(offer) = self.offers.remove(token) {
            self.timers.disarm(offer.until_ms, Timer::Offer(token));
            self.wants.remove(&offer.key, &mut self.timers);
            self.seats.leave(&offer.seat);
            self.lease_out(now, &offer, lease);
            self.drop_offered_claim(token, &offer);
            self.end_if_replaced(&offer, lease, out);
        } else {
            self.taken_late(now, token, lease, out);
        }
    }

    fn taken_late(&mut self, now: Now, token: u64, lease: &Lease, out: &mut Vec<Output>) {
        let stands = self.offers.lapsed.remove(&token).filter(|offer| {
            // The want is served by this lease, whether it stands or is lost.
            self.wants.remove(&offer.key, &mut self.timers);
            let claimed = offer.claim.as_ref();
            self.seats.is_free(&offer.seat.worker, offer.seat.sort)
                && claimed.and_then(|(owner, files)| self.claims.blocker(owner, files)).is_none()
        });
        if let Some(offer) = stands {
            self.lease_out(now, &offer, lease);
            self.end_if_replaced(&offer, lease, out);
        } else {
            let reason = LossReason::NotHeld;
            out.push(Output::LeaseEnded { lease: lease.clone(), reason });
        }
    }

    pub(super) fn declined(&mut self, now: Now, token: u64) {
        self.offers.lapsed.remove(&token);
        if let Some(offer) = self.void(token) {
            self.offer_again_later(now, token, &offer.key);
        }
    }

    pub(super) fn offer_due(&mut self, now: Now, token: u64) {
        if let Some(offer) = self.void(token) {
            self.offer_again_later(now, token, &offer.key);
            self.offers.remember(token, offer);
        }
    }

    /// Takes an offer back, with its slot and its files.
    pub(super) fn void(&mut self, token: u64) -> Option<Offered> {
        let offer = self.offers.remove(token)?;
        self.timers.disarm(offer.until_ms, Timer::Offer(token));
        self.seats.leave(&offer.seat);
        self.drop_offered_claim(token, &offer);
        Some(offer)
    }

    fn lease_out(&mut self, now: Now, offer: &Offered, lease: &Lease) {
        let project = offer.seat.project.clone();
        let worker = offer.seat.worker.clone();
        let instance = offer.instance.clone();
        if let Some((owner, files)) = &offer.claim {
            self.claims.add(owner, Part::Lease(lease.clone()), files);
        }
        let owner = offer.claim.as_ref().map(|(owner, _)| owner.clone());
        self.hold(now, HeldLease { lease: lease.clone(), project, worker, instance }, owner);
    }

    /// The offered process may be gone by the time its offer is taken: no beat would name the lease.
    fn end_if_replaced(&mut self, offer: &Offered, lease: &Lease, out: &mut Vec<Output>) {
        let worker = self.workers.get(&offer.seat.worker);
        if worker.is_some_and(|worker| worker.facts.instance != offer.instance) {
            let reason = LossReason::InstanceReplaced;
            out.push(Output::LeaseEnded { lease: lease.clone(), reason });
            self.lease_gone(lease, out);
        }
    }

    fn drop_offered_claim(&mut self, token: u64, offer: &Offered) {
        if let Some((owner, _)) = &offer.claim {
            self.drop_claim(owner, &Part::Offer(token));
        }
    }

    fn offer_again_later(&mut self, now: Now, token: u64, key: &WantKey) {
        let is_offered =
            self.wants.get(key).is_some_and(|want| want.standing == Standing::Offered { token });
        if is_offered {
            let offer_ms = self.terms.offer_ms.max(1);
            let until = |setbacks: u32| {
                let wait_ms = offer_ms.saturating_mul(1 << setbacks.min(SETBACK_DOUBLINGS));
                now.ms.saturating_add(wait_ms)
            };
            self.wants.set_back(key, until, &mut self.timers);
        }
    }
}

//! Runs and machines around a fleet, as a random history moves them; every rule is checked after
//! every step. A twin fleet hears the same from workers whose clocks are wrong.

use std::collections::BTreeSet;

use super::*;
use crate::fleet::claims::Owner;

/// One worker's process and what it runs.
pub(super) struct Machine {
    pub(super) facts: WorkerFacts,
    starts: u32,
    session: Option<u64>,
    live: BTreeSet<Lease>,
    asked: bool,
}

/// A fleet and everything it speaks to.
pub(super) struct World {
    fleet: Fleet,
    twin: Fleet,
    now_ms: u64,
    sessions: u64,
    pub(super) machines: Vec<Machine>,
    pub(super) wants: BTreeMap<WantKey, Wanted>,
    pub(super) leases: BTreeMap<Lease, HeldLease>,
    claims: BTreeMap<Owner, HeldClaim>,
    mail: Vec<(RunId, Offer)>,
    tries: u32,
    pub(super) grants: usize,
}

impl World {
    pub(super) fn new(machines: Vec<WorkerFacts>) -> Self {
        let machine = |facts| Machine {
            facts,
            starts: 1,
            session: None,
            live: BTreeSet::new(),
            asked: false,
        };
        let mut world = Self {
            fleet: Fleet::new(&limits(), 1),
            twin: Fleet::new(&limits(), 1),
            now_ms: 0,
            sessions: 0,
            machines: machines.into_iter().map(machine).collect(),
            wants: BTreeMap::new(),
            leases: BTreeMap::new(),
            claims: BTreeMap::new(),
            mail: vec![],
            tries: 0,
            grants: 0,
        };
        world.feed(Input::Open);
        world
    }

    pub(super) fn feed(&mut self, input: Input) {
        let mut skewed = input.clone();
        if let Input::Beat { beat, .. } = &mut skewed {
            beat.sent_at = beat.sent_at.plus(DurationMs::from_mins(10));
        }
        let outputs = self.fleet.handle(at(self.now_ms), input);
        assert_eq!(outputs, self.twin.handle(at(self.now_ms), skewed), "P030: a clock mattered");
        assert_eq!(self.fleet.next_deadline(), self.twin.next_deadline());
        for output in outputs {
            self.carry_out(output);
        }
        self.check();
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Offer { run, offer, .. } => {
                let wanted = self.wants.values().any(|w| w.run == run && w.want.kind == offer.want);
                assert!(wanted, "{offer:?} was not wanted");
                self.grants += 1;
                self.mail.push((run, offer));
            }
            Output::LeaseEnded { lease, .. } => {
                assert!(self.leases.remove(&lease).is_some(), "{lease:?} ended twice");
                self.release(&lease);
            }
            Output::Unheld { worker, lease, .. } => {
                assert!(!self.leases.contains_key(&lease), "{lease:?} is held");
                self.machine(&worker).live.remove(&lease);
            }
            Output::Reconcile { worker, .. } => self.machine(&worker).asked = true,
            Output::Refuse { session, .. } => {
                for machine in &mut self.machines {
                    machine.session = machine.session.filter(|own| *own != session);
                }
            }
            Output::Record(_) | Output::Superseded { .. } | Output::StateChanged { .. } => {}
        }
    }

    /// Invariant 6, R055, P035 at every moment.
    fn check(&self) {
        let overlaps = self.fleet.claims.overlaps();
        assert!(overlaps.is_empty(), "claims overlap: {overlaps:?}");
        let out: Vec<_> = self.fleet.offers.out().collect();
        let keys: BTreeSet<_> = out.iter().map(|offer| &offer.key).collect();
        assert_eq!(keys.len(), out.len(), "a want was offered two slots");
        for machine in &self.machines {
            let id = &machine.facts.worker;
            let held = self.leases.values().filter(|held| held.worker == *id);
            let mut sorts: Vec<_> = held.map(|held| seats::Sort::of(&held.lease.work)).collect();
            sorts.extend(out.iter().filter(|o| o.seat.worker == *id).map(|o| o.seat.sort));
            let checks = sorts.iter().filter(|sort| **sort == seats::Sort::Check).count();
            let used = sorts.len() - checks + checks.saturating_sub(1);
            assert!(used <= machine.facts.slots as usize, "{id} holds {used}");
        }
    }

    pub(super) fn want(&mut self, wanted: Wanted) {
        let unit_of = |lease: &Lease| match (&lease.work, &wanted.want.kind) {
            (WorkId::Attempt(id), WantKind::Attempt { unit, .. }) => id.unit == *unit,
            (WorkId::Check(id), WantKind::Check { check, .. }) => id.unit == check.unit,
            (WorkId::Attempt(_), WantKind::Check { .. })
            | (WorkId::Check(_), WantKind::Attempt { .. }) => false,
        };
        if self.leases.keys().any(|lease| lease.run == wanted.run && unit_of(lease)) {
            return;
        }
        self.wants.insert((wanted.run.clone(), wanted.id.clone()), wanted.clone());
        self.feed(Input::Want(Box::new(wanted)));
    }

    pub(super) fn unwant(&mut self, nth: usize) {
        if let Some(key) = self.wants.keys().nth(nth).cloned() {
            self.wants.remove(&key);
            self.feed(Input::Unwant { run: key.0, id: key.1 });
        }
    }

    /// A run answers an offer, in time or not.
    pub(super) fn answer(&mut self, nth: usize, take: bool) {
        if nth >= self.mail.len() {
            return;
        }
        let (run, offer) = self.mail.remove(nth);
        let key = self.wants.iter().find(|(_, w)| w.run == run && w.want.kind == offer.want);
        let Some(key) = key.map(|(key, _)| key.clone()).filter(|_| take) else {
            self.feed(Input::OfferDeclined { token: offer.token });
            return;
        };
        let wanted = self.wants.remove(&key).unwrap();
        self.tries += 1;
        let work = match offer.want {
            WantKind::Attempt { unit, lane } => {
                WorkId::Attempt(AttemptId { unit, lane, n: self.tries })
            }
            WantKind::Check { check, .. } => WorkId::Check(CheckId { n: self.tries, ..check }),
        };
        let lease = Lease { run, work, epoch: Epoch(u64::from(self.tries)) };
        let held = HeldLease {
            lease: lease.clone(),
            project: wanted.project.clone(),
            worker: offer.worker.clone(),
            instance: offer.instance.clone(),
        };
        self.leases.insert(lease.clone(), held);
        self.feed(Input::OfferTaken { token: offer.token, lease: lease.clone() });
        if self.leases.contains_key(&lease) {
            self.begin(&lease, &offer.worker, &wanted);
        }
    }

    fn begin(&mut self, lease: &Lease, worker: &WorkerId, wanted: &Wanted) {
        let machine = self.machine(worker);
        if machine.session.is_some() {
            machine.live.insert(lease.clone());
        }
        if let Some((repository, files)) = wanted.want.claim.clone() {
            let owner = owner(lease);
            let (run, unit) = owner.clone();
            let claim = HeldClaim { run, unit, repository, files };
            self.claims.insert(owner, claim.clone());
            self.feed(Input::ClaimHeld(Box::new(claim)));
        }
    }

    /// A lease ends by a report of its worker.
    pub(super) fn finish(&mut self, nth: usize) {
        if let Some(lease) = self.leases.keys().nth(nth).cloned() {
            self.end(&lease);
        }
    }

    fn end(&mut self, lease: &Lease) {
        if let Some(held) = self.leases.remove(lease) {
            self.machine(&held.worker).live.remove(lease);
            self.feed(Input::LeaseGone(lease.clone()));
            self.release(lease);
        }
    }

    fn release(&mut self, lease: &Lease) {
        let owner = owner(lease);
        if matches!(lease.work, WorkId::Attempt(_)) && self.claims.remove(&owner).is_some() {
            self.feed(Input::ClaimReleased { run: owner.0, unit: owner.1 });
        }
    }

    pub(super) fn attach(&mut self, nth: usize) {
        self.sessions += 1;
        let session = self.sessions;
        let machine = &mut self.machines[nth];
        machine.session = Some(session);
        let facts = machine.facts.clone();
        let live = machine.live.iter().cloned().collect();
        self.feed(Input::Attached(Box::new(Attached { facts, session, live, finished: vec![] })));
    }

    /// The runs say what they make of an attached worker's inventory.
    pub(super) fn reconcile(&mut self, nth: usize) {
        let machine = &mut self.machines[nth];
        if !std::mem::take(&mut machine.asked) {
            return;
        }
        let (worker, instance) = (machine.facts.worker.clone(), machine.facts.instance.clone());
        let live = machine.live.clone();
        let gone: Vec<_> = self.leases.values().filter(|h| h.worker == worker).cloned().collect();
        for held in gone {
            if !live.contains(&held.lease) {
                self.end(&held.lease);
            }
        }
        let held = self.leases.keys().cloned().collect();
        let machine = &mut self.machines[nth];
        machine.live = &machine.live & &held;
        self.feed(Input::Reconciled { worker, instance });
    }

    pub(super) fn detach(&mut self, nth: usize, goodbye: bool) {
        let machine = &mut self.machines[nth];
        if let Some(session) = machine.session.take() {
            let worker = machine.facts.worker.clone();
            self.feed(Input::Detached { worker, session, goodbye });
        }
    }

    /// The process dies with all it ran; whether the end of its stream is noticed is chance.
    pub(super) fn crash(&mut self, nth: usize, noticed: bool) {
        if noticed {
            self.detach(nth, false);
        }
        let machine = &mut self.machines[nth];
        machine.session = None;
        machine.starts += 1;
        machine.facts.instance = instance(machine.starts);
        machine.live.clear();
        machine.asked = false;
    }

    pub(super) fn beat(&mut self, nth: usize, forgets: bool) {
        let machine = &mut self.machines[nth];
        if machine.session.is_none() {
            return;
        }
        if forgets {
            machine.live.pop_first();
        }
        let live: Vec<_> = machine.live.iter().cloned().collect();
        let (worker, instance) = (machine.facts.worker.clone(), machine.facts.instance.clone());
        self.feed(Input::Beat { worker, instance, beat: Box::new(beat(&live)) });
    }

    pub(super) fn pass(&mut self, ms: u64, suspended: bool) {
        self.now_ms += ms;
        if suspended {
            self.feed(Input::Suspended { by_ms: ms });
        }
        self.feed(Input::Tick);
    }

    fn folded(&self, of: &RunId) -> Folded {
        Folded {
            run: of.clone(),
            wants: self.wants.values().filter(|w| w.run == *of).cloned().collect(),
            claims: self.claims.values().filter(|c| c.run == *of).cloned().collect(),
            leases: self.leases.values().filter(|h| h.lease.run == *of).cloned().collect(),
        }
    }

    /// A run's actor dies and is folded anew.
    pub(super) fn refold(&mut self, of: &RunId) {
        self.mail.retain(|(run, _)| run != of);
        self.feed(Input::Folded(Box::new(self.folded(of))));
    }

    /// The coordinator dies and comes back.
    pub(super) fn restart(&mut self) {
        let first_token = 1_000 * (1 + self.sessions);
        self.sessions += 1;
        self.fleet = Fleet::new(&limits(), first_token);
        self.twin = self.fleet.clone();
        for machine in &mut self.machines {
            machine.session = None;
            machine.asked = false;
        }
        for of in [1, 2, 3] {
            self.refold(&run(of));
        }
        self.feed(Input::Open);
    }

    pub(super) fn mark(&mut self, nth: usize, mark: fn(WorkerId) -> Input) {
        let id = self.machines[nth].facts.worker.clone();
        self.feed(mark(id));
    }

    /// The faults are over: everybody attaches, beats, takes and finishes.
    pub(super) fn settle(&mut self) {
        for nth in 0..self.machines.len() {
            self.mark(nth, Input::Uncordon);
            if self.machines[nth].session.is_none() {
                self.attach(nth);
            }
            self.reconcile(nth);
            self.beat(nth, false);
        }
        while !self.mail.is_empty() {
            self.answer(0, true);
        }
        while !self.leases.is_empty() {
            self.finish(0);
        }
        self.pass(100, false);
    }

    fn machine(&mut self, id: &WorkerId) -> &mut Machine {
        self.machines.iter_mut().find(|machine| machine.facts.worker == *id).unwrap()
    }
}

fn owner(lease: &Lease) -> Owner {
    let unit = match &lease.work {
        WorkId::Attempt(id) => id.unit.clone(),
        WorkId::Check(id) => id.unit.clone(),
    };
    (lease.run.clone(), unit)
}

//! Workers: attached or away, heard or silent, open for work or not.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::event::FleetEvent;
use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::{InstanceId, RunId, WorkerId};
use ganger_shared::link::{Beat, Lease};
use ganger_shared::time::Timestamp;
use ganger_shared::view::WorkerView;

use super::message::{Attached, Inventory, Now, Output, Refusal};
use super::seats::{Load, Sort};
use super::timers::Timer;
use super::{Fleet, WORKERS_MAX};

/// Whether a worker has a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// It has none; it may have said that it leaves.
    Away { said_goodbye: bool },
    /// Its runs are being asked about what it brought.
    Reconciling { session: u64, live: Vec<Lease>, finished: Vec<Lease> },
    /// They have answered.
    Ready { session: u64 },
}

/// Whether a worker lives, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It was heard lately.
    Heard,
    /// Beats are missing.
    Suspect,
    /// No lease of it can be alive any more.
    Lost,
    /// It said goodbye and holds nothing.
    Left,
}

/// Why a worker is offered nothing although it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closed {
    /// Somebody cordoned it.
    Cordoned,
    /// Somebody drains it.
    Drained,
    /// It says that it drains.
    DrainsItself,
}

/// One worker.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) facts: WorkerFacts,
    pub(super) link: Link,
    pub(super) presence: Presence,
    closed: BTreeSet<Closed>,
    heard_ms: u64,
    /// When its presence changes if nothing is heard.
    due_ms: u64,
    last_beat: Option<Timestamp>,
    skew_ms: i64,
    shown: &'static str,
    served: bool,
}

impl Worker {
    fn new(facts: WorkerFacts, now: Now) -> Self {
        Self {
            facts,
            link: Link::Away { said_goodbye: false },
            presence: Presence::Heard,
            closed: BTreeSet::new(),
            heard_ms: now.ms,
            due_ms: now.ms,
            last_beat: None,
            skew_ms: 0,
            shown: "",
            served: false,
        }
    }

    /// Whether slots may be offered there.
    pub(super) fn is_offerable(&self) -> bool {
        matches!(self.link, Link::Ready { .. })
            && self.presence == Presence::Heard
            && self.closed.is_empty()
    }

    pub(super) fn was_heard_within(&self, now: Now, ms: u64) -> bool {
        now.ms.saturating_sub(self.heard_ms) < ms
    }

    pub(super) fn close(&mut self, why: Closed) {
        self.closed.insert(why);
    }

    /// Takes back what people asked for; what the worker says stands.
    pub(super) fn reopen(&mut self) {
        self.closed.retain(|why| *why == Closed::DrainsItself);
    }

    fn drains_itself(&mut self, drains: bool) {
        if drains {
            self.closed.insert(Closed::DrainsItself);
        } else {
            self.closed.remove(&Closed::DrainsItself);
        }
    }

    pub(super) fn said_goodbye(&self) -> bool {
        self.link == Link::Away { said_goodbye: true }
    }

    pub(super) fn put_off(&mut self, by_ms: u64) {
        self.heard_ms = self.heard_ms.saturating_add(by_ms);
        self.due_ms = self.due_ms.saturating_add(by_ms);
    }

    fn session(&self) -> Option<u64> {
        match &self.link {
            Link::Away { .. } => None,
            Link::Reconciling { session, .. } | Link::Ready { session } => Some(*session),
        }
    }

    fn state(&self) -> &'static str {
        match self.presence {
            Presence::Left => "left",
            Presence::Lost => "lost",
            Presence::Suspect => "suspect",
            Presence::Heard => match self.closed.last() {
                Some(Closed::Drained | Closed::DrainsItself) => "draining",
                Some(Closed::Cordoned) => "cordoned",
                None => "live",
            },
        }
    }
}

impl Fleet {
    /// Takes in a fact of the stream `fleet` while the journal is read, before any input.
    pub fn remember(&mut self, now: Now, event: &FleetEvent) {
        match event {
            FleetEvent::WorkerEnrolled { facts } => {
                let worker = self.workers.entry(facts.worker.clone());
                worker.or_insert_with(|| Worker::new((**facts).clone(), now)).facts =
                    (**facts).clone();
                self.heard(now, &facts.worker);
            }
            FleetEvent::InstanceAttached { worker, instance } => {
                if let Some(known) = self.workers.get_mut(worker) {
                    known.facts.instance = instance.clone();
                    known.presence = Presence::Heard;
                }
            }
            FleetEvent::WorkerLost { worker, instance } => {
                let known = self.workers.get_mut(worker);
                if let Some(known) = known.filter(|known| known.facts.instance == *instance) {
                    known.presence = Presence::Lost;
                }
            }
        }
    }

    pub(super) fn attached(&mut self, now: Now, attached: Attached, out: &mut Vec<Output>) {
        let Attached { facts, session, live, finished } = attached;
        if let Some(refusal) = self.refusal(&facts) {
            out.push(Output::Refuse { session, refusal });
            return;
        }
        let id = facts.worker.clone();
        self.record_facts(&facts, out);
        let worker =
            self.workers.entry(id.clone()).or_insert_with(|| Worker::new(facts.clone(), now));
        if let Some(session) = worker.session() {
            out.push(Output::Superseded { worker: id.clone(), session });
        }
        worker.facts = facts;
        worker.drains_itself(false);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.link = Link::Reconciling { session, live, finished };
            // The line may know the worker by other facts.
            worker.served = false;
        }
        self.wants.serve(&id, None);
        self.heard(now, &id);
        self.refresh(&id, out);
        if self.open {
            self.ask_about(&id, out);
        }
    }

    fn refusal(&self, facts: &WorkerFacts) -> Option<Refusal> {
        let Some(known) = self.workers.get(&facts.worker) else {
            let full = self.workers.len() >= WORKERS_MAX;
            return full.then_some(Refusal::TooManyWorkers { max: WORKERS_MAX });
        };
        let is_alive = known.session().is_some() && known.presence == Presence::Heard;
        (is_alive && known.facts.instance != facts.instance).then(|| Refusal::SecondInstance {
            worker: facts.worker.clone(),
            live: known.facts.instance.clone(),
        })
    }

    fn record_facts(&self, facts: &WorkerFacts, out: &mut Vec<Output>) {
        let known = self.workers.get(&facts.worker).map(|known| &known.facts);
        let same = known.is_some_and(|known| {
            *facts == WorkerFacts { instance: facts.instance.clone(), ..known.clone() }
        });
        if !same {
            let facts = Box::new(facts.clone());
            out.push(Output::Record(FleetEvent::WorkerEnrolled { facts }));
        }
        if known.is_none_or(|known| known.instance != facts.instance) {
            out.push(Output::Record(FleetEvent::InstanceAttached {
                worker: facts.worker.clone(),
                instance: facts.instance.clone(),
            }));
        }
    }

    pub(super) fn ask_about_waiting_workers(&self, out: &mut Vec<Output>) {
        for worker in self.workers.keys() {
            self.ask_about(worker, out);
        }
    }

    fn ask_about(&self, id: &WorkerId, out: &mut Vec<Output>) {
        let Some(worker) = self.workers.get(id) else { return };
        let Link::Reconciling { live, finished, .. } = &worker.link else { return };
        let mut runs: BTreeMap<RunId, Inventory> = BTreeMap::new();
        for lease in live.iter().chain(finished).chain(self.leases.of_worker(id)) {
            let run = lease.run.clone();
            runs.entry(run.clone()).or_insert(Inventory { run, live: vec![], finished: vec![] });
        }
        for lease in live {
            runs.entry(lease.run.clone()).and_modify(|of| of.live.push(lease.clone()));
        }
        for lease in finished {
            runs.entry(lease.run.clone()).and_modify(|of| of.finished.push(lease.clone()));
        }
        out.push(Output::Reconcile {
            worker: id.clone(),
            instance: worker.facts.instance.clone(),
            runs: runs.into_values().collect(),
        });
    }

    pub(super) fn reconciled(
        &mut self,
        id: &WorkerId,
        instance: &InstanceId,
        out: &mut Vec<Output>,
    ) {
        let known = self.workers.get_mut(id);
        let Some(worker) = known.filter(|worker| worker.facts.instance == *instance) else {
            return;
        };
        let Link::Reconciling { session, live, .. } = &worker.link else { return };
        let (session, live) = (*session, live.clone());
        worker.link = Link::Ready { session };
        self.count_unheld(id, live.iter());
        self.refresh(id, out);
    }

    pub(super) fn detached(
        &mut self,
        id: &WorkerId,
        session: u64,
        goodbye: bool,
        out: &mut Vec<Output>,
    ) {
        let known = self.workers.get_mut(id);
        let Some(worker) = known.filter(|worker| worker.session() == Some(session)) else { return };
        worker.link = Link::Away { said_goodbye: goodbye };
        self.leave_if_done(id, out);
        self.refresh(id, out);
    }

    pub(super) fn beat(
        &mut self,
        now: Now,
        from: (&WorkerId, &InstanceId),
        beat: &Beat,
        out: &mut Vec<Output>,
    ) {
        let (id, instance) = from;
        let Some(worker) = self.workers.get_mut(id) else { return };
        if worker.facts.instance != *instance || worker.presence == Presence::Left {
            return;
        }
        worker.last_beat = Some(now.at);
        worker.skew_ms = beat.sent_at.unix_ms().saturating_sub(now.at.unix_ms());
        worker.drains_itself(beat.draining);
        let is_ready = matches!(worker.link, Link::Ready { .. });
        self.heard(now, id);
        let until_ms = now.ms.saturating_add(self.terms.lease_ms);
        for progress in &beat.live {
            let lease = &progress.lease;
            let held = self.leases.renew(lease, from, until_ms, &mut self.timers);
            if !held && is_ready {
                let (worker, instance) = (id.clone(), instance.clone());
                out.push(Output::Unheld { worker, instance, lease: lease.clone() });
            }
        }
        self.count_unheld(id, beat.live.iter().map(|progress| &progress.lease));
        self.refresh(id, out);
    }

    pub(super) fn worker_due(&mut self, now: Now, id: &WorkerId, out: &mut Vec<Output>) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        match worker.presence {
            Presence::Heard if worker.was_heard_within(now, self.terms.lease_ms) => {
                worker.presence = Presence::Suspect;
                worker.due_ms = worker.heard_ms.saturating_add(self.terms.lease_ms);
                self.timers.arm(worker.due_ms, Timer::Worker(id.clone()));
            }
            Presence::Heard | Presence::Suspect => {
                worker.presence = Presence::Lost;
                let (worker, instance) = (id.clone(), worker.facts.instance.clone());
                out.push(Output::Record(FleetEvent::WorkerLost { worker, instance }));
            }
            Presence::Lost | Presence::Left => {}
        }
        self.refresh(id, out);
    }

    /// Sets what people asked of a worker; one that is not known has nothing to set.
    pub(super) fn mark(
        &mut self,
        id: &WorkerId,
        mark: impl FnOnce(&mut Worker),
        out: &mut Vec<Output>,
    ) {
        if let Some(worker) = self.workers.get_mut(id) {
            mark(worker);
        }
        self.refresh(id, out);
    }

    /// A worker that said goodbye has left when its last lease is gone.
    pub(super) fn leave_if_done(&mut self, id: &WorkerId, out: &mut Vec<Output>) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        let is_done = worker.said_goodbye()
            && worker.presence != Presence::Left
            && self.leases.of_worker(id).next().is_none();
        if is_done {
            worker.presence = Presence::Left;
            self.timers.disarm(worker.due_ms, Timer::Worker(id.clone()));
            self.seats.unheld(id, 0, 0);
            self.refresh(id, out);
        }
    }

    /// A sign of life.
    fn heard(&mut self, now: Now, id: &WorkerId) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        self.timers.disarm(worker.due_ms, Timer::Worker(id.clone()));
        worker.presence = Presence::Heard;
        worker.heard_ms = worker.heard_ms.max(now.ms);
        worker.due_ms = worker.heard_ms.saturating_add(self.terms.suspect_ms);
        self.timers.arm(worker.due_ms, Timer::Worker(id.clone()));
    }

    /// Work that a worker runs and nobody holds keeps its seat until the worker ends it.
    fn count_unheld<'a>(&mut self, id: &WorkerId, live: impl Iterator<Item = &'a Lease>) {
        let held: BTreeSet<&Lease> = self.leases.of_worker(id).collect();
        let unheld: BTreeSet<&Lease> = live.filter(|lease| !held.contains(lease)).collect();
        let count = |sort: Sort| {
            let of_sort = unheld.iter().filter(|lease| Sort::of(&lease.work) == sort).count();
            u32::try_from(of_sort).unwrap_or(u32::MAX)
        };
        let (attempts, checks) = (count(Sort::Attempt), count(Sort::Check));
        self.seats.unheld(id, attempts, checks);
    }

    /// Brings lines, seats and what is shown in step with a worker that changed.
    fn refresh(&mut self, id: &WorkerId, out: &mut Vec<Output>) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        let offerable = worker.is_offerable();
        self.seats.provide(id, worker.facts.slots, offerable);
        if worker.served != offerable {
            worker.served = offerable;
            self.wants.serve(id, offerable.then_some(&worker.facts));
        }
        if worker.shown != worker.state() {
            worker.shown = worker.state();
            out.push(Output::StateChanged { worker: id.clone() });
        }
    }

    /// Every worker that ever attached, as people see it.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.workers.values().map(|worker| self.view(worker)).collect()
    }

    fn view(&self, worker: &Worker) -> WorkerView {
        let facts = &worker.facts;
        WorkerView {
            id: facts.worker.clone(),
            name: facts.name.clone(),
            state: worker.state().to_owned(),
            labels: facts.labels.clone(),
            slots: facts.slots,
            busy: self.seats.load(&facts.worker).map_or(0, Load::busy),
            agents: facts.agents.iter().map(agent).collect(),
            build: facts.build.clone(),
            last_beat: worker.last_beat,
            skew_ms: worker.skew_ms,
        }
    }
}

fn agent(facts: &AgentFacts) -> String {
    match &facts.version {
        Some(version) => format!("{} {version}", facts.name),
        None => facts.name.clone(),
    }
}

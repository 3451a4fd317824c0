//! One worker: its disk, its machine, and the process that runs on it, which may die at any moment.
//!
//! The roles of the real process (link, attempts, outbox) are played by the modules below, with the
//! same cores. Not here: what a program does that is run (`worker/program.rs`).

pub(crate) mod attempt;
pub(crate) mod attempts;
pub(crate) mod link;
pub(crate) mod outbox;
pub(crate) mod program;

use std::collections::BTreeMap;

use ganger_shared::fleet::WorkerFacts;
use ganger_shared::ids::{InstanceId, WorkerId};
use ganger_shared::link::{Fact, Lease};
use ganger_worker_core::clock;
use ganger_worker_core::outbox::{self as core, Record};

use crate::bug::Bug;
use crate::host::Host;
use crate::world::{Happening, World};
use attempt::AttemptMail;
use attempts::{Attempts, AttemptsMail};
use link::Link;
use outbox::{Disk, Order};
use program::Done;

/// Unanswered reports with which a worker takes no more leases; small, so that it is reached.
const REPORTS_MAX: usize = 24;

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) host: Host,
    pub(crate) id: WorkerId,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) slots: u32,
    /// What its outbox holds, whatever happens to the process.
    pub(crate) durable: Vec<Record>,
    /// Counts the starts of its process.
    pub(crate) life: u64,
    pub(crate) up: bool,
    pub(crate) process: Process,
    /// Its next write to the disk fails.
    pub(crate) disk_fails: bool,
    /// Nothing of it is heard before what it was told before.
    lane_ms: u64,
}

/// What dies with the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) disk: Disk,
    pub(crate) attempts: Attempts,
    pub(crate) link: Link,
}

/// What may happen to a worker's process.
#[derive(Debug)]
pub(crate) enum WorkerEvent {
    /// Its outbox's write is durable.
    Synced,
    /// An order for the outbox arrives there.
    Order(Order),
    /// The attempts are told something.
    Attempts(AttemptsMail),
    /// One attempt is told something.
    Attempt(Lease, AttemptMail),
    /// A step of an attempt is done, unless it was given up meanwhile.
    Step(Lease, u64, Done),
    /// An attempt's alarm, unless another was set.
    Alarm(Lease, u64),
    /// Dial.
    Dial,
    /// Nobody has greeted on this connection so far.
    GreetDue(u64),
    /// A beat of this connection is due.
    Beat(u64),
    /// What was to be sent later on this connection is sent now.
    Retry(u64),
    /// The last answers were waited for long enough.
    Farewell,
}

impl Process {
    pub(crate) fn new(state: core::Outbox, slots: u32) -> Self {
        Self { disk: Disk::new(state), attempts: Attempts::new(slots), link: Link::default() }
    }
}

impl Worker {
    pub(crate) fn new(number: usize, labels: BTreeMap<String, String>, slots: u32) -> Self {
        Self {
            host: Host::default(),
            id: WorkerId::parse(&format!("w{number}")).expect("a plain name"),
            labels,
            slots,
            durable: Vec::new(),
            life: 0,
            up: false,
            process: Process::new(core::Outbox::new(REPORTS_MAX), slots),
            disk_fails: false,
            lane_ms: 0,
        }
    }

    pub(crate) fn is_alive(&self, life: u64) -> bool {
        self.up && self.life == life
    }

    pub(crate) fn facts(&self) -> WorkerFacts {
        let instance = format!("{}-i{}", self.id, self.life);
        WorkerFacts {
            worker: self.id.clone(),
            instance: InstanceId::parse(&instance).expect("a plain name"),
            name: self.id.to_string(),
            labels: self.labels.clone(),
            slots: self.slots,
            agents: Vec::new(),
            build: "sim".to_owned(),
        }
    }

    /// The state its disk folds to.
    fn folded(&self) -> core::Outbox {
        let mut state = core::Outbox::new(REPORTS_MAX);
        for record in &self.durable {
            state.apply(record.clone());
        }
        state
    }
}

impl World {
    pub(crate) fn worker_now(&self, on: usize) -> clock::Now {
        let host = &self.workers[on].host;
        clock::Now { mono_ms: host.mono_ms(self.now), wall: host.wall(self.now) }
    }

    /// Something of this worker's process happens after a while; nothing, if the process ends first.
    pub(crate) fn on_worker(&mut self, on: usize, after_ms: u64, event: WorkerEvent) {
        let life = self.workers[on].life;
        self.at(self.now + after_ms, Happening::Worker(on, life, Box::new(event)));
    }

    /// A word between the actors of one process: they hear it soon, and in order.
    pub(crate) fn within_worker(&mut self, on: usize, event: WorkerEvent) {
        let soon = self.now + self.chance.below(3);
        let worker = &mut self.workers[on];
        worker.lane_ms = worker.lane_ms.max(soon);
        let (at, life) = (worker.lane_ms, worker.life);
        self.at(at, Happening::Worker(on, life, Box::new(event)));
    }

    pub(crate) fn worker_starts(&mut self, on: usize) {
        if self.workers[on].up {
            return;
        }
        if self.bug == Some(Bug::OutboxForgets) {
            self.workers[on].durable.retain(|record| !matches!(record, Record::Reported { .. }));
        }
        self.workers[on].life += 1;
        self.workers[on].up = true;
        let state = self.workers[on].folded();
        self.workers[on].process = Process::new(state, self.workers[on].slots);
        self.report_orphans(on);
        let (id, life) = (self.workers[on].id.clone(), self.workers[on].life);
        self.note(|| format!("{id} starts ({life})"));
        self.on_worker(on, 1, WorkerEvent::Dial);
    }

    /// What the process before held ended with it; that is on the disk before anything else begins.
    fn report_orphans(&mut self, on: usize) {
        for lease in self.workers[on].process.disk.state.live() {
            let fact = attempts::failed(attempts::restarted());
            self.write_now(on, &lease, fact);
        }
    }

    fn write_now(&mut self, on: usize, lease: &Lease, fact: Fact) {
        if let Ok(record) = self.workers[on].process.disk.state.report(lease, fact) {
            self.rules.written(&record);
            let worker = &mut self.workers[on];
            worker.durable.push(record.clone());
            worker.process.disk.state.apply(record);
            worker.process.disk.shown = worker.process.disk.state.clone();
        }
    }

    /// The process is no more; so are its programs. Of what it was writing, all is there or nothing.
    pub(crate) fn worker_dies(&mut self, on: usize, back_ms: u64) {
        if !self.workers[on].up {
            return;
        }
        let id = self.workers[on].id.clone();
        self.note(|| format!("{id} dies"));
        if self.chance.once_in(2) {
            self.keep_batch(on);
        }
        for conn in self.conns_of(Some(on)) {
            self.worker_hangs_up(conn);
        }
        self.workers[on].up = false;
        self.workers[on].disk_fails = false;
        self.at(self.now + back_ms, Happening::WorkerStarts(on));
    }

    pub(crate) fn worker_event(&mut self, on: usize, event: WorkerEvent) {
        match event {
            WorkerEvent::Synced => self.outbox_synced(on),
            WorkerEvent::Order(order) => self.ordered(on, order),
            WorkerEvent::Attempts(mail) => self.attempts_mail(on, mail),
            WorkerEvent::Attempt(lease, mail) => self.attempt_mail(on, &lease, mail),
            WorkerEvent::Step(lease, step, done) => self.step_done(on, &lease, step, done),
            WorkerEvent::Alarm(lease, due) => self.attempt_alarm(on, &lease, due),
            WorkerEvent::Dial => self.dials(on),
            WorkerEvent::GreetDue(conn) => self.greet_due(on, conn),
            WorkerEvent::Beat(conn) => self.beats(on, conn),
            WorkerEvent::Retry(conn) => self.retries(on, conn),
            WorkerEvent::Farewell => self.says_goodbye(on),
        }
    }
}

impl Process {
    /// Whether it holds or owes anything.
    pub(crate) fn is_busy(&self) -> bool {
        let shown = &self.disk.shown;
        !shown.unanswered().is_empty()
            || !shown.live().is_empty()
            || !self.attempts.running.is_empty()
            || !self.attempts.waiting.is_empty()
    }

    /// What it holds and owes, in words.
    pub(crate) fn state(&self) -> String {
        let shown = &self.disk.shown;
        format!(
            "attached {}, live {:?}, unanswered {}, running {:?}, waiting {}",
            self.link.is_attached(),
            shown.live(),
            shown.unanswered().len(),
            self.attempts.running.keys().collect::<Vec<_>>(),
            self.attempts.waiting.len(),
        )
    }
}

//! The thread that owns a worker's outbox: what waits is decided, written as one batch, and only then
//! answered and shown.
//!
//! Not here: the decisions (the core), and bytes on a disk (the real outbox and its tests).

use std::collections::VecDeque;

use ganger_shared::link::{Anchor, Answer, Fact, Lease};
use ganger_shared::spec::Assignment;
use ganger_worker_core::outbox::{self as core, NotAccepted, Record};

use super::WorkerEvent;
use super::attempts::AttemptsMail;
use crate::world::World;

/// Orders written as one batch.
const BATCH_MAX: usize = 64;
/// Records after which all is said anew; small, so that it happens.
const RECORDS_MAX: usize = 120;

/// What the outbox is asked to do.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Accept(Box<Assignment>),
    /// A fact, and who waits until it is durable.
    Report(Lease, Box<Fact>, Waits),
    Decline(Lease, Box<Fact>),
    Answered(Lease, u32, Answer, Option<Anchor>),
    Shown(Anchor),
}

/// Who waits for a report to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The attempt itself.
    Attempt,
    /// The attempts' supervisor.
    Attempts,
}

/// What is told once a batch is durable.
#[derive(Debug)]
pub(super) enum Then {
    Accepted(Box<Assignment>, Result<(), NotAccepted>),
    Reported(Lease, Waits),
}

/// The outbox of one process.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Ahead of the disk by what is being written.
    pub(crate) state: core::Outbox,
    /// What everybody else sees: all of it durable.
    pub(crate) shown: core::Outbox,
    orders: VecDeque<Order>,
    writing: Option<(Vec<Record>, Vec<Then>)>,
}

impl Disk {
    pub(super) fn new(state: core::Outbox) -> Self {
        Self { shown: state.clone(), state, orders: VecDeque::new(), writing: None }
    }
}

impl World {
    /// Orders reach the thread as they were given.
    pub(crate) fn order(&mut self, on: usize, order: Order) {
        self.within_worker(on, WorkerEvent::Order(order));
    }

    pub(super) fn ordered(&mut self, on: usize, order: Order) {
        self.workers[on].process.disk.orders.push_back(order);
        self.begin_batch(on);
    }

    fn begin_batch(&mut self, on: usize) {
        let disk = &mut self.workers[on].process.disk;
        if disk.writing.is_some() || disk.orders.is_empty() {
            return;
        }
        let (mut records, mut thens) = (Vec::new(), Vec::new());
        for _ in 0..disk.orders.len().min(BATCH_MAX) {
            let Some(order) = disk.orders.pop_front() else { break };
            let (decided, then) = decide(&disk.state, order);
            for record in decided {
                disk.state.apply(record.clone());
                records.push(record);
            }
            thens.extend(then);
        }
        let sync = if records.is_empty() { 0 } else { self.chance.within(1, 6) };
        self.workers[on].process.disk.writing = Some((records, thens));
        self.on_worker(on, sync, WorkerEvent::Synced);
    }

    pub(super) fn outbox_synced(&mut self, on: usize) {
        if std::mem::take(&mut self.workers[on].disk_fails) {
            let back = self.chance.within(100, 3_000);
            return self.worker_dies(on, back);
        }
        let thens = self.keep_batch(on);
        for then in thens {
            self.outbox_tells(on, then);
        }
        self.begin_batch(on);
        self.sends_reports(on);
        self.says_goodbye_if_done(on);
    }

    /// What was being written is on the disk.
    pub(super) fn keep_batch(&mut self, on: usize) -> Vec<Then> {
        let worker = &mut self.workers[on];
        let Some((records, thens)) = worker.process.disk.writing.take() else { return Vec::new() };
        for record in &records {
            self.rules.written(record);
        }
        let changed = !records.is_empty();
        worker.durable.extend(records);
        if changed {
            worker.process.disk.shown = worker.process.disk.state.clone();
        }
        if worker.durable.len() >= RECORDS_MAX {
            // Written beside the old lines, which go only then.
            worker.durable = worker.process.disk.state.anew();
        }
        thens
    }

    fn outbox_tells(&mut self, on: usize, then: Then) {
        match then {
            Then::Accepted(assignment, held) => self.accepted(on, assignment, held),
            Then::Reported(lease, Waits::Attempt) => self.attempt_reported(on, &lease),
            Then::Reported(lease, Waits::Attempts) => {
                self.within_worker(on, WorkerEvent::Attempts(AttemptsMail::Reported(lease)));
            }
        }
    }
}

fn decide(state: &core::Outbox, order: Order) -> (Vec<Record>, Option<Then>) {
    match order {
        Order::Accept(assignment) => match state.accept(&assignment) {
            Ok(records) => (records, Some(Then::Accepted(assignment, Ok(())))),
            Err(why) => (Vec::new(), Some(Then::Accepted(assignment, Err(why)))),
        },
        Order::Report(lease, fact, waits) => {
            let records = state.report(&lease, *fact).into_iter().collect();
            (records, Some(Then::Reported(lease, waits)))
        }
        Order::Decline(lease, fact) => (state.decline(&lease, *fact).unwrap_or_default(), None),
        Order::Answered(lease, number, answer, anchor) => {
            let seen = anchor.and_then(|anchor| state.shown(&anchor));
            (state.answered(&lease, number, answer).into_iter().chain(seen).collect(), None)
        }
        Order::Shown(anchor) => (state.shown(&anchor).into_iter().collect(), None),
    }
}

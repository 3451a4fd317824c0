//! A worker's connection to its coordinator: plays the link actor and the session it runs.
//!
//! Not here: how words travel (`net.rs`).

use std::collections::{BTreeSet, VecDeque};

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{
    Anchor, Answer, Beat, CoordinatorSays, Hello, Lease, PROTOCOL, PROTOCOL_MIN, Progress, Report,
    StopReason, Welcome, WorkerSays,
};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use ganger_worker_core::outbox::NotAccepted;
use ganger_worker_core::outbox::lease_of;
use ganger_worker_core::slots::Intake;

use super::WorkerEvent;
use super::attempts::{AttemptsMail, failed, stopped};
use super::outbox::Order;
use crate::bug::Bug;
use crate::world::World;

const GREET_MS: u64 = 3_000;
const RETRY_LATER_MS: u64 = 1_000;
const REDIAL_MIN_MS: u64 = 50;
const REDIAL_MAX_MS: u64 = 2_000;

/// What the link owns.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) conn: Option<u64>,
    /// How often this coordinator wants a beat; absent before its welcome.
    beat_ms: Option<u64>,
    lease_ms: Option<DurationMs>,
    failures: u32,
    /// Every report made up to here was sent on this connection.
    sent: u64,
    again: BTreeSet<u64>,
    later: BTreeSet<u64>,
    /// Assignments on their way to the disk.
    accepting: usize,
    /// Of them, what a planted mistake forgets.
    forgotten: usize,
    inbound: VecDeque<CoordinatorSays>,
    pub(crate) may_leave: bool,
}

impl Link {
    pub(crate) fn is_attached(&self) -> bool {
        self.beat_ms.is_some()
    }
}

impl World {
    pub(super) fn dials(&mut self, on: usize) {
        if self.workers[on].process.link.conn.is_some() {
            return;
        }
        let life = self.workers[on].life;
        let conn = self.dial(on, life);
        let worker = &mut self.workers[on];
        let shown = &worker.process.disk.shown;
        let hello = Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL,
            facts: worker.facts(),
            live: shown.live(),
            finished: shown.finished(),
            seen: shown.seen().cloned(),
            sent_at: worker.host.wall(self.now),
        };
        worker.process.link.conn = Some(conn);
        self.say_up(conn, WorkerSays::Hello(Box::new(hello)));
        self.on_worker(on, GREET_MS, WorkerEvent::GreetDue(conn));
    }

    pub(super) fn greet_due(&mut self, on: usize, conn: u64) {
        let link = &self.workers[on].process.link;
        if link.conn == Some(conn) && !link.is_attached() {
            self.worker_hangs_up(conn);
            self.link_lost(on, conn);
        }
    }

    /// The connection is over; what is on its way to the disk begins all the same.
    pub(crate) fn link_lost(&mut self, on: usize, conn: u64) {
        let link = &mut self.workers[on].process.link;
        if link.conn != Some(conn) {
            return;
        }
        link.conn = None;
        link.beat_ms = None;
        link.inbound.clear();
        if self.bug == Some(Bug::AcceptedIsForgotten) {
            link.forgotten = link.accepting;
        }
        let grown = (REDIAL_MIN_MS << link.failures.min(16)).min(REDIAL_MAX_MS);
        link.failures = link.failures.saturating_add(1);
        if let Some(lease_ms) = link.lease_ms {
            self.within_worker(on, WorkerEvent::Attempts(AttemptsMail::CutOff { lease_ms }));
        }
        let wait = grown / 2 + self.chance.below(grown / 2 + 1);
        self.on_worker(on, wait, WorkerEvent::Dial);
    }

    pub(crate) fn worker_hears(&mut self, on: usize, conn: u64, says: CoordinatorSays) {
        if self.workers[on].process.link.conn == Some(conn) {
            self.workers[on].process.link.inbound.push_back(says);
            self.hear_on(on);
        }
    }

    /// What ends a lease waits until what was assigned before is on the disk.
    fn hear_on(&mut self, on: usize) {
        loop {
            let link = &mut self.workers[on].process.link;
            let waits = link.accepting > 0;
            let ends = match link.inbound.front() {
                None => return,
                Some(CoordinatorSays::Stop { .. }) => true,
                Some(CoordinatorSays::Answered { answer, .. }) => {
                    !matches!(answer, Answer::Recorded | Answer::RetryLater)
                }
                Some(
                    CoordinatorSays::Welcome(_)
                    | CoordinatorSays::Keep(_)
                    | CoordinatorSays::Assign(_)
                    | CoordinatorSays::Goodbye { .. },
                ) => false,
            };
            if waits && ends {
                return;
            }
            if let Some(says) = link.inbound.pop_front() {
                self.hears(on, says);
            }
        }
    }

    fn hears(&mut self, on: usize, says: CoordinatorSays) {
        match says {
            CoordinatorSays::Welcome(welcome) => self.welcomed(on, welcome),
            CoordinatorSays::Keep(_) => {}
            CoordinatorSays::Assign(assignment) => {
                self.workers[on].process.link.accepting += 1;
                self.order(on, Order::Accept(assignment));
            }
            CoordinatorSays::Stop { lease, reason, now } => {
                if self.workers[on].process.disk.shown.is_live(&lease) {
                    let stop = AttemptsMail::Stop { lease, reason, now };
                    self.within_worker(on, WorkerEvent::Attempts(stop));
                } else {
                    self.order(on, Order::Decline(lease, Box::new(stopped())));
                }
            }
            CoordinatorSays::Answered { lease, number, answer, anchor } => {
                self.answered(on, &lease, number, (answer, anchor));
            }
            CoordinatorSays::Goodbye { .. } => {
                if let Some(conn) = self.workers[on].process.link.conn {
                    self.worker_hangs_up(conn);
                    self.link_lost(on, conn);
                }
            }
        }
    }

    fn welcomed(&mut self, on: usize, welcome: Welcome) {
        let Welcome { beat_ms, lease_ms, anchor, .. } = welcome;
        self.order(on, Order::Shown(anchor));
        let link = &mut self.workers[on].process.link;
        let Some(conn) = link.conn else { return };
        link.beat_ms = Some(beat_ms.0);
        link.lease_ms = Some(lease_ms);
        link.failures = 0;
        link.sent = 0;
        link.again.clear();
        link.later.clear();
        self.within_worker(on, WorkerEvent::Attempts(AttemptsMail::Attached));
        self.on_worker(on, 0, WorkerEvent::Beat(conn));
        self.on_worker(on, RETRY_LATER_MS, WorkerEvent::Retry(conn));
        self.sends_reports(on);
    }

    /// The oldest assignment on its way is on the disk, or is not taken.
    pub(super) fn accepted(
        &mut self,
        on: usize,
        assignment: Box<Assignment>,
        held: Result<(), NotAccepted>,
    ) {
        let link = &mut self.workers[on].process.link;
        link.accepting = link.accepting.saturating_sub(1);
        let lease = lease_of(&assignment);
        let forgotten = link.forgotten > 0;
        link.forgotten = link.forgotten.saturating_sub(1);
        let begins = match held {
            Ok(()) => !forgotten,
            Err(NotAccepted::Repeated { .. }) => self.bug == Some(Bug::RepeatedAssignBegins),
            Err(NotAccepted::Stale { .. }) => false,
            Err(full @ NotAccepted::Full { .. }) => {
                let failure = Failure::new(FailureClass::PreflightFailed, full.to_string());
                self.order(on, Order::Decline(lease, Box::new(failed(failure))));
                false
            }
        };
        if begins {
            self.within_worker(on, WorkerEvent::Attempts(AttemptsMail::Begin(assignment)));
        }
        self.hear_on(on);
    }

    fn answered(
        &mut self,
        on: usize,
        lease: &Lease,
        number: u32,
        (answer, anchor): (Answer, Option<Anchor>),
    ) {
        let process = &mut self.workers[on].process;
        if !answer.settles() {
            let same = |report: &Report| report.lease == *lease && report.number == number;
            let unanswered = process.disk.shown.unanswered();
            let waiting = unanswered.iter().find(|waiting| same(&waiting.report));
            process.link.later.extend(waiting.map(|waiting| waiting.order));
        }
        if process.disk.shown.is_disowned(lease, answer) {
            let (lease, reason) = (lease.clone(), StopReason::Revoked);
            let stop = AttemptsMail::Stop { lease, reason, now: false };
            self.within_worker(on, WorkerEvent::Attempts(stop));
        }
        self.order(on, Order::Answered(lease.clone(), number, answer, anchor));
    }

    /// Sends what was not sent on this connection, in the order it was reported.
    pub(super) fn sends_reports(&mut self, on: usize) {
        let process = &mut self.workers[on].process;
        let (Some(conn), true) = (process.link.conn, process.link.is_attached()) else { return };
        let link = &mut process.link;
        let mut due: Vec<Report> = Vec::new();
        for waiting in process.disk.shown.unanswered() {
            if waiting.order > link.sent || link.again.contains(&waiting.order) {
                link.sent = link.sent.max(waiting.order);
                due.push(waiting.report.clone());
            }
        }
        link.again.clear();
        for report in due {
            self.say_up(conn, WorkerSays::Report(Box::new(report)));
        }
    }

    pub(super) fn retries(&mut self, on: usize, conn: u64) {
        let link = &mut self.workers[on].process.link;
        if link.conn == Some(conn) && link.is_attached() {
            let mut later = std::mem::take(&mut link.later);
            link.again.append(&mut later);
            self.sends_reports(on);
            self.on_worker(on, RETRY_LATER_MS, WorkerEvent::Retry(conn));
        }
    }

    pub(super) fn beats(&mut self, on: usize, conn: u64) {
        let worker = &self.workers[on];
        let link = &worker.process.link;
        let (true, Some(beat_ms)) = (link.conn == Some(conn), link.beat_ms) else { return };
        let shown = &worker.process.disk.shown;
        let progress = |lease: Lease| Progress {
            lease,
            phase: String::new(),
            lines: 0,
            quiet_ms: DurationMs(0),
            last_line: String::new(),
        };
        let attempts = &worker.process.attempts;
        let busy = u32::try_from(attempts.slots.busy_attempts()).unwrap_or(u32::MAX);
        let beat = Beat {
            live: shown.live().into_iter().map(progress).collect(),
            busy: if shown.is_full() { worker.slots } else { busy },
            sent_at: worker.host.wall(self.now),
            draining: attempts.slots.intake() != Intake::Open,
        };
        self.say_up(conn, WorkerSays::Beat(beat));
        self.on_worker(on, beat_ms, WorkerEvent::Beat(conn));
    }

    /// Everything has ended; once the reports are answered, or after a while, the worker leaves.
    pub(super) fn says_goodbye_if_done(&mut self, on: usize) {
        let process = &self.workers[on].process;
        if process.link.may_leave && process.disk.shown.unanswered().is_empty() {
            self.says_goodbye(on);
        }
    }

    pub(super) fn says_goodbye(&mut self, on: usize) {
        if let Some(conn) = self.workers[on].process.link.conn {
            let reason = "the worker's process ends".to_owned();
            self.say_up(conn, WorkerSays::Goodbye { reason });
        }
        let back = self.chance.within(100, 8_000);
        self.worker_dies(on, back);
    }
}

//! Plays the session of one attached worker: what it says goes to the run it is about.

use ganger_coordinator_core::run::Verb;
use ganger_shared::actor::Actor;
use ganger_shared::ids::{InstanceId, WorkerId};
use ganger_shared::link::{
    Answer, CoordinatorSays, Hello, Lease, PROTOCOL, Report, StopReason, Welcome, WorkerSays,
};

use super::fleet::FleetMail;
use super::run::{Asked, ReplyTo};
use super::runs::RunsMail;
use super::{Mail, limits};
use crate::world::World;

/// What a session is told.
#[derive(Debug)]
pub(crate) enum SessionMail {
    Heard(Box<WorkerSays>),
    Ended,
    Expect { runs: usize, unknown: Vec<Lease> },
    Reconciled { keep: Vec<Lease>, revoke: Vec<Lease> },
}

/// What a session owns.
#[derive(Debug)]
pub(crate) struct SessionRoom {
    worker: WorkerId,
    instance: InstanceId,
    said_goodbye: bool,
    awaited: Option<usize>,
    heard_from: usize,
}

impl World {
    /// The first word opens a session, if the journal holds all that the worker was ever shown.
    pub(crate) fn coordinator_hears(&mut self, conn: u64, says: WorkerSays) {
        if !self.coordinator.up {
            return self.coordinator_hangs_up(conn);
        }
        match says {
            WorkerSays::Hello(hello) => {
                let here = self.coordinator.journal.anchor().log_seq;
                let seen = hello.seen.as_ref().map_or(0, |seen| seen.log_seq);
                if seen > here {
                    let name = &hello.facts.name;
                    let lost = format!("{name} was shown entry {seen}, the journal ends at {here}");
                    self.rules.broken(lost);
                }
                self.tell_fleet(FleetMail::Attach { hello, conn });
            }
            other @ (WorkerSays::Beat(_) | WorkerSays::Report(_) | WorkerSays::Goodbye { .. }) => {
                self.post(Mail::Session(conn, SessionMail::Heard(Box::new(other))));
            }
        }
    }

    pub(super) fn session_begins(&mut self, conn: u64, hello: &Hello) {
        let limits = limits();
        let welcome = Welcome {
            protocol: PROTOCOL,
            beat_ms: limits.beat_ms,
            lease_ms: limits.lease_ms,
            anchor: self.coordinator.journal.anchor(),
        };
        let room = SessionRoom {
            worker: hello.facts.worker.clone(),
            instance: hello.facts.instance.clone(),
            said_goodbye: false,
            awaited: None,
            heard_from: 0,
        };
        self.hub().sessions.insert(conn, room);
        self.say_down(conn, CoordinatorSays::Welcome(welcome));
    }

    /// Ends a session from this side.
    pub(super) fn hang_up(&mut self, conn: u64) {
        self.coordinator_hangs_up(conn);
        self.session_ended(conn);
    }

    /// The stream is over, however that came.
    pub(crate) fn session_ended(&mut self, conn: u64) {
        if self.coordinator.up && self.hub().sessions.contains_key(&conn) {
            self.post(Mail::Session(conn, SessionMail::Ended));
        }
    }

    pub(super) fn session_mail(&mut self, conn: u64, mail: SessionMail) {
        let Some(room) = self.hub().sessions.get_mut(&conn) else { return };
        let (worker, instance) = (room.worker.clone(), room.instance.clone());
        match mail {
            SessionMail::Heard(says) => match *says {
                WorkerSays::Hello(_) => self.hang_up(conn),
                WorkerSays::Beat(beat) => {
                    self.tell_fleet(FleetMail::Beat { worker, instance, beat: Box::new(beat) });
                }
                WorkerSays::Report(report) => self.reported(conn, &worker, *report),
                WorkerSays::Goodbye { .. } => room.said_goodbye = true,
            },
            SessionMail::Ended => {
                let goodbye = room.said_goodbye;
                self.hub().sessions.remove(&conn);
                self.tell_fleet(FleetMail::Detached { worker, session: conn, goodbye });
            }
            SessionMail::Expect { runs, unknown } => {
                room.awaited = Some(runs);
                self.revoke(conn, unknown);
                self.open_if_reconciled(conn);
            }
            SessionMail::Reconciled { keep, revoke } => {
                room.heard_from += 1;
                for lease in keep {
                    self.say_down(conn, CoordinatorSays::Keep(lease));
                }
                self.revoke(conn, revoke);
                self.open_if_reconciled(conn);
            }
        }
    }

    fn reported(&mut self, conn: u64, worker: &WorkerId, report: Report) {
        let Report { lease, number, .. } = &report;
        let reply = ReplyTo::Worker { conn, lease: lease.clone(), number: *number };
        let (by, run) = (Actor::Worker(worker.to_string()), lease.run.clone());
        let asked = Box::new(Asked { by, verb: Verb::Report(Box::new(report)), reply });
        self.post(Mail::Runs(RunsMail::Tell { run, asked }));
    }

    pub(super) fn answer_report(
        &mut self,
        conn: u64,
        (lease, number): (&Lease, u32),
        answer: Answer,
    ) {
        self.rules.answered((lease, number), answer);
        self.note(|| format!("{} @{} report {number}: {answer:?}", lease.work, lease.epoch));
        let anchor = answer.settles().then(|| self.coordinator.journal.anchor());
        let lease = lease.clone();
        self.say_down(conn, CoordinatorSays::Answered { lease, number, answer, anchor });
    }

    pub(super) fn revoke(&mut self, conn: u64, leases: Vec<Lease>) {
        for lease in leases {
            let reason = StopReason::Revoked;
            self.say_down(conn, CoordinatorSays::Stop { lease, reason, now: true });
        }
    }

    fn open_if_reconciled(&mut self, conn: u64) {
        let Some(room) = self.hub().sessions.get(&conn) else { return };
        if room.awaited == Some(room.heard_from) {
            let (worker, instance) = (room.worker.clone(), room.instance.clone());
            self.tell_fleet(FleetMail::Reconciled { worker: worker.clone(), instance });
            self.post(Mail::Runs(RunsMail::Attached { worker }));
        }
    }
}

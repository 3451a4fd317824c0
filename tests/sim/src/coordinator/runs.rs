//! Plays the actor of all runs: finds them, starts their actors, and makes a submit happen once.

use std::collections::{BTreeMap, BTreeSet};

use ganger_coordinator_core::fleet::Inventory;
use ganger_coordinator_core::run::{Reply, Verb};
use ganger_shared::actor::Actor;
use ganger_shared::ids::{IdempotencyKey, InstanceId, RunId, WorkerId};
use ganger_shared::link::{Answer, Lease};
use ganger_shared::rejection::Rejection;

use super::Mail;
use super::fleet::FleetMail;
use super::run::{Asked, ReplyTo, RunMail, RunRoom};
use super::session::SessionMail;
use crate::world::World;

/// What the runs are told.
#[derive(Debug)]
pub(crate) enum RunsMail {
    Standing { run: RunId, known: bool, calls: Vec<IdempotencyKey> },
    Submit { new: RunId, key: IdempotencyKey, asked: Box<Asked> },
    Call { run: RunId, asked: Box<Asked> },
    Tell { run: RunId, asked: Box<Asked> },
    Reconcile { worker: WorkerId, instance: InstanceId, runs: Vec<Inventory>, conn: u64 },
    Attached { worker: WorkerId },
    Owed { run: RunId },
}

/// What they own.
#[derive(Debug, Default)]
pub(crate) struct RunsRoom {
    known: BTreeSet<RunId>,
    folding: BTreeSet<RunId>,
    pub(crate) opened: bool,
    submits: BTreeMap<IdempotencyKey, RunId>,
    parked: Vec<RunsMail>,
}

impl World {
    pub(super) fn runs_open(&mut self) {
        let all: Vec<RunId> = self.coordinator.journal.runs.keys().cloned().collect();
        self.hub().runs.folding = all.iter().cloned().collect();
        for run in all {
            self.start_run(&run);
        }
        self.open_if_folded();
    }

    fn start_run(&mut self, run: &RunId) {
        let folded = self.folded(run);
        self.rules.restarted(run, &folded);
        self.hub().rooms.insert(run.clone(), RunRoom::of(folded));
        self.announce(run);
        self.hand_out_all(run);
        self.set_run_alarm(run);
    }

    fn open_if_folded(&mut self) {
        let runs = &mut self.hub().runs;
        if !runs.opened && runs.folding.is_empty() {
            runs.opened = true;
            let parked = std::mem::take(&mut runs.parked);
            self.tell_fleet(FleetMail::Open);
            for mail in parked {
                self.post(Mail::Runs(mail));
            }
        }
    }

    pub(super) fn runs_mail(&mut self, mail: RunsMail) {
        let waits = matches!(mail, RunsMail::Submit { .. } | RunsMail::Call { .. });
        if waits && !self.hub().runs.opened {
            self.hub().runs.parked.push(mail);
            return;
        }
        match mail {
            RunsMail::Standing { run, known, calls } => self.standing(&run, known, calls),
            RunsMail::Submit { new, key, asked } => self.submit(new, key, asked),
            RunsMail::Call { run, asked } => {
                if self.hub().rooms.contains_key(&run) {
                    return self.post(Mail::Run(run, RunMail::Ask(asked)));
                }
                if let ReplyTo::Caller(call) = asked.reply {
                    let unknown = Rejection::UnknownRun { run: run.to_string() };
                    self.reply_to_caller(call, &run, Reply::Rejected(unknown));
                }
            }
            RunsMail::Tell { run, asked } => {
                if self.hub().rooms.contains_key(&run) {
                    self.post(Mail::Run(run, RunMail::Ask(asked)));
                } else if let ReplyTo::Worker { conn, lease, number } = asked.reply {
                    self.answer_report(conn, (&lease, number), Answer::UnknownRun);
                }
            }
            RunsMail::Reconcile { worker, instance, runs, conn } => {
                self.ask_runs((&worker, &instance), runs, conn);
            }
            RunsMail::Attached { worker } => {
                let all: Vec<RunId> = self.hub().rooms.keys().cloned().collect();
                for run in all {
                    self.post(Mail::Run(run, RunMail::Attached { worker: worker.clone() }));
                }
            }
            RunsMail::Owed { run } => {
                if self.hub().rooms.contains_key(&run) {
                    self.post(Mail::Run(run, RunMail::HandOut));
                }
            }
        }
    }

    fn standing(&mut self, run: &RunId, known: bool, calls: Vec<IdempotencyKey>) {
        let runs = &mut self.hub().runs;
        for key in calls {
            runs.submits.entry(key).or_insert_with(|| run.clone());
        }
        if known {
            runs.known.insert(run.clone());
        }
        if runs.folding.remove(run) {
            self.open_if_folded();
        }
    }

    /// A key that was used before leads to the run it made.
    fn submit(&mut self, new: RunId, key: IdempotencyKey, mut asked: Box<Asked>) {
        let run = self.hub().runs.submits.entry(key).or_insert(new).clone();
        if let Verb::Submit { submitted, .. } = &mut asked.verb {
            submitted.run = run.clone();
        }
        if !self.hub().rooms.contains_key(&run) {
            self.hub().rooms.insert(run.clone(), RunRoom::default());
        }
        self.post(Mail::Run(run, RunMail::Ask(asked)));
    }

    /// A run whose submit was refused: whoever tries again begins it again.
    pub(super) fn run_never_was(&mut self, run: &RunId) {
        self.hub().rooms.remove(run);
        if !self.hub().runs.known.contains(run) {
            self.hub().runs.submits.retain(|_, made| made != run);
        }
    }

    fn ask_runs(
        &mut self,
        (worker, instance): (&WorkerId, &InstanceId),
        runs: Vec<Inventory>,
        conn: u64,
    ) {
        let mut asked = 0;
        let mut unknown: Vec<Lease> = Vec::new();
        for Inventory { run, live, finished } in runs {
            if !self.hub().rooms.contains_key(&run) {
                unknown.extend(live);
                continue;
            }
            let (worker, instance) = (worker.clone(), instance.clone());
            let by = Actor::Worker(worker.to_string());
            let verb = Verb::Reconcile { worker, instance, live, finished };
            let ask = Asked { by, verb, reply: ReplyTo::Session(conn) };
            self.post(Mail::Run(run, RunMail::Ask(Box::new(ask))));
            asked += 1;
        }
        self.post(Mail::Session(conn, SessionMail::Expect { runs: asked, unknown }));
    }
}

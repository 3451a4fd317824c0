//! Plays the fleet's actor: hosts the fleet's core and carries its answers out.

use std::collections::BTreeMap;

use ganger_coordinator_core::fleet::{
    Attached, Fleet, Folded, HeldClaim, Input, Inventory, Now, Output, Wanted,
};
use ganger_coordinator_core::run::{EffectId, SlotWant, Verb};
use ganger_shared::actor::Actor;
use ganger_shared::ids::{InstanceId, ProjectId, RunId, WorkerId};
use ganger_shared::link::{Beat, CoordinatorSays, Hello, Lease};

use super::run::{Asked, ReplyTo, RunMail};
use super::runs::RunsMail;
use super::{CoordinatorEvent, Mail, limits};
use crate::bug::Bug;
use crate::world::World;

/// A tick this much later than it was due means that the process stood still.
const STOOD_STILL_MS: u64 = 1_000;
/// The longest wait for a tick.
const TICK_MS: u64 = 1_000;

/// What the fleet is told.
#[derive(Debug)]
pub(crate) enum FleetMail {
    Open,
    Attach {
        hello: Box<Hello>,
        conn: u64,
    },
    Detached {
        worker: WorkerId,
        session: u64,
        goodbye: bool,
    },
    Beat {
        worker: WorkerId,
        instance: InstanceId,
        beat: Box<Beat>,
    },
    Reconciled {
        worker: WorkerId,
        instance: InstanceId,
    },
    RunUp {
        folded: Box<Folded>,
        project: ProjectId,
        priority: i32,
    },
    RunDown {
        run: RunId,
    },
    Want {
        run: RunId,
        id: EffectId,
        want: Box<SlotWant>,
    },
    Claim(Box<HeldClaim>),
    Gone {
        run: RunId,
        id: EffectId,
    },
    LeaseGone {
        lease: Lease,
    },
    OfferTaken {
        token: u64,
        lease: Lease,
    },
    OfferDeclined {
        token: u64,
    },
    Say {
        worker: WorkerId,
        says: Box<CoordinatorSays>,
    },
    /// Somebody closes a worker, or opens it again.
    Mark(Input),
    Tick,
}

/// What the fleet's actor owns.
#[derive(Debug)]
pub(crate) struct FleetRoom {
    pub(crate) core: Fleet,
    seats: BTreeMap<RunId, (ProjectId, i32)>,
    /// Each attached worker's stream.
    pub(crate) streams: BTreeMap<WorkerId, u64>,
    alarm: Option<u64>,
    alarms: u64,
}

impl FleetRoom {
    pub(super) fn new(first_token: u64) -> Self {
        Self {
            core: Fleet::new(&limits(), first_token),
            seats: BTreeMap::new(),
            streams: BTreeMap::new(),
            alarm: None,
            alarms: 0,
        }
    }
}

impl World {
    fn fleet_now(&self) -> Now {
        Now { ms: self.mono_ms(), at: self.coordinator.host.wall(self.now) }
    }

    /// Workers of earlier starts are remembered.
    pub(super) fn fleet_begins(&mut self) {
        let now = self.fleet_now();
        let facts = self.coordinator.journal.fleet.clone();
        for fact in facts {
            self.hub().fleet.core.remember(now, &fact);
        }
    }

    fn tell(&mut self, input: Input) {
        let now = self.fleet_now();
        let outputs = self.hub().fleet.core.handle(now, input);
        for output in outputs {
            self.carry_out(output);
        }
    }

    pub(super) fn fleet_mail(&mut self, mail: FleetMail) {
        match mail {
            FleetMail::Open => self.tell(Input::Open),
            FleetMail::Attach { hello, conn } => self.attach(&hello, conn),
            FleetMail::Detached { worker, session, goodbye } => {
                if self.hub().fleet.streams.get(&worker) == Some(&session) {
                    self.hub().fleet.streams.remove(&worker);
                }
                self.tell(Input::Detached { worker, session, goodbye });
            }
            FleetMail::Beat { worker, instance, beat } => {
                self.rules.beaten(self.now, &beat);
                self.tell(Input::Beat { worker, instance, beat });
            }
            FleetMail::Reconciled { worker, instance } => {
                self.tell(Input::Reconciled { worker, instance });
            }
            FleetMail::RunUp { folded, project, priority } => {
                self.hub().fleet.seats.insert(folded.run.clone(), (project, priority));
                self.tell(Input::Folded(folded));
            }
            FleetMail::RunDown { run } => self.run_down(&run),
            FleetMail::Want { run, id, want } => self.want(run, id, *want),
            FleetMail::Claim(claim) => self.tell(Input::ClaimHeld(claim)),
            FleetMail::Gone { run, id } => self.effect_gone(run, id),
            FleetMail::LeaseGone { lease } => self.tell(Input::LeaseGone(lease)),
            FleetMail::OfferTaken { token, lease } => self.tell(Input::OfferTaken { token, lease }),
            FleetMail::OfferDeclined { token } => self.tell(Input::OfferDeclined { token }),
            FleetMail::Say { worker, says } => {
                if let Some(conn) = self.hub().fleet.streams.get(&worker).copied() {
                    self.say_down(conn, *says);
                }
            }
            FleetMail::Mark(how) => self.tell(how),
            FleetMail::Tick => self.tell(Input::Tick),
        }
        self.set_fleet_alarm();
    }

    fn attach(&mut self, hello: &Hello, conn: u64) {
        let listens = self.net.conns.get(&conn).is_some_and(|conn| conn.coordinator_listens);
        let worker = hello.facts.worker.clone();
        let before = self.hub().fleet.streams.insert(worker.clone(), conn);
        let attached = Attached {
            facts: hello.facts.clone(),
            session: conn,
            live: hello.live.clone(),
            finished: hello.finished.clone(),
        };
        let now = self.fleet_now();
        let outputs = self.hub().fleet.core.handle(now, Input::Attached(Box::new(attached)));
        let refused =
            |output: &Output| matches!(output, Output::Refuse { session, .. } if *session == conn);
        if outputs.iter().any(refused) {
            self.hub().fleet.streams.remove(&worker);
            if let Some(before) = before {
                self.hub().fleet.streams.insert(worker, before);
            }
            self.coordinator_hangs_up(conn);
        } else {
            if let Some(before) = before {
                self.hang_up(before);
            }
            self.session_begins(conn, hello);
            if !listens {
                self.session_ended(conn);
            }
        }
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn want(&mut self, run: RunId, id: EffectId, want: SlotWant) {
        let Some((project, run_priority)) = self.hub().fleet.seats.get(&run).cloned() else {
            return;
        };
        self.tell(Input::Want(Box::new(Wanted { run, project, run_priority, id, want })));
    }

    fn effect_gone(&mut self, run: RunId, id: EffectId) {
        match id {
            EffectId::WantSlot(..) | EffectId::WantCheck(_) => {
                if self.bug != Some(Bug::WantsStay) {
                    self.tell(Input::Unwant { run, id });
                }
            }
            EffectId::Claim(unit) => self.tell(Input::ClaimReleased { run, unit }),
            EffectId::Assign(..)
            | EffectId::Stop(..)
            | EffectId::Take(_)
            | EffectId::Merge(_)
            | EffectId::Apply(_) => {}
        }
    }

    fn run_down(&mut self, run: &RunId) {
        if self.hub().fleet.seats.remove(run).is_some() {
            let nothing = Folded {
                run: run.clone(),
                wants: Vec::new(),
                claims: Vec::new(),
                leases: Vec::new(),
            };
            self.tell(Input::Folded(Box::new(nothing)));
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Offer { run, offer, lapses_ms } => {
                self.rules.offered(&run, &offer);
                let token = offer.token;
                let reply = ReplyTo::Fleet { token, lapses_ms };
                let by = Actor::Coordinator;
                let asked = Asked { by, verb: Verb::TakeSlot(offer), reply };
                if self.hub().rooms.contains_key(&run) {
                    self.post(Mail::Run(run, RunMail::Ask(Box::new(asked))));
                } else {
                    self.tell_fleet(FleetMail::OfferDeclined { token });
                }
            }
            Output::LeaseEnded { lease, reason } => {
                let Lease { run, work, epoch } = lease;
                let asked = Asked::internal(Verb::LeaseEnded { work, epoch, reason });
                if self.bug != Some(Bug::LeasesNeverEnd) {
                    self.post(Mail::Runs(RunsMail::Tell { run, asked: Box::new(asked) }));
                }
            }
            Output::Unheld { worker, lease, .. } => {
                let Some(conn) = self.hub().fleet.streams.get(&worker).copied() else { return };
                let run = lease.run.clone();
                let reply = ReplyTo::Unheld(conn);
                let verb = Verb::Unheld { worker, lease };
                let asked = Box::new(Asked { by: Actor::Coordinator, verb, reply });
                self.post(Mail::Runs(RunsMail::Tell { run, asked }));
            }
            Output::Reconcile { worker, instance, runs } => self.reconcile(worker, instance, runs),
            Output::Record(event) => self.record_fact(event),
            Output::Superseded { worker, session } => {
                if self.hub().fleet.streams.get(&worker) == Some(&session) {
                    self.hang_up(session);
                }
            }
            Output::Refuse { .. } | Output::StateChanged { .. } => {}
        }
    }

    fn reconcile(&mut self, worker: WorkerId, instance: InstanceId, runs: Vec<Inventory>) {
        if let Some(conn) = self.hub().fleet.streams.get(&worker).copied() {
            self.post(Mail::Runs(RunsMail::Reconcile { worker, instance, runs, conn }));
        }
    }

    pub(super) fn fleet_alarm(&mut self, nth: u64) {
        if self.hub().fleet.alarms != nth {
            return;
        }
        let now = self.mono_ms();
        if let Some(due) = self.hub().fleet.alarm.take()
            && now.saturating_sub(due) > STOOD_STILL_MS
        {
            self.tell(Input::Suspended { by_ms: now - due });
        }
        self.fleet_mail(FleetMail::Tick);
    }

    fn set_fleet_alarm(&mut self) {
        let now = self.mono_ms();
        let fleet = &mut self.hub().fleet;
        let due = fleet.core.next_deadline();
        if let (Some(at), Some(due)) = (fleet.alarm, due)
            && at <= due
        {
            return;
        }
        fleet.alarms += 1;
        fleet.alarm = due.map(|due| due.clamp(now, now + TICK_MS));
        let nth = fleet.alarms;
        if let Some(due) = fleet.alarm {
            self.on_coordinator(due - now, CoordinatorEvent::FleetTick(nth));
        }
    }
}

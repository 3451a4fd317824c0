//! The coordinator: its disk, its machine, and the process that runs on it, which may die at any
//! moment.
//!
//! The roles of the real actors are played by the modules below, with the same cores; each has its
//! mailbox, and which of them comes next is chance. Not here: what the store is made of.

pub(crate) mod fleet;
pub(crate) mod hand_out;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod trees;

use std::collections::{BTreeMap, VecDeque};

use ganger_coordinator_core::run::EffectId;
use ganger_shared::event::FleetEvent;
use ganger_shared::ids::{CommitId, RunId};
use ganger_shared::limits::Limits;
use ganger_shared::time::DurationMs;

use crate::host::Host;
use crate::journal::{Batch, Journal};
use crate::world::{Happening, World};
use fleet::{FleetMail, FleetRoom};
use run::{RunMail, RunRoom};
use runs::{RunsMail, RunsRoom};
use session::{SessionMail, SessionRoom};
use trees::TreesRoom;

/// The lengths of a small fleet: everything happens often.
pub(crate) const BEAT_MS: u64 = 1_000;
pub(crate) const LEASE_MS: u64 = 6_000;
const OFFER_MS: u64 = 400;

/// The coordinator.
#[derive(Debug, Default)]
pub(crate) struct Coordinator {
    pub(crate) host: Host,
    pub(crate) journal: Journal,
    /// The mirror's branches, which outlive the process.
    pub(crate) branches: BTreeMap<RunId, CommitId>,
    pub(crate) life: u64,
    pub(crate) up: bool,
    pub(crate) process: Option<Process>,
    /// The next sync fails, and the process with it.
    pub(crate) sync_fails: bool,
    /// Until when the disk may refuse a batch.
    pub(crate) full_until_ms: u64,
    /// Until when its syncs are slow.
    pub(crate) slow_until_ms: u64,
    /// So many more events, then the process dies.
    pub(crate) dies_after: Option<u64>,
}

/// What dies with the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) fleet: FleetRoom,
    pub(crate) runs: RunsRoom,
    pub(crate) rooms: BTreeMap<RunId, RunRoom>,
    pub(crate) sessions: BTreeMap<u64, SessionRoom>,
    pub(crate) trees: TreesRoom,
    mail: BTreeMap<To, VecDeque<Mail>>,
}

/// Whose mailbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    Fleet,
    Runs,
    Run(RunId),
    Session(u64),
}

/// A message to one of the actors.
#[derive(Debug)]
pub(crate) enum Mail {
    Fleet(FleetMail),
    Runs(RunsMail),
    Run(RunId, RunMail),
    Session(u64, SessionMail),
}

/// What may happen to the coordinator's process.
#[derive(Debug)]
pub(crate) enum CoordinatorEvent {
    /// An actor takes its next message.
    Mail(To),
    /// A sync is done.
    Synced,
    /// A run hears what became of its batch.
    Appended(RunId, bool),
    /// A run's alarm, unless another was set.
    Alarm(RunId, u64),
    /// A refused run hands out again.
    HandOut(RunId),
    /// The fleet's alarm, unless another was set.
    FleetTick(u64),
    /// An order to the trees is carried out.
    Ordered(RunId, EffectId),
    /// An order that came to nothing may be given again.
    Owed(RunId),
}

/// The limits of this world.
pub(crate) fn limits() -> Limits {
    Limits {
        beat_ms: DurationMs(BEAT_MS),
        lease_ms: DurationMs(LEASE_MS),
        offer_ms: DurationMs(OFFER_MS),
        grace_ms: DurationMs(1_000),
        prepare_ms: DurationMs(10_000),
        ..Limits::default()
    }
}

impl World {
    /// The process; only what happens to a living one asks for it.
    pub(crate) fn hub(&mut self) -> &mut Process {
        self.coordinator.process.as_mut().expect("nothing happens to a process that is gone")
    }

    pub(crate) fn mono_ms(&self) -> u64 {
        self.coordinator.host.mono_ms(self.now)
    }

    pub(crate) fn on_coordinator(&mut self, after_ms: u64, event: CoordinatorEvent) {
        let life = self.coordinator.life;
        self.at(self.now + after_ms, Happening::Coordinator(life, event));
    }

    pub(crate) fn post(&mut self, mail: Mail) {
        if !self.coordinator.up {
            return;
        }
        let to = match &mail {
            Mail::Fleet(_) => To::Fleet,
            Mail::Runs(_) => To::Runs,
            Mail::Run(run, _) => To::Run(run.clone()),
            Mail::Session(id, _) => To::Session(*id),
        };
        self.hub().mail.entry(to.clone()).or_default().push_back(mail);
        let busy = !self.calm && self.chance.once_in(60);
        let soon = self.chance.below(if busy { 250 } else { 3 });
        self.on_coordinator(soon, CoordinatorEvent::Mail(to));
    }

    pub(crate) fn tell_fleet(&mut self, mail: FleetMail) {
        self.post(Mail::Fleet(mail));
    }

    pub(crate) fn coordinator_starts(&mut self) {
        if self.coordinator.up {
            return;
        }
        self.coordinator.life += 1;
        self.coordinator.up = true;
        let life = self.coordinator.life;
        self.note(|| format!("coordinator starts ({life})"));
        let first_token = self.coordinator.host.wall(self.now).unix_ms().unsigned_abs() << 20;
        self.coordinator.process = Some(Process {
            fleet: FleetRoom::new(first_token),
            runs: RunsRoom::default(),
            rooms: BTreeMap::new(),
            sessions: BTreeMap::new(),
            trees: TreesRoom::default(),
            mail: BTreeMap::new(),
        });
        self.cordoned.clear();
        self.fleet_begins();
        self.runs_open();
        self.rules.coordinator_began(self.now);
    }

    pub(crate) fn coordinator_dies(&mut self, back_ms: u64) {
        if !self.coordinator.up {
            return;
        }
        self.note(|| "coordinator dies".to_owned());
        self.compare_fold_with_live();
        let under_way = self.coordinator.journal.under_way();
        let made_it = self.chance.place(under_way + 1);
        let kept = self.coordinator.journal.crashed(made_it);
        self.recorded(&kept);
        for conn in self.conns_of(None) {
            self.coordinator_hangs_up(conn);
        }
        self.coordinator.up = false;
        self.coordinator.process = None;
        self.coordinator.sync_fails = false;
        self.coordinator.dies_after = None;
        self.at(self.now + back_ms, Happening::CoordinatorStarts);
    }

    pub(crate) fn coordinator_event(&mut self, event: CoordinatorEvent) {
        match event {
            CoordinatorEvent::Mail(to) => self.next_mail(&to),
            CoordinatorEvent::Synced => self.journal_synced(),
            CoordinatorEvent::Appended(run, well) => self.appended(&run, well),
            CoordinatorEvent::Alarm(run, nth) => self.run_alarm(&run, nth),
            CoordinatorEvent::HandOut(run) => self.post(Mail::Run(run, RunMail::HandOut)),
            CoordinatorEvent::FleetTick(nth) => self.fleet_alarm(nth),
            CoordinatorEvent::Ordered(run, id) => self.order_done(&run, &id),
            CoordinatorEvent::Owed(run) => self.post(Mail::Runs(RunsMail::Owed { run })),
        }
        if let Some(left) = &mut self.coordinator.dies_after {
            *left = left.saturating_sub(1);
            if *left == 0 {
                let back = self.chance.within(20, 2_500);
                self.coordinator_dies(back);
            }
        }
    }

    fn next_mail(&mut self, to: &To) {
        if let To::Run(run) = to
            && let Some(room) = self.hub().rooms.get_mut(run)
            && room.is_writing()
        {
            room.missed += 1;
            return;
        }
        let Some(mail) = self.hub().mail.get_mut(to).and_then(VecDeque::pop_front) else { return };
        match mail {
            Mail::Fleet(mail) => self.fleet_mail(mail),
            Mail::Runs(mail) => self.runs_mail(mail),
            Mail::Run(run, mail) => self.run_mail(&run, mail),
            Mail::Session(id, mail) => self.session_mail(id, mail),
        }
    }

    pub(crate) fn append(&mut self, batch: Batch) {
        self.coordinator.journal.enqueue(batch);
        self.begin_sync();
    }

    fn begin_sync(&mut self) {
        if self.coordinator.journal.begin_sync() {
            let slow = self.now < self.coordinator.slow_until_ms;
            let sync = self.chance.within(1, if slow { 1_200 } else { 8 });
            self.on_coordinator(sync, CoordinatorEvent::Synced);
        }
    }

    /// A sync that fails ends the process: what it was about may be on the disk or not.
    fn journal_synced(&mut self) {
        if self.coordinator.sync_fails {
            let back = self.chance.within(20, 2_500);
            return self.coordinator_dies(back);
        }
        let batches = self.coordinator.journal.synced();
        self.recorded(&batches);
        for batch in batches {
            match batch {
                Batch::Run { run, .. } => {
                    self.on_coordinator(0, CoordinatorEvent::Appended(run, true));
                }
                Batch::Fleet(_) => {}
            }
        }
        self.begin_sync();
    }

    /// Batches that are durable, acknowledged or not.
    fn recorded(&mut self, batches: &[Batch]) {
        for batch in batches {
            match batch {
                Batch::Run { run, before, events } => {
                    for envelope in events {
                        self.note(|| format!("{} {:?}", short(run), envelope.event));
                    }
                    self.rules.recorded(run, (*before, self.now), events);
                }
                Batch::Fleet(_) => {}
            }
        }
    }

    /// A fact about the fleet, written beside its work.
    pub(crate) fn record_fact(&mut self, event: FleetEvent) {
        self.append(Batch::Fleet(event));
    }
}

/// A run, as short as people can tell it from others.
pub(crate) fn short(run: &RunId) -> &str {
    let text = run.as_str();
    text.get(text.len().saturating_sub(5)..).unwrap_or(text)
}

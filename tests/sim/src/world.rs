//! A whole world on one thread: a queue of what happens next, and a clock that only this moves.
//!
//! First everything may go wrong, then nothing does and every run must come to rest, then people
//! resume what they paused, then they stop what is left. Not here: what must hold (`rules.rs`).

use std::collections::{BTreeMap, BTreeSet};

use ganger_coordinator_core::run::{Effect, Reply, RunState};
use ganger_shared::ids::RunId;

use crate::bug::Bug;
use crate::chance::Chance;
use crate::coordinator::{Coordinator, CoordinatorEvent};
use crate::net::{Net, Way};
use crate::people::People;
use crate::rules::Rules;
use crate::scenario::{Fault, Scenario, Wish};
use crate::worker::{Worker, WorkerEvent};

/// How often it is looked whether all is at rest and in time.
const LOOK_MS: u64 = 1_000;
/// Within this time after the last fault, and after each further act, everything is at rest.
const REST_MS: u64 = 40 * 60_000;
/// More happens in no world.
const HAPPENINGS_MAX: u64 = 3_000_000;

/// What may happen.
#[derive(Debug)]
pub(crate) enum Happening {
    Arrives(u64, Way),
    SeesEnd(u64, Way),
    Coordinator(u64, CoordinatorEvent),
    CoordinatorStarts,
    Worker(usize, u64, Box<WorkerEvent>),
    WorkerStarts(usize),
    Asks(usize),
    CallArrives(usize),
    Told(usize, RunId, Box<Reply>),
    Strikes(Fault),
    Calms,
    Looks,
}

/// How far the end of a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Anything goes wrong until the calm, then everything comes to rest.
    Faults,
    /// What people paused goes on.
    Resumed,
    /// What is left is stopped.
    Stopped,
}

/// The world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) chance: Chance,
    pub(crate) coordinator: Coordinator,
    pub(crate) workers: Vec<Worker>,
    pub(crate) net: Net,
    pub(crate) people: People,
    pub(crate) rules: Rules,
    pub(crate) plans: Vec<String>,
    pub(crate) bug: Option<Bug>,
    /// Nothing goes wrong any more.
    pub(crate) calm: bool,
    /// Workers that somebody closed for new work.
    pub(crate) cordoned: BTreeSet<usize>,
    history: Option<Vec<String>>,
    queue: BTreeMap<(u64, u64), Happening>,
    order: u64,
    act: Act,
    /// When the present act must be over.
    rest_by_ms: u64,
    over: bool,
}

/// How a world ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What did not hold, if something did not.
    pub broken: Option<String>,
    /// What happened, a line each, where it was asked for.
    pub history: Vec<String>,
    /// How much happened.
    pub happenings: u64,
    /// Events in the journal.
    pub events: u64,
    /// Runs that were completed.
    pub completed: u64,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, told: bool) -> Self {
        let mut chance = Chance::new(seed);
        let Scenario { plans, workers, wishes, faults, calm_ms } = Scenario::of(&mut chance);
        let workers = workers.into_iter().enumerate();
        let workers = workers.map(|(nth, (labels, slots))| Worker::new(nth, labels, slots));
        let mut world = Self {
            now: 0,
            chance,
            coordinator: Coordinator::default(),
            workers: workers.collect(),
            net: Net::default(),
            people: People::of(plans.len()),
            rules: Rules::of(&plans),
            plans,
            bug,
            calm: false,
            cordoned: BTreeSet::new(),
            history: told.then(Vec::new),
            queue: BTreeMap::new(),
            order: 0,
            act: Act::Faults,
            rest_by_ms: calm_ms + REST_MS,
            over: false,
        };
        world.at(0, Happening::CoordinatorStarts);
        for on in 0..world.workers.len() {
            let skew = i64::try_from(world.chance.below(4_000)).unwrap_or(0) - 2_000;
            world.workers[on].host.skew_ms = skew;
            let at = world.chance.below(3_000);
            world.at(at, Happening::WorkerStarts(on));
        }
        for (at, wish) in wishes {
            world.wishes(at, wish);
        }
        for (at, fault) in faults {
            world.at(at, Happening::Strikes(fault));
        }
        world.at(calm_ms, Happening::Calms);
        world.at(LOOK_MS, Happening::Looks);
        world
    }

    pub(crate) fn at(&mut self, at_ms: u64, happening: Happening) {
        self.order += 1;
        self.queue.insert((at_ms.max(self.now), self.order), happening);
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(format!("{:>8} {}", self.now, line()));
        }
    }

    /// Lets everything happen, until the end or until something does not hold.
    pub(crate) fn run(mut self) -> Ended {
        let mut happenings = 0;
        while !self.over
            && self.rules.what_broke().is_none()
            && let Some(((at, order), happening)) = self.queue.pop_first()
        {
            self.now = at;
            if let Some(until) = self.stands_still(&happening) {
                self.queue.insert((until, order), happening);
                continue;
            }
            happenings += 1;
            if happenings > HAPPENINGS_MAX {
                self.rules.broken("it never ends".to_owned());
            }
            self.happens(happening);
        }
        let completed =
            |run: &&ganger_coordinator_core::run::Run| *run.state() == RunState::Completed;
        Ended {
            broken: self.rules.what_broke().cloned(),
            happenings,
            events: self.rules.runs().map(|(_, run)| run.sequence()).sum(),
            completed: self.rules.runs().map(|(_, run)| run).filter(completed).count() as u64,
            history: self.history.unwrap_or_default(),
        }
    }

    /// Until when the machine stands still to which this happens.
    fn stands_still(&self, happening: &Happening) -> Option<u64> {
        let host = match happening {
            Happening::Coordinator(..)
            | Happening::CoordinatorStarts
            | Happening::CallArrives(_)
            | Happening::Arrives(_, Way::Up)
            | Happening::SeesEnd(_, Way::Up) => &self.coordinator.host,
            Happening::Worker(on, ..) | Happening::WorkerStarts(on) => &self.workers[*on].host,
            Happening::Arrives(id, Way::Down) | Happening::SeesEnd(id, Way::Down) => {
                &self.workers[self.net.conns.get(id)?.worker].host
            }
            Happening::Asks(_)
            | Happening::Told(..)
            | Happening::Strikes(_)
            | Happening::Calms
            | Happening::Looks => return None,
        };
        (host.still_until_ms > self.now).then_some(host.still_until_ms)
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives(id, way) => self.arrives(id, way),
            Happening::SeesEnd(id, way) => self.sees_end(id, way),
            Happening::Coordinator(life, event) => {
                if self.coordinator.up && self.coordinator.life == life {
                    self.coordinator_event(event);
                }
            }
            Happening::CoordinatorStarts => self.coordinator_starts(),
            Happening::Worker(on, life, event) => {
                if self.workers[on].is_alive(life) {
                    self.worker_event(on, *event);
                }
            }
            Happening::WorkerStarts(on) => self.worker_starts(on),
            Happening::Asks(nth) => self.asks(nth),
            Happening::CallArrives(nth) => self.call_arrives(nth),
            Happening::Told(nth, run, reply) => self.told(nth, &run, &reply),
            Happening::Strikes(fault) => self.strikes(fault),
            Happening::Calms => self.calms(),
            Happening::Looks => self.looks(),
        }
    }

    fn looks(&mut self) {
        self.at(self.now + LOOK_MS, Happening::Looks);
        if self.coordinator.up && self.coordinator.process.as_ref().is_some_and(|p| p.runs.opened) {
            self.rules.in_time(self.now);
        }
        self.look_for_idle_slots();
        if !self.calm {
            return;
        }
        if let Some(why) = self.restless() {
            if self.now > self.rest_by_ms {
                self.rules.broken(format!("it does not come to rest in act {:?}: {why}", self.act));
            }
        } else {
            self.next_act();
        }
    }

    fn next_act(&mut self) {
        self.compare_fold_with_live();
        self.rest_by_ms = self.now + REST_MS;
        let wish: fn(usize) -> Wish = match self.act {
            Act::Faults => {
                self.act = Act::Resumed;
                |plan| Wish::Resume { plan }
            }
            Act::Resumed => {
                self.act = Act::Stopped;
                |plan| Wish::Stop { plan, now: plan % 2 == 0 }
            }
            Act::Stopped => return self.ends(),
        };
        for plan in 0..self.plans.len() {
            self.wishes(self.now, wish(plan));
        }
    }

    fn ends(&mut self) {
        self.over = true;
        self.rules.at_the_end();
        let busy: u32 = self.hub().fleet.core.workers().iter().map(|worker| worker.busy).sum();
        if busy > 0 {
            self.rules
                .broken(format!("everything is over and {busy} slots are still counted as used"));
        }
    }

    /// Why something still goes on, if it does.
    fn restless(&self) -> Option<String> {
        if let Some(nth) = self.people.askers.iter().position(|asker| !asker.answered) {
            return Some(format!("call {nth} is not answered"));
        }
        let hub = self.coordinator.process.as_ref();
        let Some(hub) = hub.filter(|hub| hub.runs.opened && hub.trees.is_idle()) else {
            return Some("the coordinator is not ready".to_owned());
        };
        if hub.rooms.values().any(super::coordinator::run::RunRoom::is_writing) {
            return Some("a batch is being written".to_owned());
        }
        for worker in &self.workers {
            let busy = worker.up && worker.process.is_busy();
            if !worker.up || busy || !worker.process.link.is_attached() {
                return Some(format!("{} is not at rest: {}", worker.id, worker.process.state()));
            }
        }
        self.rules.runs().find_map(|(id, run)| {
            let state = run.state();
            let rests = match state {
                RunState::Paused { .. } => self.act == Act::Faults,
                RunState::Held { .. } | RunState::BudgetLimited { .. } => self.act != Act::Stopped,
                RunState::Completed | RunState::Aborted => true,
                RunState::Submitting | RunState::Active | RunState::Stopping { .. } => false,
            };
            let mut owed = run.owed().values();
            let owed = owed.find(|effect| match effect {
                Effect::Claim { .. } => false,
                // Who has these files waits for a person; a run says that of itself, not of others.
                Effect::WantSlot(want) if rests => !self.is_claimed(want),
                Effect::WantSlot(want) => !self.is_claimed_by_other(want, id),
                Effect::Assign { .. }
                | Effect::Stop { .. }
                | Effect::Take { .. }
                | Effect::Merge { .. }
                | Effect::Apply { .. } => true,
            });
            let mut wants = run.owed().values();
            let behind = wants.any(|effect| matches!(effect, Effect::WantSlot(_)))
                && *state == RunState::Active
                && self.act != Act::Stopped;
            let quiet = (rests || behind) && owed.is_none() && run.live().is_empty();
            (!quiet).then(|| format!("{id} is {state:?}, owes {owed:?}, live {:?}", run.live()))
        })
    }

    /// What a coordinator has decided on is what its journal folds to.
    pub(crate) fn compare_fold_with_live(&mut self) {
        let Some(hub) = &self.coordinator.process else { return };
        let differs = hub.rooms.iter().find(|(id, room)| {
            let written = !room.is_writing() && room.run.submitted().is_some();
            written && self.rules.run(id).is_some_and(|folded| *folded != room.run)
        });
        if let Some((id, _)) = differs {
            let id = id.clone();
            self.rules.broken(format!("{id} folds to another state than the one decided on"));
        }
    }
}

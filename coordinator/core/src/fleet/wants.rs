//! Everything that waits for a slot, in lines of wants that the same workers can serve.
//!
//! A want that waits for a time or behind a claim stands in no queue, so nothing is ever skipped
//! over: the head of every queue can be placed as soon as its line has a free worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::fleet::WorkerFacts;
use ganger_shared::ids::{RunId, UnitId, WorkerId};
use ganger_shared::plan::Where;
use ganger_shared::time::Timestamp;

use crate::run::{EffectId, SlotWant, WantKind};

use super::claims::{Files, Owner};
use super::message::Wanted;
use super::seats::Sort;
use super::timers::{Timer, Timers};

/// By which a want is known.
pub(super) type WantKey = (RunId, EffectId);

/// What a worker must have and be, to serve a want.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) agent: Option<String>,
    pub(super) role: Role,
}

/// What it serves it as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It tries a unit.
    Author,
    /// It measures what `author` made; on a worker as the plan says.
    Checker { author: WorkerId, rule: Rule },
}

/// Where a check is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// On another worker where another is attached, else on the author's.
    Default,
    /// Only on another.
    OtherWorker,
    /// On any, the author's first: it has the files.
    AnyWorker,
}

impl Shape {
    pub(super) fn of(want: &SlotWant) -> Self {
        let role = match &want.kind {
            WantKind::Attempt { .. } => Role::Author,
            WantKind::Check { author, place, .. } => Role::Checker {
                author: author.clone(),
                rule: match place {
                    None => Rule::Default,
                    Some(Where::OtherWorker) => Rule::OtherWorker,
                    Some(Where::OtherTree) => Rule::AnyWorker,
                },
            },
        };
        Self { labels: want.labels.clone(), agent: want.agent.clone(), role }
    }

    pub(super) fn sort(&self) -> Sort {
        match self.role {
            Role::Author => Sort::Attempt,
            Role::Checker { .. } => Sort::Check,
        }
    }

    /// Whether the worker has what is asked for.
    pub(super) fn fits(&self, facts: &WorkerFacts) -> bool {
        self.labels.iter().all(|(key, value)| facts.labels.get(key) == Some(value))
            && self.agent.as_ref().is_none_or(|name| has_agent(facts, name))
    }
}

/// Whether the agent runs there.
pub(super) fn has_agent(facts: &WorkerFacts, name: &str) -> bool {
    facts.agents.iter().any(|agent| agent.name == name)
}

/// Where a want stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not before this time.
    Timed { until_ms: u64 },
    /// Behind this owner's claim.
    Parked { behind: Owner },
    /// In its line.
    Queued,
    /// A slot is offered.
    Offered { token: u64 },
}

/// One want.
#[derive(Debug, Clone)]
pub(super) struct Want {
    pub(super) wanted: Wanted,
    pub(super) files: Option<Files>,
    pub(super) line: u64,
    pub(super) standing: Standing,
    /// Offers that were not taken, in a row.
    pub(super) setbacks: u32,
}

impl Want {
    pub(super) fn unit(&self) -> &UnitId {
        match &self.wanted.want.kind {
            WantKind::Attempt { unit, .. } => unit,
            WantKind::Check { check, .. } => &check.unit,
        }
    }

    pub(super) fn owner(&self) -> Owner {
        (self.wanted.run.clone(), self.unit().clone())
    }

    fn ticket(&self) -> Ticket {
        (Reverse(self.wanted.want.priority), self.wanted.want.since, self.wanted.id.clone())
    }
}

/// A want's place among those of its run in one line.
pub(super) type Ticket = (Reverse<i32>, Timestamp, EffectId);

/// Wants of one shape.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) shape: Shape,
    /// Attached workers that may be offered and fit.
    pub(super) capable: BTreeSet<WorkerId>,
    /// Those that can be placed now, run by run.
    pub(super) queued: BTreeMap<RunId, BTreeSet<Ticket>>,
    members: usize,
}

/// All wants.
#[derive(Debug, Clone, Default)]
pub(super) struct Wants {
    all: BTreeMap<RunId, BTreeMap<EffectId, Want>>,
    shapes: BTreeMap<Shape, u64>,
    lines: BTreeMap<u64, Line>,
    parked: BTreeMap<Owner, BTreeSet<WantKey>>,
    next_line: u64,
}

impl Wants {
    pub(super) fn get(&self, key: &WantKey) -> Option<&Want> {
        get(&self.all, key)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Want> {
        self.all.values().flat_map(BTreeMap::values)
    }

    pub(super) fn of_run(&self, run: &RunId) -> Vec<WantKey> {
        let ids = self.all.get(run).into_iter().flat_map(BTreeMap::keys);
        ids.map(|id| (run.clone(), id.clone())).collect()
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.values()
    }

    pub(super) fn line(&self, id: u64) -> Option<&Line> {
        self.lines.get(&id)
    }

    /// The line for the shape; `capable` says who serves a new one.
    pub(super) fn line_for(
        &mut self,
        shape: Shape,
        capable: impl FnOnce(&Shape) -> BTreeSet<WorkerId>,
    ) -> u64 {
        if let Some(id) = self.shapes.get(&shape) {
            return *id;
        }
        let id = self.next_line;
        self.next_line += 1;
        let capable = capable(&shape);
        self.shapes.insert(shape.clone(), id);
        self.lines.insert(id, Line { shape, capable, queued: BTreeMap::new(), members: 0 });
        id
    }

    /// A worker may be offered with these facts, or not at all.
    pub(super) fn serve(&mut self, worker: &WorkerId, facts: Option<&WorkerFacts>) {
        for line in self.lines.values_mut() {
            if facts.is_some_and(|facts| line.shape.fits(facts)) {
                line.capable.insert(worker.clone());
            } else {
                line.capable.remove(worker);
            }
        }
    }

    /// Adds a want that is not there yet.
    pub(super) fn insert(&mut self, want: Want, timers: &mut Timers) {
        let key = (want.wanted.run.clone(), want.wanted.id.clone());
        if let Some(line) = self.lines.get_mut(&want.line) {
            line.members += 1;
        }
        self.all.entry(key.0.clone()).or_default().insert(key.1.clone(), want);
        self.enter(&key, timers);
    }

    pub(super) fn remove(&mut self, key: &WantKey, timers: &mut Timers) -> Option<Want> {
        self.leave(key, timers);
        let of_run = self.all.get_mut(&key.0)?;
        let want = of_run.remove(&key.1)?;
        if of_run.is_empty() {
            self.all.remove(&key.0);
        }
        if let Some(line) = self.lines.get_mut(&want.line) {
            line.members -= 1;
            if line.members == 0 {
                self.shapes.remove(&line.shape);
                self.lines.remove(&want.line);
            }
        }
        Some(want)
    }

    /// Puts a want where it now stands.
    pub(super) fn stand(&mut self, key: &WantKey, standing: Standing, timers: &mut Timers) {
        self.leave(key, timers);
        if let Some(want) = self.get_mut(key) {
            want.standing = standing;
        }
        self.enter(key, timers);
    }

    /// An offer was not taken: the want waits, longer each time, so that others go first.
    pub(super) fn set_back(
        &mut self,
        key: &WantKey,
        until: impl FnOnce(u32) -> u64,
        timers: &mut Timers,
    ) {
        let Some(want) = self.get_mut(key) else { return };
        let setbacks = want.setbacks;
        want.setbacks = setbacks.saturating_add(1);
        self.stand(key, Standing::Timed { until_ms: until(setbacks) }, timers);
    }

    /// Everything behind the owner's claim may look again.
    pub(super) fn wake(&mut self, owner: &Owner, timers: &mut Timers) {
        for key in self.parked.remove(owner).unwrap_or_default() {
            self.stand(&key, Standing::Queued, timers);
        }
    }

    fn get_mut(&mut self, key: &WantKey) -> Option<&mut Want> {
        self.all.get_mut(&key.0)?.get_mut(&key.1)
    }

    fn leave(&mut self, key: &WantKey, timers: &mut Timers) {
        let Some(want) = get(&self.all, key) else { return };
        match &want.standing {
            Standing::Timed { until_ms } => timers.disarm(*until_ms, Timer::Want(key.clone())),
            Standing::Parked { behind } => {
                if let Some(parked) = self.parked.get_mut(behind) {
                    parked.remove(key);
                    if parked.is_empty() {
                        self.parked.remove(behind);
                    }
                }
            }
            Standing::Queued => {
                if let Some(line) = self.lines.get_mut(&want.line)
                    && let Some(tickets) = line.queued.get_mut(&key.0)
                {
                    tickets.remove(&want.ticket());
                    if tickets.is_empty() {
                        line.queued.remove(&key.0);
                    }
                }
            }
            Standing::Offered { .. } => {}
        }
    }

    fn enter(&mut self, key: &WantKey, timers: &mut Timers) {
        let Some(want) = get(&self.all, key) else { return };
        match &want.standing {
            Standing::Timed { until_ms } => timers.arm(*until_ms, Timer::Want(key.clone())),
            Standing::Parked { behind } => {
                self.parked.entry(behind.clone()).or_default().insert(key.clone());
            }
            Standing::Queued => {
                if let Some(line) = self.lines.get_mut(&want.line) {
                    line.queued.entry(key.0.clone()).or_default().insert(want.ticket());
                }
            }
            Standing::Offered { .. } => {}
        }
    }
}

fn get<'a>(
    all: &'a BTreeMap<RunId, BTreeMap<EffectId, Want>>,
    (run, id): &WantKey,
) -> Option<&'a Want> {
    all.get(run)?.get(id)
}

//! How much of each worker is in use, who has room, and whose share is how large.
//!
//! A seat is taken by a lease, by an offer that is not answered, or by work a worker still runs
//! although nobody holds it. Attempts sit on slots; one check sits beside them, more checks on
//! slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::ids::{ProjectId, RunId, WorkId, WorkerId};

/// What sits on a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// A measuring of a check; before attempts wherever both wait.
    Check,
    /// An attempt.
    Attempt,
}

impl Sort {
    pub(super) fn of(work: &WorkId) -> Self {
        match work {
            WorkId::Attempt(_) => Self::Attempt,
            WorkId::Check(_) => Self::Check,
        }
    }
}

/// One seat in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) worker: WorkerId,
    pub(super) run: RunId,
    pub(super) project: ProjectId,
    pub(super) sort: Sort,
}

/// One worker's use.
#[derive(Debug, Clone, Default)]
pub(super) struct Load {
    slots: u32,
    /// Slots may be offered there.
    offerable: bool,
    attempts: u32,
    checks: u32,
    unheld_attempts: u32,
    unheld_checks: u32,
}

impl Load {
    /// How many more of the sort it can take.
    fn free(&self, sort: Sort) -> u32 {
        let free = self.slots.saturating_sub(self.busy());
        match sort {
            Sort::Attempt => free,
            Sort::Check => free.saturating_add(u32::from(self.all_checks() == 0)),
        }
    }

    fn all_checks(&self) -> u32 {
        self.checks.saturating_add(self.unheld_checks)
    }

    /// Slots in use, the check slot not counted.
    pub(super) fn busy(&self) -> u32 {
        let on_slots = self.all_checks().saturating_sub(1);
        self.attempts.saturating_add(self.unheld_attempts).saturating_add(on_slots)
    }
}

/// All seats.
#[derive(Debug, Clone, Default)]
pub(super) struct Seats {
    loads: BTreeMap<WorkerId, Load>,
    with_slot: BTreeSet<(Reverse<u32>, WorkerId)>,
    with_check_seat: BTreeSet<(Reverse<u32>, WorkerId)>,
    projects: BTreeMap<ProjectId, u32>,
    runs: BTreeMap<RunId, u32>,
}

impl Seats {
    pub(super) fn take(&mut self, seat: &Seat) {
        *self.projects.entry(seat.project.clone()).or_default() += 1;
        *self.runs.entry(seat.run.clone()).or_default() += 1;
        self.change(&seat.worker, |load| match seat.sort {
            Sort::Attempt => load.attempts += 1,
            Sort::Check => load.checks += 1,
        });
    }

    pub(super) fn leave(&mut self, seat: &Seat) {
        decrease(&mut self.projects, &seat.project);
        decrease(&mut self.runs, &seat.run);
        self.change(&seat.worker, |load| match seat.sort {
            Sort::Attempt => load.attempts = load.attempts.saturating_sub(1),
            Sort::Check => load.checks = load.checks.saturating_sub(1),
        });
    }

    /// A worker offers this many slots, now or not.
    pub(super) fn provide(&mut self, worker: &WorkerId, slots: u32, offerable: bool) {
        self.change(worker, |load| {
            load.slots = slots;
            load.offerable = offerable;
        });
    }

    /// A worker runs this although nobody holds it.
    pub(super) fn unheld(&mut self, worker: &WorkerId, attempts: u32, checks: u32) {
        self.change(worker, |load| {
            load.unheld_attempts = attempts;
            load.unheld_checks = checks;
        });
    }

    pub(super) fn load(&self, worker: &WorkerId) -> Option<&Load> {
        self.loads.get(worker)
    }

    pub(super) fn is_free(&self, worker: &WorkerId, sort: Sort) -> bool {
        self.loads.get(worker).is_some_and(|load| load.free(sort) > 0)
    }

    /// Workers with room for the sort and open for offers, those with most room first.
    pub(super) fn open(&self, sort: Sort) -> impl Iterator<Item = &WorkerId> {
        match sort {
            Sort::Attempt => &self.with_slot,
            Sort::Check => &self.with_check_seat,
        }
        .iter()
        .map(|(_, worker)| worker)
    }

    /// Seats in use by a project and by a run.
    pub(super) fn shares(&self, project: &ProjectId, run: &RunId) -> (u32, u32) {
        let count = |found: Option<&u32>| found.copied().unwrap_or(0);
        (count(self.projects.get(project)), count(self.runs.get(run)))
    }

    fn change(&mut self, worker: &WorkerId, change: impl FnOnce(&mut Load)) {
        let load = self.loads.entry(worker.clone()).or_default();
        for (index, sort) in
            [(&mut self.with_slot, Sort::Attempt), (&mut self.with_check_seat, Sort::Check)]
        {
            index.remove(&(Reverse(load.free(sort)), worker.clone()));
        }
        change(load);
        for (index, sort) in
            [(&mut self.with_slot, Sort::Attempt), (&mut self.with_check_seat, Sort::Check)]
        {
            if load.offerable && load.free(sort) > 0 {
                index.insert((Reverse(load.free(sort)), worker.clone()));
            }
        }
    }
}

fn decrease<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

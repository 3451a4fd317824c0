//! What the fleet offers and what is wanted of it: for authors of plans and for autoscalers.

use std::collections::BTreeMap;

use ganger_shared::fleet::WorkerFacts;

use super::Fleet;
use super::seats::Load;
use super::wants::{Role, Standing, Want};
use super::workers::Presence;

/// What is wanted and what is free of one set of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The labels units ask for.
    pub labels: BTreeMap<String, String>,
    /// Attempts that wait for a slot on such a worker.
    pub wanted: u32,
    /// Free slots on such workers.
    pub free: u32,
}

impl Fleet {
    /// The facts of every worker that is not away for good.
    pub fn facts(&self) -> Vec<WorkerFacts> {
        let here = self.workers.values().filter(|worker| match worker.presence {
            Presence::Heard | Presence::Suspect => true,
            Presence::Lost | Presence::Left => false,
        });
        here.map(|worker| worker.facts.clone()).collect()
    }

    /// Attempts that wait, by the labels they ask for. Looks at every want.
    pub fn demand(&self) -> Vec<Demand> {
        let mut wanted: BTreeMap<&BTreeMap<String, String>, u32> = BTreeMap::new();
        for want in self.wants.all().filter(|want| self.waits_for_a_slot(want)) {
            *wanted.entry(&want.wanted.want.labels).or_default() += 1;
        }
        let demand = |(labels, wanted): (&BTreeMap<String, String>, u32)| Demand {
            labels: labels.clone(),
            wanted,
            free: self.free(labels),
        };
        wanted.into_iter().map(demand).collect()
    }

    fn waits_for_a_slot(&self, want: &Want) -> bool {
        let author = |line: &super::wants::Line| matches!(line.shape.role, Role::Author);
        want.standing == Standing::Queued && self.wants.line(want.line).is_some_and(author)
    }

    fn free(&self, labels: &BTreeMap<String, String>) -> u32 {
        let fits = |facts: &WorkerFacts| {
            labels.iter().all(|(key, value)| facts.labels.get(key) == Some(value))
        };
        let workers = self.workers.values().filter(|worker| worker.is_offerable());
        workers
            .filter(|worker| fits(&worker.facts))
            .map(|worker| {
                let busy = self.seats.load(&worker.facts.worker).map_or(0, Load::busy);
                worker.facts.slots.saturating_sub(busy)
            })
            .fold(0, u32::saturating_add)
    }
}

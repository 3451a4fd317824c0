//! The durable records of an outbox and what each of them does to it.
//!
//! Tags are forever: a worker of a later build reads what an earlier one wrote.

use std::sync::Arc;

use ganger_shared::link::{Anchor, Fact, Lease, Report};
use ganger_shared::spec::Assignment;
use serde::{Deserialize, Serialize};

use super::{FENCES_MAX, Fence, Held, Life, Outbox, Unanswered, ends, lease_of};

/// One line of the outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A lease is held; written before anything is done for it.
    Accepted {
        /// The whole of it.
        assignment: Box<Assignment>,
    },
    /// A report was made; written before it is sent.
    Reported {
        /// The report.
        report: Box<Report>,
    },
    /// A report was answered and is forgotten.
    Settled {
        /// Of which lease.
        lease: Lease,
        /// Its number.
        number: u32,
    },
    /// This lease, and every older one of the same work, does not begin any more.
    Fenced {
        /// The lease.
        lease: Lease,
    },
    /// The furthest place in a journal that was shown.
    Seen {
        /// The place.
        anchor: Anchor,
    },
    /// Everything before this line is said again, shorter, by the lines of its batch.
    Anew,
    /// Within `Anew`: how far the numbers of a lease's reports had come.
    Numbered {
        /// The lease.
        lease: Lease,
        /// The last number used.
        last: u32,
    },
}

impl Record {
    pub(super) fn reported(lease: Lease, number: u32, fact: Fact) -> Self {
        Self::Reported { report: Box::new(Report { lease, number, fact }) }
    }
}

impl Outbox {
    /// Takes one record in. Records of this crate always fit; of foreign ones the rest is ignored.
    pub fn apply(&mut self, record: Record) {
        self.clock += 1;
        match record {
            Record::Accepted { assignment } => self.held(assignment),
            Record::Reported { report } => self.reported(*report),
            Record::Settled { lease, number } => self.settled(&lease, number),
            Record::Fenced { lease } => self.fenced(&lease),
            Record::Seen { anchor } => self.seen = Some(anchor),
            Record::Anew => *self = Self { clock: self.clock, ..Self::new(self.reports_max) },
            Record::Numbered { lease, last } => self.over(lease).last = last,
        }
    }

    /// The same state in as few records as possible, to be written as one batch.
    pub fn anew(&self) -> Vec<Record> {
        let mut records = vec![Record::Anew];
        records.extend(self.seen.clone().map(|anchor| Record::Seen { anchor }));
        let mut fences: Vec<_> = self.fences.iter().collect();
        fences.sort_by_key(|(_, fence)| fence.order);
        records.extend(fences.into_iter().map(|((run, work), fence)| Record::Fenced {
            lease: Lease { run: run.clone(), work: work.clone(), epoch: fence.epoch },
        }));
        for (lease, held) in &self.leases {
            match &held.life {
                Life::Live(assignment) => {
                    records.push(Record::Accepted { assignment: assignment.clone() });
                }
                Life::Over => {}
            }
            records.push(Record::Numbered { lease: lease.clone(), last: held.last });
        }
        let unanswered = self.unanswered().into_iter();
        records.extend(
            unanswered.map(|waiting| Record::Reported { report: Box::new(waiting.report.clone()) }),
        );
        records
    }

    fn held(&mut self, assignment: Box<Assignment>) {
        let lease = lease_of(&assignment);
        self.fenced(&lease);
        self.over(lease).life = Life::Live(assignment);
    }

    fn reported(&mut self, report: Report) {
        let order = self.clock;
        let held = self.over(report.lease.clone());
        if ends(&report.fact) {
            held.life = Life::Over;
        }
        held.last = held.last.max(report.number);
        held.unanswered.insert(report.number, Arc::new(Unanswered { order, report }));
    }

    fn settled(&mut self, lease: &Lease, number: u32) {
        let Some(held) = self.leases.get_mut(lease) else { return };
        held.unanswered.remove(&number);
        if held.unanswered.is_empty() && matches!(held.life, Life::Over) {
            self.leases.remove(lease);
        }
    }

    fn fenced(&mut self, lease: &Lease) {
        let fence = Fence { epoch: lease.epoch, order: self.clock };
        let place = self.fences.entry((lease.run.clone(), lease.work.clone())).or_insert(fence);
        if place.epoch < lease.epoch {
            *place = fence;
        }
        if self.fences.len() > FENCES_MAX {
            self.forget_oldest_fence();
        }
    }

    /// Live leases keep theirs: they are the ones an assignment is repeated for.
    fn forget_oldest_fence(&mut self) {
        let held = |key: &(_, _)| {
            self.leases.keys().any(|lease| lease.run == key.0 && lease.work == key.1)
        };
        let free = self.fences.iter().filter(|(key, _)| !held(key));
        if let Some(oldest) = free.min_by_key(|(_, fence)| fence.order).map(|(key, _)| key.clone())
        {
            self.fences.remove(&oldest);
        }
    }

    /// The entry of a lease, made as one that has ended if it is not there.
    fn over(&mut self, lease: Lease) -> &mut Held {
        self.leases.entry(lease).or_insert_with(|| Held {
            life: Life::Over,
            last: 0,
            unanswered: std::collections::BTreeMap::new(),
        })
    }
}

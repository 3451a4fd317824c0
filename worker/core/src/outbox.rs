//! What a worker owes its coordinator: the leases it holds and the reports that are not answered.
//!
//! Decided here, written by `worker/src/outbox.rs`, applied here: the state is a fold of records,
//! at a restart as at any time. A report leaves only with an answer that settles it. Fences of
//! ended leases are remembered, so that nothing is started twice under one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use ganger_shared::ids::{Epoch, RunId, WorkId};
use ganger_shared::link::{Anchor, Answer, Fact, Lease, Report};
use ganger_shared::spec::Assignment;

mod record;
#[cfg(test)]
mod tests;

pub use record::Record;

/// Fences of ended leases that are remembered; the oldest go first. A coordinator repeats an
/// assignment only while it waits for the report `Accepted`, which is settled long before.
pub const FENCES_MAX: usize = 4_096;
/// Reports a live lease will still make: that it started, and how it ended.
const REPORTS_TO_COME: usize = 2;

/// Why an assignment is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// This very lease is held, or has ended here: its reports say so, nothing is to be done.
    #[error("accept {work} epoch {epoch}: it was accepted before")]
    Repeated {
        /// The work.
        work: Box<WorkId>,
        /// The epoch.
        epoch: Epoch,
    },
    /// A newer lease of the same work was seen here.
    #[error("accept {work} epoch {epoch}: epoch {newest} was seen here")]
    Stale {
        /// The work.
        work: Box<WorkId>,
        /// The epoch offered.
        epoch: Epoch,
        /// The newest one seen.
        newest: Epoch,
    },
    /// As many reports wait for an answer as may wait.
    #[error("accept {work}: {waiting} reports are not answered yet")]
    Full {
        /// The work.
        work: Box<WorkId>,
        /// How many.
        waiting: usize,
    },
}

/// Why a fact is not taken as a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReported {
    /// No such lease is live here.
    #[error("report on {work} epoch {epoch}: it is not live here")]
    NotLive {
        /// The work.
        work: Box<WorkId>,
        /// The epoch.
        epoch: Epoch,
    },
}

/// Everything owed, and everything remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    reports_max: usize,
    leases: BTreeMap<Lease, Held>,
    fences: BTreeMap<(RunId, WorkId), Fence>,
    seen: Option<Anchor>,
    /// Counts everything applied; gives reports and fences their order.
    clock: u64,
}

/// The newest epoch of one work, and when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    epoch: Epoch,
    order: u64,
}

/// One lease that is live or not wholly answered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    life: Life,
    /// The number of the last report made.
    last: u32,
    unanswered: BTreeMap<u32, Arc<Unanswered>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Life {
    Live(Box<Assignment>),
    Over,
}

/// A report that is not answered, and its place in the order they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// Rises with every report of one process.
    pub order: u64,
    /// The report.
    pub report: Report,
}

impl Outbox {
    /// An outbox that owes nothing and takes no leases while `reports_max` reports are unanswered.
    pub fn new(reports_max: usize) -> Self {
        Self { reports_max, leases: BTreeMap::new(), fences: BTreeMap::new(), seen: None, clock: 0 }
    }

    /// Accepts an assignment: from these records on the lease is held and `Accepted` is reported.
    pub fn accept(&self, assignment: &Assignment) -> Result<Vec<Record>, NotAccepted> {
        let lease = lease_of(assignment);
        let (work, epoch) = (Box::new(lease.work.clone()), lease.epoch);
        match self.fence(&lease) {
            Some(newest) if newest == epoch => return Err(NotAccepted::Repeated { work, epoch }),
            Some(newest) if newest > epoch => {
                return Err(NotAccepted::Stale { work, epoch, newest });
            }
            Some(_) | None => {}
        }
        if self.is_full() {
            return Err(NotAccepted::Full { work, waiting: self.waiting() });
        }
        Ok(vec![
            Record::Accepted { assignment: Box::new(assignment.clone()) },
            Record::reported(lease, 1, Fact::Accepted),
        ])
    }

    /// Takes a fact about a live lease as its next report.
    pub fn report(&self, lease: &Lease, fact: Fact) -> Result<Record, NotReported> {
        match self.leases.get(lease) {
            Some(Held { life: Life::Live(_), last, .. }) => {
                Ok(Record::reported(lease.clone(), last + 1, fact))
            }
            Some(Held { life: Life::Over, .. }) | None => {
                Err(NotReported::NotLive { work: Box::new(lease.work.clone()), epoch: lease.epoch })
            }
        }
    }

    /// Ends a lease that never began here, whatever the reason: it is fenced and reported, so that
    /// it can neither be waited for nor begin later. `None` where something is known of it.
    pub fn decline(&self, lease: &Lease, fact: Fact) -> Option<Vec<Record>> {
        if self.fence(lease).is_some_and(|newest| newest >= lease.epoch) {
            return None;
        }
        let fenced = Record::Fenced { lease: lease.clone() };
        Some(vec![fenced, Record::reported(lease.clone(), 1, fact)])
    }

    /// An answer: the record that removes its report, if it settles one that is still there.
    pub fn answered(&self, lease: &Lease, number: u32, answer: Answer) -> Option<Record> {
        let held = self.leases.get(lease)?;
        (answer.settles() && held.unanswered.contains_key(&number))
            .then(|| Record::Settled { lease: lease.clone(), number })
    }

    /// Whether this answer says that a lease which is live here is nobody's any more.
    pub fn is_disowned(&self, lease: &Lease, answer: Answer) -> bool {
        match answer {
            Answer::Recorded | Answer::RetryLater => false,
            Answer::Stale | Answer::RunClosed | Answer::UnknownRun => self.is_live(lease),
        }
    }

    /// A place in the journal was shown: the record that remembers it, if it is further than any.
    pub fn shown(&self, anchor: &Anchor) -> Option<Record> {
        let further = self.seen.as_ref().is_none_or(|seen| {
            seen.store_id != anchor.store_id
                || (seen.generation, seen.log_seq) < (anchor.generation, anchor.log_seq)
        });
        further.then(|| Record::Seen { anchor: anchor.clone() })
    }

    /// Leases accepted and not ended.
    pub fn live(&self) -> Vec<Lease> {
        let live = self.leases.iter().filter(|(_, held)| matches!(held.life, Life::Live(_)));
        live.map(|(lease, _)| lease.clone()).collect()
    }

    /// Leases ended here whose reports are not all answered.
    pub fn finished(&self) -> Vec<Lease> {
        let over = self.leases.iter().filter(|(_, held)| matches!(held.life, Life::Over));
        over.map(|(lease, _)| lease.clone()).collect()
    }

    /// Whether this lease is accepted and not ended.
    pub fn is_live(&self, lease: &Lease) -> bool {
        self.leases.get(lease).is_some_and(|held| matches!(held.life, Life::Live(_)))
    }

    /// The furthest place in a journal that was ever shown.
    pub fn seen(&self) -> Option<&Anchor> {
        self.seen.as_ref()
    }

    /// Every unanswered report in the order they were made: what is sent at an attach.
    pub fn unanswered(&self) -> Vec<Arc<Unanswered>> {
        let mut all: Vec<_> =
            self.leases.values().flat_map(|held| held.unanswered.values().cloned()).collect();
        all.sort_by_key(|unanswered| unanswered.order);
        all
    }

    /// Whether no lease is taken until some reports are answered.
    pub fn is_full(&self) -> bool {
        self.waiting() + REPORTS_TO_COME * self.live().len() >= self.reports_max
    }

    /// Whether so much is unanswered that nothing more should be heard of this coordinator.
    pub fn is_overfull(&self) -> bool {
        self.waiting() >= 2 * self.reports_max
    }

    fn waiting(&self) -> usize {
        self.leases.values().map(|held| held.unanswered.len()).sum()
    }

    fn fence(&self, lease: &Lease) -> Option<Epoch> {
        Some(self.fences.get(&(lease.run.clone(), lease.work.clone()))?.epoch)
    }
}

/// The lease an assignment is held under.
pub fn lease_of(assignment: &Assignment) -> Lease {
    Lease { run: assignment.run.clone(), work: assignment.work.clone(), epoch: assignment.epoch }
}

/// Whether a fact ends its lease.
pub fn ends(fact: &Fact) -> bool {
    match fact {
        Fact::Accepted | Fact::Started(_) => false,
        Fact::Delivered(_) | Fact::Failed(_) | Fact::Stopped(_) | Fact::Measured(_) => true,
    }
}

//! Who gets a slot: attempts share `slots`, checks have one of their own beside them.
//!
//! Not here: whether a lease may begin at all; the outbox knows what was already held.

use std::collections::{BTreeMap, VecDeque};

use ganger_shared::ids::WorkId;
use ganger_shared::link::Lease;

/// Checks that may run beside the attempts.
pub const CHECK_SLOTS: usize = 1;

/// Whether new work is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intake {
    /// Yes.
    #[default]
    Open,
    /// The worker drains: what the coordinator had already granted still runs.
    Draining,
    /// The worker's process ends: nothing begins any more.
    Leaving,
}

/// What becomes of an offered lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// It begins now.
    Begin,
    /// It begins when a slot of its kind is free.
    Wait,
    /// It does not begin here.
    Refused(Refusal),
}

/// Why a lease does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The process is ending.
    #[error("the worker's process is ending")]
    Leaving,
    /// As much waits as may wait.
    #[error("no slot is free and {waiting} leases wait already")]
    Crowded {
        /// How many.
        waiting: usize,
    },
}

/// The two kinds of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Attempt,
    Check,
}

fn kind(lease: &Lease) -> Kind {
    match lease.work {
        WorkId::Attempt(_) => Kind::Attempt,
        WorkId::Check(_) => Kind::Check,
    }
}

/// The slots of one worker and who is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    attempts_max: usize,
    busy: BTreeMap<Lease, Kind>,
    waiting: VecDeque<Lease>,
    intake: Intake,
}

impl Slots {
    /// Free slots for this many attempts.
    pub fn new(attempts_max: usize) -> Self {
        Self { attempts_max, busy: BTreeMap::new(), waiting: VecDeque::new(), intake: Intake::Open }
    }

    /// Gives an accepted lease a slot, or its place in the queue.
    ///
    /// The coordinator grants no more than there are slots; a lease that comes while its slot is
    /// still being cleaned waits, and no more of them than there are slots.
    pub fn offer(&mut self, lease: &Lease) -> Placement {
        if self.intake == Intake::Leaving {
            return Placement::Refused(Refusal::Leaving);
        }
        if self.has_room(kind(lease)) {
            self.busy.insert(lease.clone(), kind(lease));
            return Placement::Begin;
        }
        let waiting = self.waiting.len();
        if waiting >= self.attempts_max + CHECK_SLOTS {
            return Placement::Refused(Refusal::Crowded { waiting });
        }
        self.waiting.push_back(lease.clone());
        Placement::Wait
    }

    /// Frees the slot or the place of an ended lease; returns those that begin now.
    pub fn release(&mut self, lease: &Lease) -> Vec<Lease> {
        self.busy.remove(lease);
        self.waiting.retain(|other| other != lease);
        let mut begin = Vec::new();
        for other in std::mem::take(&mut self.waiting) {
            if self.intake != Intake::Leaving && self.has_room(kind(&other)) {
                self.busy.insert(other.clone(), kind(&other));
                begin.push(other);
            } else {
                self.waiting.push_back(other);
            }
        }
        begin
    }

    /// Takes less from now on; a worker that leaves does not come back to draining.
    pub fn close(&mut self, intake: Intake) {
        if self.intake != Intake::Leaving {
            self.intake = intake;
        }
    }

    /// Whether new work is taken.
    pub fn intake(&self) -> Intake {
        self.intake
    }

    /// Whether this lease waits for a slot.
    pub fn waits(&self, lease: &Lease) -> bool {
        self.waiting.contains(lease)
    }

    /// Slots for attempts in use or spoken for.
    pub fn busy_attempts(&self) -> usize {
        self.in_use(Kind::Attempt)
            + self.waiting.iter().filter(|lease| kind(lease) == Kind::Attempt).count()
    }

    fn in_use(&self, wanted: Kind) -> usize {
        self.busy.values().filter(|kind| **kind == wanted).count()
    }

    fn has_room(&self, kind: Kind) -> bool {
        let max = match kind {
            Kind::Attempt => self.attempts_max,
            Kind::Check => CHECK_SLOTS,
        };
        self.in_use(kind) < max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{attempt_lease, check_lease};

    #[test]
    fn a_check_has_a_slot_beside_the_attempts() {
        let mut slots = Slots::new(1);
        assert_eq!(slots.offer(&attempt_lease("a", 1)), Placement::Begin);
        assert_eq!(slots.offer(&check_lease("a", 1)), Placement::Begin);
        assert_eq!(slots.offer(&attempt_lease("b", 1)), Placement::Wait);
        assert_eq!(slots.offer(&check_lease("b", 1)), Placement::Wait);
        assert_eq!(slots.release(&check_lease("a", 1)), vec![check_lease("b", 1)]);
        assert_eq!(slots.release(&attempt_lease("a", 1)), vec![attempt_lease("b", 1)]);
    }

    #[test]
    fn no_more_wait_than_there_are_slots() {
        let mut slots = Slots::new(1);
        for name in ["a", "b", "c"] {
            assert!(!matches!(slots.offer(&attempt_lease(name, 1)), Placement::Refused(_)));
        }
        let crowded = Placement::Refused(Refusal::Crowded { waiting: 2 });
        assert_eq!(slots.offer(&attempt_lease("d", 1)), crowded);
    }

    #[test]
    fn a_leaving_worker_begins_nothing_not_even_what_waited() {
        let mut slots = Slots::new(1);
        slots.offer(&attempt_lease("a", 1));
        slots.offer(&attempt_lease("b", 1));
        slots.close(Intake::Leaving);
        slots.close(Intake::Draining);
        let leaving = Placement::Refused(Refusal::Leaving);
        assert_eq!(slots.offer(&attempt_lease("c", 1)), leaving);
        assert_eq!(slots.release(&attempt_lease("a", 1)), vec![]);
        assert!(slots.waits(&attempt_lease("b", 1)));
    }
}

//! What becomes due when, by the coordinator's monotonic clock.

use std::collections::BTreeSet;

use ganger_shared::ids::WorkerId;
use ganger_shared::link::Lease;

use super::wants::WantKey;

/// What becomes due. At one moment leases end before their worker is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A lease ends.
    Lease(Lease),
    /// A worker becomes suspect or lost.
    Worker(WorkerId),
    /// An offer lapses.
    Offer(u64),
    /// A want may be placed.
    Want(WantKey),
}

/// All of them, soonest first. Whoever arms one remembers its time, to disarm it.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers(BTreeSet<(u64, Timer)>);

impl Timers {
    pub(super) fn arm(&mut self, at_ms: u64, timer: Timer) {
        self.0.insert((at_ms, timer));
    }

    pub(super) fn disarm(&mut self, at_ms: u64, timer: Timer) {
        self.0.remove(&(at_ms, timer));
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.0.first().map(|(at_ms, _)| *at_ms)
    }

    /// Takes the first that is due.
    pub(super) fn due(&mut self, now_ms: u64) -> Option<Timer> {
        self.next().filter(|at_ms| *at_ms <= now_ms)?;
        self.0.pop_first().map(|(_, timer)| timer)
    }

    /// Puts off everything that waits for a sign of life.
    pub(super) fn put_off(&mut self, by_ms: u64) {
        self.0 = std::mem::take(&mut self.0)
            .into_iter()
            .map(|(at_ms, timer)| match timer {
                Timer::Lease(_) | Timer::Worker(_) | Timer::Offer(_) => {
                    (at_ms.saturating_add(by_ms), timer)
                }
                Timer::Want(_) => (at_ms, timer),
            })
            .collect();
    }
}

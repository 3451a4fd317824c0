//! Time as an attempt counts it: only while its host is awake.
//!
//! Two clocks come in. The monotonic one is counted, but never more than `GAP_MAX_MS` between two
//! looks, because a longer gap means that nothing of this host ran. A wall clock that ran ahead of
//! the monotonic one means the same: the kernel stops the monotonic clock while it sleeps.

use ganger_shared::time::{DurationMs, Timestamp};

/// The most that is counted between two looks at the clock.
pub const GAP_MAX_MS: u64 = 30_000;
/// How often the clock must be looked at for every gap to be seen as one.
pub const LOOK_MS: u64 = 10_000;
/// A wall clock that runs ahead by less is being set, not woken up.
const SUSPENSION_MIN_MS: u64 = 5_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of the monotonic clock since any fixed point.
    pub mono_ms: u64,
    /// The wall clock.
    pub wall: Timestamp,
}

/// Counts the milliseconds in which the host was awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    last: Now,
    counted_ms: u64,
}

impl Clock {
    /// A clock that has counted nothing yet.
    pub fn starting(now: Now) -> Self {
        Self { last: now, counted_ms: 0 }
    }

    /// Counts up to `now`; tells how long the host slept, if it did.
    pub fn look(&mut self, now: Now) -> Option<DurationMs> {
        let passed = now.mono_ms.saturating_sub(self.last.mono_ms);
        let wall = now.wall.since(self.last.wall).0;
        self.counted_ms += passed.min(GAP_MAX_MS);
        self.last = Now { mono_ms: self.last.mono_ms.max(now.mono_ms), wall: now.wall };
        let stopped = wall.saturating_sub(passed);
        let stopped = if stopped >= SUSPENSION_MIN_MS { stopped } else { 0 };
        let slept = passed.saturating_sub(GAP_MAX_MS) + stopped;
        (slept > 0).then_some(DurationMs(slept))
    }

    /// What is counted so far.
    pub fn counted(&self) -> DurationMs {
        DurationMs(self.counted_ms)
    }

    /// The count at the moment the monotonic clock showed `mono_ms`, at most now.
    pub fn counted_at(&self, mono_ms: u64) -> DurationMs {
        let ago = self.last.mono_ms.saturating_sub(mono_ms);
        DurationMs(self.counted_ms.saturating_sub(ago))
    }

    /// When the monotonic clock will show that the count has reached `due`, if the host stays awake
    /// and the clock is looked at as often as it must be.
    pub fn look_again(&self, due: Option<DurationMs>) -> u64 {
        let wait = due.map_or(LOOK_MS, |due| due.0.saturating_sub(self.counted_ms));
        self.last.mono_ms + wait.min(LOOK_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64, wall_ms: i64) -> Now {
        Now { mono_ms, wall: Timestamp::from_unix_ms(wall_ms) }
    }

    #[test]
    fn a_sleeping_host_counts_nothing_whichever_clock_shows_it() {
        let mut clock = Clock::starting(at(0, 0));
        assert_eq!(clock.look(at(10_000, 10_000)), None);
        assert_eq!(clock.look(at(20_000, 3_620_000)), Some(DurationMs(3_600_000)));
        assert_eq!(clock.counted(), DurationMs(20_000));
        assert_eq!(clock.look(at(3_620_000, 7_220_000)), Some(DurationMs(3_570_000)));
        assert_eq!(clock.counted(), DurationMs(50_000));
    }

    /// P030: a wall clock that is set back or forth a little moves no timer.
    #[test]
    fn setting_the_wall_clock_moves_no_timer() {
        let mut clock = Clock::starting(at(0, 1_000_000));
        assert_eq!(clock.look(at(1_000, 400_000)), None);
        assert_eq!(clock.look(at(2_000, 401_900)), None);
        assert_eq!(clock.counted(), DurationMs(2_000));
    }

    #[test]
    fn a_clock_is_looked_at_when_due_and_never_too_rarely() {
        let clock = Clock::starting(at(500, 0));
        assert_eq!(clock.look_again(Some(DurationMs(200))), 700);
        assert_eq!(clock.look_again(Some(DurationMs(86_400_000))), 500 + LOOK_MS);
        assert_eq!(clock.look_again(None), 500 + LOOK_MS);
    }
}

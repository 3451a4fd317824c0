//! One machine's clocks: a wall clock that may be wrong, and a monotonic one that stops in its sleep.
//!
//! Not here: when hosts sleep or are set; the faults decide that.

use ganger_shared::time::Timestamp;

/// When every simulated world begins, in milliseconds since 1970.
const DAWN_MS: i64 = 1_700_000_000_000;

/// A machine that runs one of our processes.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "the unit stands last in every length of time")]
pub(crate) struct Host {
    /// How far its wall clock is ahead.
    pub(crate) skew_ms: i64,
    /// How long it has slept so far, by the world's time.
    slept_ms: u64,
    /// Nothing runs on it before this time.
    pub(crate) still_until_ms: u64,
}

impl Host {
    pub(crate) fn mono_ms(&self, now: u64) -> u64 {
        now.saturating_sub(self.slept_ms)
    }

    pub(crate) fn wall(&self, now: u64) -> Timestamp {
        Timestamp::from_unix_ms(DAWN_MS + i64::try_from(now).unwrap_or(i64::MAX / 2) + self.skew_ms)
    }

    /// Its processes are stopped for a while; its clocks go on.
    pub(crate) fn freeze(&mut self, now: u64, for_ms: u64) {
        self.still_until_ms = self.still_until_ms.max(now + for_ms);
    }

    /// It sleeps: its monotonic clock stands still too.
    pub(crate) fn sleep(&mut self, now: u64, for_ms: u64) {
        if self.still_until_ms <= now {
            self.still_until_ms = now + for_ms;
            self.slept_ms += for_ms;
        }
    }
}

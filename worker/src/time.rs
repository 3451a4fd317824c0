//! The two clocks of this process, read in one place and handed in everywhere else.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ganger_shared::time::Timestamp;
use ganger_worker_core::clock::Now;

/// Reads both clocks; copies of one timer agree about the monotonic one.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    start: Instant,
}

impl Timer {
    /// A timer whose monotonic clock shows 0 now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// What both clocks show.
    pub fn now(&self) -> Now {
        Now { mono_ms: millis(self.start.elapsed()), wall: wall() }
    }

    /// How long it is until the monotonic clock shows this.
    pub fn until(&self, mono_ms: u64) -> Duration {
        Duration::from_millis(mono_ms.saturating_sub(millis(self.start.elapsed())))
    }
}

/// What the wall clock shows; before 1970 counts as 1970.
fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

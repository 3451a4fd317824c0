//! The coordinator's two clocks: UTC for what is journalled and shown, a monotonic one for leases.
//!
//! The only place of this crate that reads either.

use std::time::{SystemTime, UNIX_EPOCH};

use ganger_shared::time::Timestamp;
use tokio::time::Instant;

/// A clock that started with the process.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the monotonic clock.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Milliseconds since the start, never going back.
    pub fn mono_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Now, in UTC.
    pub fn utc(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

//! What everybody may see of running attempts without asking them: the beats read this.
//!
//! One writer per value (each attempt its own, the supervisor the list), so nothing is locked and no
//! beat waits for anybody. Not here: the beats.

use std::collections::BTreeMap;

use ganger_shared::link::{Beat, Lease, Progress};
use ganger_shared::text;
use ganger_shared::time::DurationMs;
use tokio::sync::watch;

use crate::outbox::Owed;
use crate::time::Timer;

/// The longest last line that is shown.
const LAST_LINE_BYTES: usize = 200;

/// What is seen of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its phase.
    pub phase: &'static str,
    /// Lines it has printed.
    pub lines: u64,
    /// When it last printed, or began, by the monotonic clock.
    pub heard_ms: u64,
    /// The last line.
    pub last_line: String,
}

impl Observed {
    /// An attempt that begins now.
    pub fn beginning(now_ms: u64) -> Self {
        Self { phase: "preparing", lines: 0, heard_ms: now_ms, last_line: String::new() }
    }

    /// It printed these lines.
    pub fn heard(&mut self, now_ms: u64, lines: u64, last_line: String) {
        self.lines += lines;
        self.heard_ms = now_ms;
        self.last_line = text::cut_bytes(last_line, LAST_LINE_BYTES);
    }
}

/// All attempts of this worker, and how much room there is.
#[derive(Debug, Clone, Default)]
pub struct Board {
    /// Each running attempt.
    pub attempts: BTreeMap<Lease, watch::Receiver<Observed>>,
    /// Slots for attempts in use or spoken for.
    pub busy: u32,
    /// No new work is wanted.
    pub draining: bool,
}

impl Board {
    /// The beat that says all this. Every lease the outbox holds is named: a lease that is not in a
    /// beat is one the worker does not have.
    pub fn beat(&self, owed: &Owed, slots: u32, timer: &Timer) -> Beat {
        let now = timer.now();
        let progress = |lease: &Lease| {
            let observed = self.attempts.get(lease).map(|seen| seen.borrow().clone());
            let quiet =
                observed.as_ref().map_or(0, |seen| now.mono_ms.saturating_sub(seen.heard_ms));
            let observed = observed.unwrap_or_else(|| Observed {
                phase: "accepted",
                ..Observed::beginning(now.mono_ms)
            });
            Progress {
                lease: lease.clone(),
                phase: observed.phase.to_owned(),
                lines: observed.lines,
                quiet_ms: DurationMs(quiet),
                last_line: observed.last_line,
            }
        };
        Beat {
            live: owed.live.iter().map(progress).collect(),
            // A worker whose outbox is full has no slot to give.
            busy: if owed.full { slots } else { self.busy },
            sent_at: now.wall,
            draining: self.draining,
        }
    }
}

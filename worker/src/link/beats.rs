//! Beats: from a task of their own, so that nothing an attempt or a transfer does delays them.
//!
//! Not here: what a beat says (`attempts/board.rs`).

use std::sync::Arc;

use ganger_proto::v1;
use ganger_shared::link::{Welcome, WorkerSays};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::attempts::board::Board;
use crate::outbox::Owed;
use crate::time::Timer;

/// What the beats of one connection need.
pub(super) struct Beats {
    pub(super) board: watch::Receiver<Board>,
    pub(super) owed: watch::Receiver<Arc<Owed>>,
    pub(super) slots: u32,
    pub(super) timer: Timer,
    pub(super) out: mpsc::Sender<v1::WorkerMessage>,
}

impl Beats {
    /// Beats until the connection is gone or has not taken a beat for a whole lease; says which.
    ///
    /// A worker that begins to drain says so at once: until the coordinator knows, it would be
    /// offered again what it is just handing back.
    pub(super) async fn beat(mut self, welcome: Welcome) -> &'static str {
        let beat_ms = welcome.beat_ms.0.max(1);
        let missed_max = (welcome.lease_ms.0 / beat_ms).max(1);
        let mut ticks = interval(std::time::Duration::from_millis(beat_ms));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut missed = 0;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = begins_to_drain(&mut self.board) => {}
            }
            let owed = Arc::clone(&self.owed.borrow());
            let beat = self.board.borrow_and_update().beat(&owed, self.slots, &self.timer);
            match self.out.try_send(WorkerSays::Beat(beat).into()) {
                Ok(()) => missed = 0,
                Err(TrySendError::Closed(_)) => return "the control stream was closed",
                Err(TrySendError::Full(_)) => missed += 1,
            }
            if missed >= missed_max {
                return "the coordinator took no beat for a whole lease";
            }
        }
    }
}

/// Ends when no new work is wanted any more, and that was not said yet.
async fn begins_to_drain(board: &mut watch::Receiver<Board>) {
    let drained_before = board.borrow().draining;
    if drained_before || board.wait_for(|board| board.draining).await.is_err() {
        // It drains already, or nobody writes the board: the ticks say the rest.
        std::future::pending::<()>().await;
    }
}

//! What every actor of the coordinator is handed: the store, the clock, and whom it may tell.

use std::sync::Arc;

use ganger_shared::limits::Limits;
use ganger_telemetry::Projector;
use ractor::ActorRef;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::fleet::FleetMessage;
use crate::journal::EventStore;
use crate::runs::RunsMessage;
use crate::trees::TreesMessage;

/// Runs that are folded at once: their events are read on threads of their own.
pub const FOLDS: usize = 4;

/// Handles that are cheap to clone; calls go down, casts go up.
#[derive(Clone)]
pub struct House {
    /// The journal.
    pub store: EventStore,
    /// The clocks.
    pub clock: Clock,
    /// The limits in force.
    pub limits: Limits,
    /// Places for folding runs.
    pub folds: Arc<Semaphore>,
    /// Where spans go.
    pub projector: Projector,
    /// Workers and slots.
    pub fleet: ActorRef<FleetMessage>,
    /// All runs.
    pub runs: ActorRef<RunsMessage>,
    /// Mirrors and branches.
    pub trees: ActorRef<TreesMessage>,
}

//! What the fleet is told and what it answers.

use ganger_shared::event::{FleetEvent, LossReason};
use ganger_shared::fleet::WorkerFacts;
use ganger_shared::ids::{InstanceId, ProjectId, RepositoryId, RunId, UnitId, WorkerId};
use ganger_shared::link::{Beat, Lease};
use ganger_shared::time::Timestamp;
use thiserror::Error;

use crate::run::{EffectId, Offer, SlotWant};

/// When an input was taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the coordinator's monotonic clock: all arithmetic on leases, beats and offers.
    pub ms: u64,
    /// UTC: what is journalled or shown, and what a run's `not_before` is compared with.
    pub at: Timestamp,
}

/// What the fleet is told.
#[derive(Debug, Clone)]
pub enum Input {
    /// Every run is folded and has asserted what it holds: from now on slots are offered.
    Open,
    /// A worker opened a stream.
    Attached(Box<Attached>),
    /// Every run named by `Output::Reconcile` has answered.
    Reconciled {
        /// Which worker.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
    },
    /// A stream ended.
    Detached {
        /// Whose.
        worker: WorkerId,
        /// Which stream; one that was superseded changes nothing.
        session: u64,
        /// The worker said that it leaves.
        goodbye: bool,
    },
    /// A worker lives.
    Beat {
        /// Which.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
        /// What it says.
        beat: Box<Beat>,
    },
    /// A run wants a slot; a repeat replaces the wish.
    Want(Box<Wanted>),
    /// It does not any more.
    Unwant {
        /// Which run.
        run: RunId,
        /// Which wish.
        id: EffectId,
    },
    /// A run holds a claim: a fact, taken also where it overlaps.
    ClaimHeld(Box<HeldClaim>),
    /// It does not any more.
    ClaimReleased {
        /// Which run.
        run: RunId,
        /// Whose files.
        unit: UnitId,
    },
    /// A run holds a lease; one not known yet gets a full fresh term.
    LeaseHeld(Box<HeldLease>),
    /// It ended.
    LeaseGone(Lease),
    /// An offer was taken, and this lease is in the journal.
    OfferTaken {
        /// Which offer.
        token: u64,
        /// The lease.
        lease: Lease,
    },
    /// An offer was not taken.
    OfferDeclined {
        /// Which.
        token: u64,
    },
    /// A run was folded anew: this is all it wants and holds; offers to it from before are void.
    Folded(Box<Folded>),
    /// Offer nothing more there.
    Cordon(WorkerId),
    /// Undo `Cordon` and `Drain`.
    Uncordon(WorkerId),
    /// Offer nothing more there, and let it run out.
    Drain(WorkerId),
    /// The coordinator's host stood still: nothing that waits for a sign of life ages by it.
    Suspended {
        /// For how long.
        by_ms: u64,
    },
    /// Deadlines may be due.
    Tick,
}

/// A worker's stream, opened.
#[derive(Debug, Clone)]
pub struct Attached {
    /// What the worker is and offers.
    pub facts: WorkerFacts,
    /// The caller's name for the stream; never used twice.
    pub session: u64,
    /// What it runs.
    pub live: Vec<Lease>,
    /// What ended there and is not acknowledged.
    pub finished: Vec<Lease>,
}

/// A run's wish for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The run.
    pub run: RunId,
    /// The run's project.
    pub project: ProjectId,
    /// The run's order among runs.
    pub run_priority: i32,
    /// Which wish.
    pub id: EffectId,
    /// The wish.
    pub want: SlotWant,
}

/// A claim that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldClaim {
    /// The run.
    pub run: RunId,
    /// Whose files.
    pub unit: UnitId,
    /// Of which repository.
    pub repository: RepositoryId,
    /// Which, as globs.
    pub files: Vec<String>,
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The lease.
    pub lease: Lease,
    /// The run's project.
    pub project: ProjectId,
    /// By which worker.
    pub worker: WorkerId,
    /// By which start of it.
    pub instance: InstanceId,
}

/// All that a run wants and holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The run.
    pub run: RunId,
    /// What it wants.
    pub wants: Vec<Wanted>,
    /// What it claims.
    pub claims: Vec<HeldClaim>,
    /// What it has leased out.
    pub leases: Vec<HeldLease>,
}

/// What one run must say about an attaching worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The run.
    pub run: RunId,
    /// What the worker runs of it.
    pub live: Vec<Lease>,
    /// What ended there and is not acknowledged.
    pub finished: Vec<Lease>,
}

/// What the fleet answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A slot for a run; it answers `OfferTaken` or `OfferDeclined`.
    Offer {
        /// To which run.
        run: RunId,
        /// The offer.
        offer: Offer,
        /// From here on, by `Now::ms`, a run declines instead of taking.
        lapses_ms: u64,
    },
    /// A lease ended without a word of its holder.
    LeaseEnded {
        /// Which.
        lease: Lease,
        /// How.
        reason: LossReason,
    },
    /// A beat names a lease that is not held: its run says whether to stop it.
    Unheld {
        /// Where.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
        /// What.
        lease: Lease,
    },
    /// Ask these runs about an attached worker, then say `Reconciled`; also if there are none.
    Reconcile {
        /// Which worker.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
        /// What each run is asked.
        runs: Vec<Inventory>,
    },
    /// A fact for the journal's stream `fleet`.
    Record(FleetEvent),
    /// The stream is not taken.
    Refuse {
        /// Which.
        session: u64,
        /// Why.
        refusal: Refusal,
    },
    /// Another stream took this one's place: close it.
    Superseded {
        /// Whose.
        worker: WorkerId,
        /// Which.
        session: u64,
    },
    /// What is shown of a worker changed.
    StateChanged {
        /// Which.
        worker: WorkerId,
    },
}

/// Why a worker's stream is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Another process with this identity is alive.
    #[error(
        "worker `{worker}` is alive as instance `{live}`: two processes share one data directory"
    )]
    SecondInstance {
        /// The identity.
        worker: WorkerId,
        /// Who has it.
        live: InstanceId,
    },
    /// The bound on enrolled workers is reached.
    #[error("{max} workers are enrolled, and no more are taken")]
    TooManyWorkers {
        /// The bound.
        max: usize,
    },
}

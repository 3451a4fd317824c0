//! What the fleet is told.

use ganger_coordinator_core::fleet::{Demand, Folded, HeldClaim};
use ganger_coordinator_core::run::{EffectId, SlotWant};
use ganger_shared::fleet::WorkerFacts;
use ganger_shared::ids::{InstanceId, ProjectId, RepositoryId, RunId, UnitId, WorkerId};
use ganger_shared::link::{Beat, CoordinatorSays, Hello, Lease, Progress};
use ganger_shared::view::WorkerView;
use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::house::House;
use crate::run::RunMessage;
use crate::session::{Outbound, SessionMessage};

/// What the fleet is told.
pub enum FleetMessage {
    /// Everything is in place.
    Begin(Box<House>),
    /// Every run is folded.
    Open,
    /// A worker opened a stream.
    Attach {
        /// What it said first.
        hello: Box<Hello>,
        /// The way out.
        outbound: Outbound,
        /// Its session, or why there is none.
        port: oneshot::Sender<Result<ActorRef<SessionMessage>, String>>,
    },
    /// A stream ended.
    Detached {
        /// Whose.
        worker: WorkerId,
        /// Its session.
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
        /// Its place among what the worker may say at once; given back when this was handled.
        place: OwnedSemaphorePermit,
    },
    /// Every run has spoken about a worker's inventory.
    Reconciled {
        /// Which.
        worker: WorkerId,
        /// Which start of it.
        instance: InstanceId,
    },
    /// A run is there: all it wants and holds.
    RunUp {
        /// What it wants and holds.
        folded: Box<Folded>,
        /// Its project.
        project: ProjectId,
        /// Its order among runs.
        priority: i32,
        /// Whom offers go to.
        actor: ActorRef<RunMessage>,
    },
    /// A run is over.
    RunDown {
        /// Which.
        run: RunId,
    },
    /// A run wants a slot.
    Want {
        /// Which run.
        run: RunId,
        /// Which wish.
        id: EffectId,
        /// The wish.
        want: Box<SlotWant>,
    },
    /// A run claims files.
    Claim(Box<HeldClaim>),
    /// An effect is not owed any more.
    Gone {
        /// By which run.
        run: RunId,
        /// Which.
        id: EffectId,
    },
    /// A lease ended.
    LeaseGone {
        /// Which.
        lease: Lease,
    },
    /// An offer was taken.
    OfferTaken {
        /// Which.
        token: u64,
        /// The lease.
        lease: Lease,
    },
    /// An offer was not taken.
    OfferDeclined {
        /// Which.
        token: u64,
    },
    /// Something for a worker; lost if it is not attached, and handed out again when it is.
    Say {
        /// For whom.
        worker: WorkerId,
        /// What.
        says: Box<CoordinatorSays>,
    },
    /// Deadlines may be due.
    Tick,
    /// List workers.
    List(oneshot::Sender<Vec<WorkerView>>),
    /// What the workers that are here offer.
    Facts(oneshot::Sender<Vec<WorkerFacts>>),
    /// What is wanted of the fleet.
    Demand(oneshot::Sender<Vec<Demand>>),
    /// How far a run's live work is, from the last beats.
    Progress {
        /// Which run.
        run: RunId,
        /// The answer.
        port: oneshot::Sender<Vec<Progress>>,
    },
    /// Why a unit does not run.
    Explain {
        /// Which run.
        run: RunId,
        /// Which unit.
        unit: UnitId,
        /// The answer: its place in the queue, and reasons.
        port: oneshot::Sender<Option<(Option<u64>, Vec<String>)>>,
    },
    /// Offer nothing more there; `Drain` and `Uncordon` likewise.
    Cordon(WorkerId, Cordon),
}

/// What people do to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cordon {
    /// No new work.
    Cordon,
    /// No new work, and it runs out.
    Drain,
    /// New work again.
    Uncordon,
}

/// The claim of a run's unit, for [`FleetMessage::Claim`].
pub fn claim(
    run: RunId,
    unit: UnitId,
    (repository, files): (RepositoryId, Vec<String>),
) -> FleetMessage {
    FleetMessage::Claim(Box::new(HeldClaim { run, unit, repository, files }))
}

//! What can be asked of a run.

use std::collections::BTreeMap;

use ganger_shared::actor::Actor;
use ganger_shared::delivery::Place;
use ganger_shared::digest::Digest;
use ganger_shared::event::{LossReason, Submitted};
use ganger_shared::failure::Failure;
use ganger_shared::ids::{
    AttemptId, CommitId, Epoch, IdempotencyKey, InstanceId, TreeId, WorkId, WorkerId,
};
use ganger_shared::link::{Answer, Lease, Report};
use ganger_shared::plan;
use ganger_shared::rejection::Rejection;
use ganger_shared::time::Timestamp;

use super::effect::WantKind;

/// One command, and who gives it when.
#[derive(Debug, Clone)]
pub struct Command {
    /// When it was taken up; UTC.
    pub now: Timestamp,
    /// Whose it is.
    pub by: Actor,
    /// What is asked.
    pub verb: Verb,
}

/// What makes a call of a client safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The client's name for the call.
    pub key: IdempotencyKey,
    /// The digest of its body.
    pub body: Digest,
    /// The sequence the client last saw on the addressed object.
    pub expected: Option<u64>,
}

/// A free slot offered to a want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The fleet's name for the offer.
    pub token: u64,
    /// What it is for.
    pub want: WantKind,
    /// Where.
    pub worker: WorkerId,
    /// Which start of it.
    pub instance: InstanceId,
    /// Of a check: where that is, relative to the author.
    pub place: Option<Place>,
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum Verb {
    /// Begin.
    Submit {
        /// Makes it safe to repeat.
        call: Call,
        /// Everything but tasks and units.
        submitted: Box<Submitted>,
        /// The tasks.
        tasks: Vec<plan::Task>,
        /// The units, defaults filled in.
        units: Vec<plan::Unit>,
    },
    /// Take a free slot.
    TakeSlot(Offer),
    /// A worker's fact.
    Report(Box<Report>),
    /// A lease ended without a word.
    LeaseEnded {
        /// Which work.
        work: WorkId,
        /// Under which fence.
        epoch: Epoch,
        /// How.
        reason: LossReason,
    },
    /// A worker attached with this inventory.
    Reconcile {
        /// Which.
        worker: WorkerId,
        /// Which start.
        instance: InstanceId,
        /// What it runs of this run.
        live: Vec<Lease>,
        /// What ended there and is not acknowledged.
        finished: Vec<Lease>,
    },
    /// A worker's beat names a lease the fleet does not know.
    Unheld {
        /// Which worker.
        worker: WorkerId,
        /// The lease.
        lease: Lease,
    },
    /// A delivery stands in the mirror.
    Taken {
        /// Which.
        attempt: AttemptId,
    },
    /// It does not: the bundle or the tree is not what was reported.
    TakeFailed {
        /// Which.
        attempt: AttemptId,
        /// Why.
        failure: Failure,
    },
    /// A merge was computed.
    Merged {
        /// Which.
        attempt: AttemptId,
        /// Onto which tip.
        parent: CommitId,
        /// The tree, and a commit of it.
        result: Result<(TreeId, CommitId), Vec<String>>,
    },
    /// The branch stands at the commit that was intended.
    ApplyDone {
        /// Which.
        attempt: AttemptId,
        /// The new tip.
        commit: CommitId,
        /// Its tree.
        tree: TreeId,
    },
    /// The branch stands elsewhere.
    ApplyRefused {
        /// Which.
        attempt: AttemptId,
        /// What was found.
        found: Option<CommitId>,
    },
    /// Deadlines may be due.
    Tick,
    /// Cancel a unit and what depends on it.
    Cancel {
        /// Makes it safe to repeat.
        call: Call,
        /// Which.
        unit: String,
        /// Why.
        reason: String,
    },
    /// Stop everything.
    Stop {
        /// Makes it safe to repeat.
        call: Call,
        /// Why.
        reason: String,
        /// Without grace.
        now: bool,
    },
    /// Start nothing new.
    Pause {
        /// Makes it safe to repeat.
        call: Call,
        /// Why.
        reason: String,
    },
    /// Go on after a pause.
    Resume {
        /// Makes it safe to repeat.
        call: Call,
    },
}

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Carried out, now or (`replayed`) since before.
    Done {
        /// The run's sequence after it.
        sequence: u64,
        /// It was carried out before, under the same key.
        replayed: bool,
    },
    /// A slot was taken; this is the lease.
    Leased(Lease),
    /// A slot was not taken: the want is gone, or the ledger has nothing left.
    Declined,
    /// What became of a report.
    Answered(Answer),
    /// What a worker shall do with each lease it named or should have named.
    Reconciled {
        /// Go on.
        keep: Vec<Lease>,
        /// Stop and clean up.
        revoke: Vec<Lease>,
    },
    /// Refused; nothing was done.
    Rejected(Rejection),
}

impl Reply {
    /// The keys a run remembers, for tests of idempotency.
    pub fn replayed(&self) -> bool {
        matches!(self, Self::Done { replayed: true, .. })
    }
}

/// The calls a run carried out, by key.
pub(super) type Calls = BTreeMap<IdempotencyKey, Digest>;

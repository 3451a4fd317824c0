//! The worker protocol (design section 6) as plain types; `proto` carries them.
//!
//! The worker dials. It says `Hello`, hands in what was not acknowledged, hears for every piece of
//! work it holds whether to keep it, and only then gets new work. Reports are numbered per lease and
//! stay in the worker's outbox until they are answered; beats are not kept by anyone.

use serde::{Deserialize, Serialize};

use crate::delivery::{CheckResult, Delivery, Usage};
use crate::digest::{ArtifactRef, Digest};
use crate::failure::Failure;
use crate::fleet::WorkerFacts;
use crate::ids::{Epoch, RunId, WorkId};
use crate::spec::Assignment;
use crate::time::{DurationMs, Timestamp};

/// The protocol this build speaks. It also speaks the version before.
pub const PROTOCOL: u32 = 1;
/// The oldest protocol this build speaks.
pub const PROTOCOL_MIN: u32 = 1;

/// A place in a coordinator's journal, remembered outside it (design section 9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The store's identity.
    pub store_id: String,
    /// Rises when a loss was accepted; outranks every epoch before.
    pub generation: u64,
    /// The last frame written.
    pub log_seq: u64,
    /// The hash of that frame's event.
    pub hash: Digest,
}

/// One leased piece of work, fenced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The attempt or check.
    pub work: WorkId,
    /// The fence.
    pub epoch: Epoch,
}

/// The first message of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest protocol the worker speaks.
    pub protocol_min: u32,
    /// The newest.
    pub protocol_max: u32,
    /// What it is and offers.
    pub facts: WorkerFacts,
    /// Work it runs now.
    pub live: Vec<Lease>,
    /// Work that ended here whose reports are not all answered.
    pub finished: Vec<Lease>,
    /// The furthest journal place it was ever shown.
    pub seen: Option<Anchor>,
    /// The worker's clock, for the skew gauge only.
    pub sent_at: Timestamp,
}

/// The coordinator's answer to `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol both speak from here on.
    pub protocol: u32,
    /// How often the worker beats.
    pub beat_ms: DurationMs,
    /// How long a lease outlives the last beat.
    pub lease_ms: DurationMs,
    /// Where the journal stands.
    pub anchor: Anchor,
}

/// A worker lives, and so do these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Everything it holds a lease on.
    pub live: Vec<Progress>,
    /// Slots in use.
    pub busy: u32,
    /// The worker's clock, for the skew gauge only.
    pub sent_at: Timestamp,
    /// The worker drains: it takes no new work.
    pub draining: bool,
}

/// How far one piece of work is; shown, never journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which.
    pub lease: Lease,
    /// The phase it is in, as the worker's core names it.
    pub phase: String,
    /// Lines of output so far.
    pub lines: u64,
    /// Milliseconds since the last output.
    pub quiet_ms: DurationMs,
    /// The last line of output, cut to 200 bytes.
    pub last_line: String,
}

/// One fact about one lease, numbered from 1 within it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which lease.
    pub lease: Lease,
    /// Its number.
    pub number: u32,
    /// The fact.
    pub fact: Fact,
}

/// What a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// The lease is on the worker's disk; the tree is being made.
    Accepted,
    /// The program or agent runs.
    Started(Started),
    /// It ended well and this is what it hands in.
    Delivered(Box<Ended<Delivery>>),
    /// It failed.
    Failed(Box<Ended<Failed>>),
    /// It was stopped as asked.
    Stopped(Ended<Stopped>),
    /// A check was measured.
    Measured(Box<Ended<CheckResult>>),
}

/// How a program was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The process id on the worker.
    pub pid: u32,
    /// Whether it sees only its own directory.
    pub isolated: bool,
    /// How its tree of processes is held together: `pid_namespace`, `cgroup` or `descendants`.
    pub containment: String,
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended<T> {
    /// The end itself.
    pub end: T,
    /// How long it was at work.
    pub active_ms: DurationMs,
    /// The whole output that was kept.
    pub output: Option<ArtifactRef>,
    /// Output was longer than what was kept.
    pub output_truncated: bool,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// What it left: kept for people and judges, never accepted by policy (P98c).
    pub left: Option<Delivery>,
    /// What it used.
    pub usage: Usage,
}

/// A stopped attempt or check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The worker has seen that nothing of its tree is left.
    pub confirmed: bool,
    /// What it used.
    pub usage: Usage,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is in the journal, now or since before.
    Recorded,
    /// The lease is not the newest; what is useful of it was kept.
    Stale,
    /// The run is over.
    RunClosed,
    /// No such run here.
    UnknownRun,
    /// Nothing can be said now; keep it and send it again.
    RetryLater,
}

impl Answer {
    /// Whether the worker may forget the report.
    pub fn settles(self) -> bool {
        match self {
            Self::Recorded | Self::Stale | Self::RunClosed | Self::UnknownRun => true,
            Self::RetryLater => false,
        }
    }
}

/// Why work is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody cancelled the unit.
    Cancelled,
    /// The run is being stopped.
    RunStopping,
    /// It ran longer than it may, and its worker did not end it.
    Timeout,
    /// The coordinator does not know this lease, or a newer one was granted.
    Revoked,
    /// A check is not wanted any more.
    Withdrawn,
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum WorkerSays {
    /// First of all.
    Hello(Box<Hello>),
    /// Every beat.
    Beat(Beat),
    /// A fact.
    Report(Box<Report>),
    /// The worker leaves on purpose.
    Goodbye {
        /// Why.
        reason: String,
    },
}

/// What a coordinator says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum CoordinatorSays {
    /// The answer to `Hello`.
    Welcome(Welcome),
    /// This lease stands; go on.
    Keep(Lease),
    /// Stop this and clean up after it.
    Stop {
        /// Which.
        lease: Lease,
        /// Why.
        reason: StopReason,
        /// Kill at once.
        now: bool,
    },
    /// New work.
    Assign(Box<Assignment>),
    /// What became of a report.
    Answered {
        /// Of which lease.
        lease: Lease,
        /// Which report.
        number: u32,
        /// What became of it.
        answer: Answer,
        /// Where the journal stands, for the worker to remember.
        anchor: Option<Anchor>,
    },
    /// The coordinator leaves on purpose.
    Goodbye {
        /// Why.
        reason: String,
    },
}

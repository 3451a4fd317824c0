//! The numbers of design section 12: every default and every cap in one place.
//!
//! Operator configuration may lower a default, or raise it up to its cap.

use serde::{Deserialize, Serialize};

use crate::time::DurationMs;

/// Units one run may plan, all revisions counted (R011).
pub const UNITS: u32 = 64;
/// The most units a plan may ask for unless the operator allows more.
pub const UNITS_CAP: u32 = 512;
/// The most the operator may allow.
pub const UNITS_OPERATOR_CAP: u32 = 100_000;
/// Attempts one unit gets before a person must say otherwise (R065).
pub const ATTEMPTS_PER_UNIT: u32 = 3;
/// Attempts of one unit that may be lost to dead workers.
pub const LOSSES_PER_UNIT: u32 = 5;
/// Times a check is measured again after its lease was lost.
pub const CHECK_RERUNS: u32 = 2;
/// How often a worker says that it lives.
pub const BEAT: DurationMs = DurationMs::from_secs(5);
/// Beats that may be missing before a worker is suspect.
pub const SUSPECT_BEATS: u64 = 3;
/// How long a lease lasts after the last beat the coordinator received.
pub const LEASE: DurationMs = DurationMs::from_secs(30);
/// How long an offered slot waits to be taken.
pub const OFFER: DurationMs = DurationMs::from_secs(2);
/// How long an attempt may take.
pub const ATTEMPT_TIMEOUT: DurationMs = DurationMs::from_mins(30);
/// The most a plan may ask for one attempt of an agent.
pub const ATTEMPT_TIMEOUT_CAP: DurationMs = DurationMs::from_mins(120);
/// How long an attempt may print nothing.
pub const SILENCE: DurationMs = DurationMs::from_mins(10);
/// How long a check may take unless its plan says otherwise.
pub const CHECK_TIMEOUT: DurationMs = DurationMs::from_mins(10);
/// How long each rung of the stop ladder waits for the tree to end (P021).
pub const STOP_GRACE: DurationMs = DurationMs::from_secs(10);
/// How long an attempt's tree may take to be prepared.
pub const PREPARE: DurationMs = DurationMs::from_mins(10);
/// The wait before an automatic retry (R066).
pub const RETRY_DELAY: DurationMs = DurationMs::from_secs(5);
/// The largest plan text.
pub const PLAN_BYTES: u64 = 4 << 20;
/// The largest plan text an operator may allow.
pub const PLAN_BYTES_CAP: u64 = 64 << 20;
/// The largest patch, bundle or other artifact.
pub const ARTIFACT_BYTES: u64 = 1 << 30;
/// One chunk of an artifact on the wire.
pub const CHUNK_BYTES: usize = 64 << 10;
/// The largest event as stored.
pub const EVENT_BYTES: usize = 32 << 10;
/// The largest unit as planned, so that its event stays below `EVENT_BYTES`.
pub const UNIT_BYTES: usize = 24 << 10;
/// The longest summary in a delivery.
pub const SUMMARY_BYTES: usize = 8 << 10;
/// The longest list of changed paths in a delivery; the patch holds them all.
pub const CHANGED_BYTES: usize = 8 << 10;
/// The longest excerpt of an attempt's output (R180): three lines of 120 characters.
pub const EXCERPT_CHARS: usize = 400;
/// The longest log tail in an evidence record (R108): the last five lines.
pub const LOG_TAIL_CHARS: usize = 500;
/// The largest kept output file of one attempt.
pub const OUTPUT_BYTES: u64 = 64 << 20;
/// The longest line of output read as one.
pub const LINE_BYTES: usize = 1 << 20;
/// Events that wait for one watcher before it must resync.
pub const WATCH_QUEUE: usize = 1_024;
/// Commands a run decides as one batch.
pub const BATCH: usize = 64;
/// Rows of one page of a list.
pub const PAGE: usize = 500;

/// The times and sizes an operator may set for one coordinator and its workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The beat a worker keeps.
    pub beat_ms: DurationMs,
    /// How long a lease outlives the last beat.
    pub lease_ms: DurationMs,
    /// How long an offer waits.
    pub offer_ms: DurationMs,
    /// How long each rung of the stop ladder waits.
    pub grace_ms: DurationMs,
    /// How long a tree may take to be prepared.
    pub prepare_ms: DurationMs,
    /// The largest plan text.
    pub plan_bytes: u64,
    /// Units a plan may ask for.
    pub units_max: u32,
    /// The largest artifact.
    pub artifact_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            beat_ms: BEAT,
            lease_ms: LEASE,
            offer_ms: OFFER,
            grace_ms: STOP_GRACE,
            prepare_ms: PREPARE,
            plan_bytes: PLAN_BYTES,
            units_max: UNITS_CAP,
            artifact_bytes: ARTIFACT_BYTES,
        }
    }
}

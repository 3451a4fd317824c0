//! Why a command is refused: part of the API, shown to the user as it is.

use thiserror::Error;

use crate::actor::Role;
use crate::ids::{AttemptId, RunId, UnitId};
use crate::problem::Problem;

/// A refused command, with the ids inside. Nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// The plan has problems; all of them are here.
    #[error("the plan has {} problem(s)", problems.len())]
    Plan {
        /// Every problem found.
        problems: Vec<Problem>,
    },
    /// No run begins with this.
    #[error("no run `{run}`; `ganger get runs` lists them")]
    UnknownRun {
        /// What was asked for.
        run: String,
    },
    /// Several runs begin with this.
    #[error("`{run}` is the beginning of {} runs; write more of it", candidates.len())]
    AmbiguousRun {
        /// What was asked for.
        run: String,
        /// The runs it fits, at most 10.
        candidates: Vec<RunId>,
    },
    /// The run has no such unit.
    #[error("run {run} has no unit `{unit}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownUnit {
        /// The run.
        run: RunId,
        /// What was asked for.
        unit: String,
        /// The nearest name it has.
        nearest: Option<UnitId>,
    },
    /// The run has no such attempt.
    #[error("run {run} has no attempt `{attempt}`; `ganger get attempts {run}` lists them")]
    UnknownAttempt {
        /// The run.
        run: RunId,
        /// What was asked for.
        attempt: String,
    },
    /// The state allows no such command.
    #[error("{what} is {state}: {command} needs {needs}")]
    WrongState {
        /// The run or unit.
        what: String,
        /// The state it is in.
        state: String,
        /// The command.
        command: &'static str,
        /// The states it needs.
        needs: &'static str,
    },
    /// The addressed object changed since the caller looked.
    #[error(
        "{what} changed: you expected sequence {expected}, it is at {current}; look again and repeat with --expect {current}"
    )]
    StaleSequence {
        /// The run or unit.
        what: String,
        /// What the caller expected.
        expected: u64,
        /// Where it is.
        current: u64,
    },
    /// The same key was used for another call.
    #[error("key `{key}` was used for another call (body {first}, now {now}); use a new key")]
    KeyReused {
        /// The key.
        key: String,
        /// The digest of the first body.
        first: String,
        /// The digest of this one.
        now: String,
    },
    /// The principal may not.
    #[error(
        "`{principal}` has role {has}, this needs {needs}; ask for a token with `ganger token issue --role {needs}`"
    )]
    Forbidden {
        /// Whose token it was.
        principal: String,
        /// Its role.
        has: Role,
        /// What is needed.
        needs: Role,
    },
    /// The attempt is over, or its fence is old.
    #[error("attempt {attempt} is not live")]
    StaleAttempt {
        /// Which.
        attempt: AttemptId,
    },
    /// Another part is not built yet.
    #[error("{what} is not supported yet")]
    NotSupportedYet {
        /// What.
        what: &'static str,
    },
    /// The run cannot be folded until somebody looks at it.
    #[error(
        "run {run} is quarantined: {reason}; after repair: `ganger resume --after-repair {run}`"
    )]
    Quarantined {
        /// Which.
        run: RunId,
        /// What the fold said.
        reason: String,
    },
    /// Too much is waiting.
    #[error("{what} is full ({limit}); try again in a moment")]
    Busy {
        /// Which queue.
        what: &'static str,
        /// Its bound.
        limit: usize,
    },
    /// The store takes nothing more.
    #[error("the journal does not accept events: {reason}")]
    Journal {
        /// Why.
        reason: String,
    },
}

impl Rejection {
    /// The stable word for it, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "plan_problems",
            Self::UnknownRun { .. } => "unknown_run",
            Self::AmbiguousRun { .. } => "ambiguous_run",
            Self::UnknownUnit { .. } => "unknown_unit",
            Self::UnknownAttempt { .. } => "unknown_attempt",
            Self::WrongState { .. } => "wrong_state",
            Self::StaleSequence { .. } => "stale_sequence",
            Self::KeyReused { .. } => "key_reused",
            Self::Forbidden { .. } => "forbidden",
            Self::StaleAttempt { .. } => "stale_attempt",
            Self::NotSupportedYet { .. } => "not_supported_yet",
            Self::Quarantined { .. } => "quarantined",
            Self::Busy { .. } => "busy",
            Self::Journal { .. } => "journal",
        }
    }
}

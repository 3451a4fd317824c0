//! Why an attempt failed: one enum for coordinator and worker (R068, R069), and what may be done.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident => $word:literal, $retry:ident;)*) => {
        /// The class of a failure; decides who may retry it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FailureClass { $($(#[$doc])* $name,)* }

        impl FailureClass {
            /// Every class.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word for it in the journal, the API and reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|class| class.as_str() == word)
            }

            /// Who may try again after it.
            pub fn retry(self) -> Retry {
                match self { $(Self::$name => Retry::$retry,)* }
            }
        }
    };
}

/// Who may start another attempt after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The engine, under a breaker, without counting against the unit's declared retries.
    Transient,
    /// The engine, as often as the unit's `retry` declares.
    Declared,
    /// The engine, counted with the losses: nothing of it was the work's doing.
    Loss,
    /// Only a named person or supervisor.
    Command,
}

classes! {
    /// The provider asked to slow down.
    RateLimited => "rate_limited", Transient;
    /// The provider has no capacity.
    Overloaded => "overloaded", Transient;
    /// The connection to the provider failed.
    TransportFailed => "transport_failed", Transient;
    /// An answer broke off.
    StreamFailed => "stream_failed", Transient;
    /// Nothing was printed for the allowed silence.
    StreamStall => "stream_stall", Declared;
    /// The attempt took longer than it may.
    Timeout => "timeout", Declared;
    /// A person did not answer in time.
    HitlTimeout => "hitl_timeout", Command;
    /// The provider's quota is used up.
    QuotaExhausted => "quota_exhausted", Command;
    /// The provider refused the credentials.
    AuthFailed => "auth_failed", Command;
    /// The provider does not offer what was asked for.
    Unavailable => "unavailable", Command;
    /// The agent's program ended as it should not.
    CliCrash => "cli_crash", Declared;
    /// The agent's program was ended from outside.
    ProcessTerminated => "process_terminated", Declared;
    /// A hook of the unit failed.
    HookFailure => "hook_failure", Declared;
    /// A command unit's program ended with another exit code than 0.
    CommandFailed => "command_failed", Declared;
    /// What was handed in has not the promised form.
    InvalidResult => "invalid_result", Declared;
    /// A mechanical rule of the unit is not met.
    ValidationFailed => "validation_failed", Declared;
    /// What was handed in could not be stored.
    OutputRegistrationFailed => "output_registration_failed", Declared;
    /// Something outside the unit's files was written.
    ScopeViolation => "scope_violation", Declared;
    /// The tree changed while it was measured.
    TreeDrift => "tree_drift", Declared;
    /// A permission was denied, so the work is not done.
    PermissionDenied => "permission_denied", Command;
    /// Nothing was changed and nothing was declared.
    NoChange => "no_change", Declared;
    /// The attempt used its turns up.
    TurnsExhausted => "turns_exhausted", Command;
    /// The attempt used its tool calls up.
    ToolsExhausted => "tools_exhausted", Command;
    /// The attempt used its tokens up.
    TokensExhausted => "tokens_exhausted", Command;
    /// The attempt used its money up.
    UsdExhausted => "usd_exhausted", Command;
    /// The attempt was continued as often as allowed.
    ContinuationsExhausted => "continuations_exhausted", Command;
    /// The time for all retries is over.
    RetryBudgetExceeded => "retry_budget_exceeded", Command;
    /// A worker could not make the attempt ready.
    PreflightFailed => "preflight_failed", Declared;
    /// The attempt's workspace could not be made.
    WorkspaceFailed => "workspace_failed", Declared;
    /// What the plan or the worker says cannot be carried out.
    ConfigError => "config_error", Command;
    /// The lane's agent does not run on the worker.
    LaneUnavailable => "lane_unavailable", Command;
    /// Somebody cancelled it.
    Cancelled => "cancelled", Command;
    /// The run was stopped.
    Aborted => "aborted", Command;
    /// The worker was lost more often than allowed.
    WorkerLost => "worker_lost", Command;
    /// The worker's process was started anew, which ends its attempts.
    WorkerRestarted => "worker_restarted", Loss;
    /// The agent says that it failed.
    TaskFailed => "task_failed", Declared;
    /// The program did not start within its deadline.
    StartTimeout => "start_timeout", Declared;
    /// None of the others.
    Unknown => "unknown", Command;
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One failure, as it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub class: FailureClass,
    /// What happened, in one or a few lines; at most `limits::SUMMARY_BYTES`.
    pub message: String,
}

impl Failure {
    /// A failure of this class with this message, cut to the limit.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: crate::text::cut_bytes(message.into(), crate::limits::SUMMARY_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]
    use super::*;

    #[test]
    fn a_class_is_written_in_the_journal_as_its_word() {
        for class in FailureClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
            assert_eq!(FailureClass::parse(class.as_str()), Some(*class));
        }
    }
}

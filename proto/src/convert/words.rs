//! Enums: the same words on both sides, zero never meaning anything.

use ganger_shared::{actor, delivery, failure, ledger, link, plan, problem, verdict};

use crate::malformed::Reason;
use crate::read::Word;
use crate::v1;

/// Pairs a domain enum with its wire enum; a word only one side has does not compile.
macro_rules! words {
    ($($domain:ty, $wire:ty { $($name:ident),+ $(,)? })+) => {$(
        impl Word for $domain {
            fn from_wire(value: i32) -> Result<Self, Reason> {
                match <$wire>::try_from(value) {
                    $(Ok(<$wire>::$name) => Ok(Self::$name),)+
                    Ok(<$wire>::Unspecified) => Err(Reason::Unspecified),
                    Err(_) => Err(Reason::UnknownValue(value)),
                }
            }
        }

        impl From<$domain> for $wire {
            fn from(word: $domain) -> Self {
                match word {
                    $(<$domain>::$name => Self::$name,)+
                }
            }
        }
    )+};
}

words! {
    actor::Role, v1::Role { Read, Submit, Judge, Operate, Worker }
    delivery::ChangeKind, v1::ChangeKind { Added, Modified, Deleted }
    delivery::Outcome, v1::Outcome { Pass, Fail, NotMeasured }
    delivery::NotMeasured, v1::NotMeasured { HarnessDefect, Timeout, Withdrawn }
    delivery::Place, v1::Place { OtherWorker, OtherTree }
    failure::FailureClass, v1::FailureClass {
        RateLimited, Overloaded, TransportFailed, StreamFailed, StreamStall, Timeout, HitlTimeout,
        QuotaExhausted, AuthFailed, Unavailable, CliCrash, ProcessTerminated, HookFailure,
        CommandFailed, InvalidResult, ValidationFailed, OutputRegistrationFailed, ScopeViolation,
        TreeDrift, PermissionDenied, NoChange, TurnsExhausted, ToolsExhausted, TokensExhausted,
        UsdExhausted, ContinuationsExhausted, RetryBudgetExceeded, PreflightFailed,
        WorkspaceFailed, ConfigError, LaneUnavailable, Cancelled, Aborted, WorkerLost,
        WorkerRestarted, TaskFailed, StartTimeout, Unknown,
    }
    ledger::Dimension, v1::Dimension { Units, Attempts, ActiveMs }
    link::Answer, v1::Answer { Recorded, Stale, RunClosed, UnknownRun, RetryLater }
    link::StopReason, v1::StopReason { Cancelled, RunStopping, Timeout, Revoked, Withdrawn }
    plan::DeliveryMode, v1::DeliveryMode { Hold, Branch, Push, Pr, Merge }
    plan::OnDisconnect, v1::OnDisconnect { Continue, Stop }
    plan::QuestionClass, v1::QuestionClass { Permission, Clarification, Owner, Safeguard, Git }
    problem::Code, v1::ProblemCode {
        Syntax, UnknownKey, MissingKey, WrongType, UnknownWord, BadValue, Duplicate, Conflict,
        UnknownName, Cycle, Limit, NotSupportedYet, NoEvidence, CannotFail, UnknownAgent, Advice,
    }
    problem::Severity, v1::Severity { Error, Warning }
    verdict::JudgeKind, v1::JudgeKind { Person, Agent, Policy }
    verdict::Judgement, v1::Judgement { Accept, Reject, Blocked }
}

//! The exit codes: what a script may rely on.
//!
//! The table of codes and what leads to each. Nothing is printed here.

use std::process::ExitCode;

use ganger_proto::Refusal;
use tonic::Code;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It is done; also a wait that expired.
    Ok,
    /// The run failed, was aborted, or is held by a failed unit; or something of ours broke.
    Failed,
    /// The command line or the configuration is not one.
    Usage,
    /// The coordinator, or we for it, refused.
    Refused,
    /// There is no such thing.
    NotFound,
    /// The run waits for a person.
    NeedsPerson,
    /// A limit of the run's ledger is reached.
    BudgetLimited,
    /// No coordinator answers.
    Unreachable,
    /// Interrupted; what was followed goes on.
    Interrupted,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::NotFound => 4,
            Self::NeedsPerson => 5,
            Self::BudgetLimited => 6,
            Self::Unreachable => 7,
            Self::Interrupted => 130,
        }
    }

    /// What a run in this state means to who followed it.
    pub fn of_run(state: &str, reason: Option<&str>) -> Self {
        match (state, reason) {
            ("failed" | "aborted", _) | ("held", Some("unit_failed")) => Self::Failed,
            ("held" | "waiting" | "attention", _) => Self::NeedsPerson,
            ("budget_limited", _) => Self::BudgetLimited,
            // Completed, or not at rest: somebody stopped looking, and nothing is wrong.
            (_, _) => Self::Ok,
        }
    }

    /// What a refusal means.
    pub fn of_refusal(refusal: &Refusal) -> Self {
        if refusal.is_unreachable() {
            return Self::Unreachable;
        }
        match refusal.grpc {
            Code::NotFound => Self::NotFound,
            Code::Internal | Code::Unknown | Code::DataLoss => Self::Failed,
            Code::Ok
            | Code::Cancelled
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unavailable
            | Code::Unauthenticated => Self::Refused,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use ganger_proto::status;
    use ganger_shared::ids::RunId;
    use ganger_shared::rejection::Rejection;
    use tonic::Status;

    use super::*;

    #[test]
    fn the_numbers_are_those_scripts_rely_on() {
        let all = [
            (Exit::Ok, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Refused, 3),
            (Exit::NotFound, 4),
            (Exit::NeedsPerson, 5),
            (Exit::BudgetLimited, 6),
            (Exit::Unreachable, 7),
            (Exit::Interrupted, 130),
        ];
        for (exit, code) in all {
            assert_eq!(exit.code(), code);
        }
    }

    #[test]
    fn a_run_at_rest_says_what_it_needs() {
        let table = [
            ("completed", None, Exit::Ok),
            ("failed", None, Exit::Failed),
            ("aborted", None, Exit::Failed),
            ("held", Some("unit_failed"), Exit::Failed),
            ("held", Some("gate"), Exit::NeedsPerson),
            ("held", Some("safeguard"), Exit::NeedsPerson),
            ("waiting", None, Exit::NeedsPerson),
            ("budget_limited", Some("attempts"), Exit::BudgetLimited),
            ("active", None, Exit::Ok),
            ("paused", Some("lunch"), Exit::Ok),
        ];
        for (state, reason, expected) in table {
            assert_eq!(Exit::of_run(state, reason), expected, "{state}");
        }
    }

    #[test]
    fn a_refusal_is_told_from_silence() {
        let run = RunId::from_uuid_bytes(&[7; 16]);
        let table = [
            (status::of(&Rejection::UnknownRun { run: "r-x".into() }), Exit::NotFound),
            (
                status::of(&Rejection::UnknownUnit { run, unit: "x".into(), nearest: None }),
                Exit::NotFound,
            ),
            (status::of(&Rejection::Plan { problems: Vec::new() }), Exit::Refused),
            (
                status::of(&Rejection::StaleSequence {
                    what: "run".into(),
                    expected: 1,
                    current: 2,
                }),
                Exit::Refused,
            ),
            (status::of(&Rejection::Journal { reason: "full".into() }), Exit::Refused),
            (status::plain(Code::Unauthenticated, "unauthenticated", "no token"), Exit::Refused),
            (status::plain(Code::Internal, "internal", "a defect"), Exit::Failed),
            (status::plain(Code::Unavailable, "draining", "going away"), Exit::Unreachable),
            (Status::unavailable("connection refused"), Exit::Unreachable),
        ];
        for (status, expected) in table {
            assert_eq!(Exit::of_refusal(&Refusal::from(&status)), expected, "{status:?}");
        }
    }
}

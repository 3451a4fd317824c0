//! Refusals as a gRPC status: code, one line for people, and details for programs.
//!
//! Every status made here has `google.rpc.ErrorInfo` of domain `ganger`, whose reason is the stable
//! word and whose metadata holds the ids and numbers; beside it the detail that fits: the fields of
//! a bad request, the failed precondition, or the problems of a plan. Reading them back is in
//! `refusal`.

use ganger_shared::problem::Problem;
use ganger_shared::rejection::Rejection;
use ganger_shared::text::cut_bytes;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::limits::{DETAILS_BYTES, STATUS_MESSAGE_BYTES};
use crate::malformed::Malformed;
use crate::v1;

/// The domain of every `ErrorInfo` of ours.
pub const DOMAIN: &str = "ganger";
/// The word for a message that cannot be what its type promises.
pub const MALFORMED: &str = "malformed";
/// The word for a call without a valid token.
pub const UNAUTHENTICATED: &str = "unauthenticated";
/// The word for a coordinator that is going away: dial again.
pub const DRAINING: &str = "draining";
/// The word for a defect of ours.
pub const INTERNAL: &str = "internal";

/// The type of the detail that carries a plan's problems.
pub(crate) const PLAN_REFUSAL: &str = "type.googleapis.com/ganger.v1.PlanRefusal";

/// The longest text inside a detail.
const TEXT_BYTES: usize = 512;
/// How long a client waits before it repeats a call to a full queue.
const RETRY_SECS: i64 = 1;

/// The status for a refused command.
pub fn of(rejection: &Rejection) -> Status {
    let mut details = vec![info(rejection.code(), metadata(rejection))];
    details.extend(particulars(rejection));
    build(grpc_code(rejection), &rejection.to_string(), details)
}

/// A status of ours for what is no `Rejection`: one of the words above, or a service's own.
pub fn plain(code: Code, word: &str, message: &str) -> Status {
    build(code, message, vec![info(word, Vec::new())])
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Self {
        let field = violation(&malformed.path, MALFORMED, &malformed.reason.to_string());
        let details = vec![
            info(MALFORMED, vec![("field", malformed.path.clone())]),
            bad_request(vec![field]),
        ];
        build(Code::InvalidArgument, &malformed.to_string(), details)
    }
}

fn grpc_code(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::Plan { .. } | Rejection::AmbiguousRun { .. } => Code::InvalidArgument,
        Rejection::UnknownRun { .. }
        | Rejection::UnknownUnit { .. }
        | Rejection::UnknownAttempt { .. } => Code::NotFound,
        Rejection::WrongState { .. }
        | Rejection::StaleAttempt { .. }
        | Rejection::Quarantined { .. } => Code::FailedPrecondition,
        Rejection::StaleSequence { .. } => Code::Aborted,
        Rejection::KeyReused { .. } => Code::AlreadyExists,
        Rejection::Forbidden { .. } => Code::PermissionDenied,
        Rejection::NotSupportedYet { .. } => Code::Unimplemented,
        Rejection::Busy { .. } => Code::ResourceExhausted,
        Rejection::Journal { .. } => Code::Unavailable,
    }
}

/// The ids and numbers of a rejection, by name.
fn metadata(rejection: &Rejection) -> Vec<(&'static str, String)> {
    match rejection {
        Rejection::Plan { problems } => vec![("problems", problems.len().to_string())],
        Rejection::UnknownRun { run } => vec![("run", run.clone())],
        Rejection::AmbiguousRun { run, candidates } => {
            let candidates: Vec<_> = candidates.iter().map(ToString::to_string).collect();
            vec![("run", run.clone()), ("candidates", candidates.join(","))]
        }
        Rejection::UnknownUnit { run, unit, nearest } => {
            let mut named = vec![("run", run.to_string()), ("unit", unit.clone())];
            named.extend(nearest.iter().map(|nearest| ("nearest", nearest.to_string())));
            named
        }
        Rejection::UnknownAttempt { run, attempt } => {
            vec![("run", run.to_string()), ("attempt", attempt.clone())]
        }
        Rejection::WrongState { what, state, command, needs } => vec![
            ("what", what.clone()),
            ("state", state.clone()),
            ("command", (*command).to_owned()),
            ("needs", (*needs).to_owned()),
        ],
        Rejection::StaleSequence { what, expected, current } => vec![
            ("what", what.clone()),
            ("expected", expected.to_string()),
            ("current", current.to_string()),
        ],
        Rejection::KeyReused { key, first, now } => {
            vec![("key", key.clone()), ("first", first.clone()), ("now", now.clone())]
        }
        Rejection::Forbidden { principal, has, needs } => vec![
            ("principal", principal.clone()),
            ("has", has.to_string()),
            ("needs", needs.to_string()),
        ],
        Rejection::StaleAttempt { attempt } => vec![("attempt", attempt.to_string())],
        Rejection::NotSupportedYet { what } => vec![("what", (*what).to_owned())],
        Rejection::Quarantined { run, reason } => {
            vec![("run", run.to_string()), ("reason", reason.clone())]
        }
        Rejection::Busy { what, limit } => {
            vec![("what", (*what).to_owned()), ("limit", limit.to_string())]
        }
        Rejection::Journal { reason } => vec![("reason", reason.clone())],
    }
}

/// The details that belong to the kind of rejection.
fn particulars(rejection: &Rejection) -> Vec<Any> {
    let unmet = |subject: &str| vec![precondition(rejection, subject)];
    match rejection {
        Rejection::Plan { problems } => plan_details(problems),
        Rejection::AmbiguousRun { run, .. } => {
            let what = format!("`{run}` is the beginning of several runs");
            vec![bad_request(vec![violation("run", rejection.code(), &what)])]
        }
        Rejection::UnknownRun { run } => vec![resource("run", run)],
        Rejection::UnknownUnit { unit, .. } => vec![resource("unit", unit)],
        Rejection::UnknownAttempt { attempt, .. } => vec![resource("attempt", attempt)],
        Rejection::WrongState { what, .. } | Rejection::StaleSequence { what, .. } => unmet(what),
        Rejection::StaleAttempt { attempt } => unmet(&attempt.to_string()),
        Rejection::Quarantined { run, .. } => unmet(run.as_str()),
        Rejection::Busy { what, .. } => busy(what, &rejection.to_string()),
        Rejection::KeyReused { .. }
        | Rejection::Forbidden { .. }
        | Rejection::NotSupportedYet { .. }
        | Rejection::Journal { .. } => Vec::new(),
    }
}

/// As many problems as a status holds, for our clients whole and for others as fields.
fn plan_details(problems: &[Problem]) -> Vec<Any> {
    let mut room = DETAILS_BYTES - (1 << 10);
    let mut refusal = v1::PlanRefusal {
        problems: Vec::new(),
        total: u32::try_from(problems.len()).unwrap_or(u32::MAX),
    };
    let mut violations = Vec::new();
    for problem in problems {
        let wire = v1::Problem::from(cut(problem));
        let field = violation(&wire.path, problem.code.as_str(), &wire.message);
        // Both are length-prefixed inside their messages.
        let bytes = wire.encoded_len() + field.encoded_len() + 8;
        let Some(left) = room.checked_sub(bytes) else { break };
        room = left;
        refusal.problems.push(wire);
        violations.push(field);
    }
    vec![any(PLAN_REFUSAL, &refusal), bad_request(violations)]
}

/// The problem with texts short enough that one of them never fills a status.
fn cut(problem: &Problem) -> Problem {
    Problem {
        path: cut_bytes(problem.path.clone(), TEXT_BYTES),
        message: cut_bytes(problem.message.clone(), TEXT_BYTES),
        fix: cut_bytes(problem.fix.clone(), TEXT_BYTES),
        ..problem.clone()
    }
}

fn busy(what: &str, description: &str) -> Vec<Any> {
    let quota = pb::QuotaFailure {
        violations: vec![pb::quota_failure::Violation {
            subject: what.to_owned(),
            description: description.to_owned(),
            ..Default::default()
        }],
    };
    let retry = pb::RetryInfo {
        retry_delay: Some(prost_types::Duration { seconds: RETRY_SECS, nanos: 0 }),
    };
    vec![google("QuotaFailure", &quota), google("RetryInfo", &retry)]
}

fn precondition(rejection: &Rejection, subject: &str) -> Any {
    let violation = pb::precondition_failure::Violation {
        r#type: rejection.code().to_owned(),
        subject: cut_bytes(subject.to_owned(), TEXT_BYTES),
        description: cut_bytes(rejection.to_string(), TEXT_BYTES),
    };
    google("PreconditionFailure", &pb::PreconditionFailure { violations: vec![violation] })
}

fn resource(kind: &str, name: &str) -> Any {
    let resource = pb::ResourceInfo {
        resource_type: kind.to_owned(),
        resource_name: cut_bytes(name.to_owned(), TEXT_BYTES),
        ..Default::default()
    };
    google("ResourceInfo", &resource)
}

fn violation(field: &str, reason: &str, description: &str) -> pb::bad_request::FieldViolation {
    pb::bad_request::FieldViolation {
        field: cut_bytes(field.to_owned(), TEXT_BYTES),
        description: cut_bytes(description.to_owned(), TEXT_BYTES),
        reason: reason.to_owned(),
        localized_message: None,
    }
}

fn bad_request(field_violations: Vec<pb::bad_request::FieldViolation>) -> Any {
    google("BadRequest", &pb::BadRequest { field_violations })
}

fn info(word: &str, metadata: Vec<(&'static str, String)>) -> Any {
    let metadata = metadata
        .into_iter()
        .map(|(name, value)| (name.to_owned(), cut_bytes(value, TEXT_BYTES)))
        .collect();
    let info = pb::ErrorInfo { reason: word.to_owned(), domain: DOMAIN.to_owned(), metadata };
    google("ErrorInfo", &info)
}

fn google(name: &str, detail: &impl Message) -> Any {
    any(&format!("type.googleapis.com/google.rpc.{name}"), detail)
}

fn any(type_url: &str, detail: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: detail.encode_to_vec() }
}

fn build(code: Code, message: &str, details: Vec<Any>) -> Status {
    // The cut message is repeated inside the details, as the status protocol has it.
    let message = cut_bytes(message.to_owned(), STATUS_MESSAGE_BYTES);
    let status = pb::Status { code: code.into(), message: message.clone(), details };
    Status::with_details(code, message, status.encode_to_vec().into())
}

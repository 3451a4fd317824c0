//! A status as a client shows it: the word, the line and everything the details say.
//!
//! What to do about it (exit code, dialling again) is the client's; whether anybody answered at all
//! is said here.

use std::collections::BTreeMap;

use ganger_shared::problem::Problem;
use prost::Message;
use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::{StatusExt, pb};

use crate::status::{DOMAIN, DRAINING, PLAN_REFUSAL};
use crate::v1;

/// Why a call was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// The stable word, such as `stale_sequence`; of a status that is not ours, gRPC's own word.
    pub code: String,
    /// The status code.
    pub grpc: Code,
    /// One line for people.
    pub message: String,
    /// The problems of a refused plan, as many as a status holds.
    pub problems: Vec<Problem>,
    /// How many problems there are in all; `PlanService.Check` gives those that are missing here.
    pub problems_total: usize,
    /// Fields that are wrong, and what is wrong with each.
    pub fields: Vec<(String, String)>,
    /// The ids and numbers, by name.
    pub metadata: BTreeMap<String, String>,
    /// A coordinator said it; otherwise it is the transport's or a proxy's.
    pub ours: bool,
}

impl Refusal {
    /// Nobody answered, or who answered is going away: dialling again may help.
    ///
    /// A connection that breaks has many codes: `Unknown` and `Internal` among them.
    pub fn is_unreachable(&self) -> bool {
        if self.ours {
            return self.code == DRAINING;
        }
        matches!(
            self.grpc,
            Code::Unavailable
                | Code::Unknown
                | Code::Internal
                | Code::Cancelled
                | Code::DeadlineExceeded
        )
    }
}

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
        let ours = info.is_some();
        let (code, metadata) = match info {
            Some(info) => (info.reason, info.metadata.into_iter().collect()),
            None => (word(status.code()).to_owned(), BTreeMap::new()),
        };
        let fields = status
            .get_details_bad_request()
            .map(|request| request.field_violations)
            .unwrap_or_default();
        let (problems, problems_total) = problems(status.details());
        Self {
            code,
            grpc: status.code(),
            message: status.message().to_owned(),
            problems,
            problems_total,
            fields: fields.into_iter().map(|field| (field.field, field.description)).collect(),
            metadata,
            ours,
        }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::from(&status)
    }
}

/// The problems in the details. One that this build cannot read, from a newer coordinator, is only
/// counted: its text still stands among the fields.
fn problems(details: &[u8]) -> (Vec<Problem>, usize) {
    let refusal = pb::Status::decode(details)
        .ok()
        .and_then(|status| {
            status.details.into_iter().find(|detail| detail.type_url == PLAN_REFUSAL)
        })
        .and_then(|detail| v1::PlanRefusal::decode(detail.value.as_slice()).ok())
        .unwrap_or_default();
    let total = usize::try_from(refusal.total).unwrap_or(usize::MAX);
    let problems = refusal.problems.into_iter().filter_map(|wire| wire.try_into().ok()).collect();
    (problems, total)
}

fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

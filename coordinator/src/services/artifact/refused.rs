//! What the artifact store refuses, as a status: the limit, the disk, the caller's mistake or ours.

use ganger_proto::status;
use tonic::{Code, Status};

use crate::artifacts::{BeginError, FinishError, PutError, ReadError, WriteError};
use crate::services::ask::internal;

/// The word for what is larger than the limit `artifact_bytes`.
const TOO_LARGE: &str = "artifact_bytes";
/// The word for a full disk.
const DISK_FULL: &str = "disk_full";

pub(super) fn begin(error: &BeginError) -> Status {
    match error {
        BeginError::TooLarge { .. } => {
            let message = format!("{error} (limit {TOO_LARGE})");
            status::plain(Code::InvalidArgument, TOO_LARGE, &message)
        }
        BeginError::DiskFull { .. } => full(error),
        BeginError::Busy { .. } => {
            status::plain(Code::Aborted, "upload_busy", &format!("{error}; try again in a moment"))
        }
        BeginError::Io { .. } => broken(error),
    }
}

pub(super) fn write(error: &WriteError) -> Status {
    match error {
        WriteError::Gap { .. } => status::plain(Code::OutOfRange, "gap", &error.to_string()),
        WriteError::TooLong { .. } => {
            status::plain(Code::InvalidArgument, "too_long", &error.to_string())
        }
        WriteError::DiskFull { .. } => full(error),
        WriteError::Io { .. } => broken(error),
    }
}

pub(super) fn finish(error: &FinishError) -> Status {
    match error {
        FinishError::Incomplete { .. } => {
            status::plain(Code::OutOfRange, "incomplete", &error.to_string())
        }
        FinishError::WrongDigest { .. } => {
            status::plain(Code::InvalidArgument, "wrong_digest", &error.to_string())
        }
        FinishError::Io { .. } => broken(error),
    }
}

pub(in crate::services) fn put(error: &PutError) -> Status {
    match error {
        PutError::Refused(refused) => begin(refused),
        PutError::DiskFull { .. } => full(error),
        PutError::Io { .. } | PutError::File { .. } => broken(error),
    }
}

pub(super) fn read(error: &ReadError) -> Status {
    match error {
        ReadError::Absent { .. } => {
            status::plain(Code::NotFound, "unknown_artifact", &error.to_string())
        }
        ReadError::Io { .. } => broken(error),
    }
}

fn full(error: &dyn std::error::Error) -> Status {
    status::plain(Code::ResourceExhausted, DISK_FULL, &error.to_string())
}

/// With what the system said.
fn broken(error: &dyn std::error::Error) -> Status {
    match error.source() {
        Some(source) => internal(&format!("{error}: {source}")),
        None => internal(&error),
    }
}

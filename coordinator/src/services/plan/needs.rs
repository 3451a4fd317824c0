//! What a plan needs beside its text: its repository and its files, there before the run is.

use ganger_coordinator_core::check::Checked;
use ganger_proto::convert::SubmittedSource;
use ganger_proto::status;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::ids::RunId;
use ganger_shared::problem::{Code, Problem};
use tonic::{Code as Grpc, Status};

use super::{Plans, Sent};
use crate::services::ask::{blocking, internal};
use crate::trees::TreesError;

/// A plan names a repository exactly when the client sent one.
pub(super) fn repository(
    checked: Checked,
    source: Option<&SubmittedSource>,
) -> Result<Checked, Vec<Problem>> {
    let problem = match (checked.plan.repository.is_some(), source.is_some()) {
        (true, true) | (false, false) => return Ok(checked),
        (true, false) => Problem::error(
            Code::MissingKey,
            "repository",
            "the plan names a repository, and the client sent none with it",
        )
        .with_fix("submit with `ganger submit`, which uploads it, or remove `repository`"),
        (false, true) => Problem::error(
            Code::Conflict,
            "",
            "the client sent a repository, and the plan names none",
        )
        .with_fix("write `repository: { url: . }`, or submit without one"),
    };
    let mut problems = checked.warnings;
    problems.push(problem);
    Err(problems)
}

impl Plans {
    /// Every file the request names was uploaded, and is as large as it says.
    pub(super) async fn uploaded(&self, sent: &Sent) -> Result<(), Status> {
        let mut named: Vec<(String, ArtifactRef)> = sent
            .attachments
            .iter()
            .map(|(path, artifact)| (format!("attachments[{path:?}]"), artifact.clone()))
            .collect();
        let bundle = sent.source.as_ref().and_then(|source| source.bundle.clone());
        named.extend(bundle.map(|bundle| ("repository.bundle".to_owned(), bundle)));
        let artifacts = self.api.artifacts.clone();
        blocking(move || {
            named.iter().try_for_each(|(field, artifact)| match artifacts.read(&artifact.sha256) {
                Ok(reader) if reader.bytes() == artifact.bytes => Ok(()),
                Ok(reader) => Err(other_size(field, artifact, reader.bytes())),
                Err(error) => Err(missing(field, &error)),
            })
        })
        .await?
    }

    /// The base stands in the mirror, and the run's branch begins at it.
    pub(super) async fn prepared(&self, sent: &Sent, run: &RunId) -> Result<(), Status> {
        let Some(source) = &sent.source else { return Ok(()) };
        let file = match &source.bundle {
            None => None,
            Some(bundle) => {
                let (artifacts, sha256) = (self.api.artifacts.clone(), bundle.sha256);
                Some(blocking(move || artifacts.file(&sha256)).await?.ok_or_else(|| {
                    internal(&format!("artifact {sha256} went away during the call"))
                })?)
            }
        };
        let base = &source.repository.base;
        let begun = self.api.mirrors.begin(&source.repository.id, run, (file.as_deref(), base));
        begun.await.map_err(|error| unusable(&error))
    }
}

fn other_size(field: &str, artifact: &ArtifactRef, bytes: u64) -> Status {
    let message = format!(
        "{field}: artifact {} has {bytes} bytes, {} were named",
        artifact.sha256, artifact.bytes
    );
    status::plain(Grpc::InvalidArgument, "artifact_size", &message)
}

fn missing(field: &str, error: &crate::artifacts::ReadError) -> Status {
    let message = format!("{field}: {error}; upload it before the plan");
    status::plain(Grpc::FailedPrecondition, "artifact_missing", &message)
}

fn unusable(error: &TreesError) -> Status {
    match error {
        TreesError::Bundle(_) | TreesError::Mismatch(_) => {
            let message = format!("repository: {error}");
            status::plain(Grpc::FailedPrecondition, "repository_unusable", &message)
        }
        TreesError::Git(_) | TreesError::Ref(_) | TreesError::Name(_) | TreesError::Scope(_) => {
            internal(error)
        }
    }
}

//! Sources: what the mirrors hold, and bundles of it for workers and for users' clones.

use std::sync::Arc;

use ganger_git::Bundled;
use ganger_proto::{Malformed, Reason, read, v1};
use ganger_shared::actor::Role;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::ids::{CommitId, RepositoryId};
use ganger_shared::limits;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Response, Status};
use uuid::Uuid;

use super::ask::{blocking, gone, internal};
use super::{Api, any_of, artifact::refused};
use crate::trees::TreesError;

/// Bundles made at once; more wait.
const BUNDLES: usize = 4;

/// The service.
pub struct Sources {
    api: Api,
    places: Arc<Semaphore>,
}

impl Sources {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api, places: Arc::new(Semaphore::new(BUNDLES)) }
    }
}

/// A bundle of `want` without what the caller has, as an artifact; nothing where it has it all.
pub(super) async fn bundle(
    api: &Api,
    repository: &RepositoryId,
    (want, have): (&CommitId, &[CommitId]),
) -> Result<Option<ArtifactRef>, Status> {
    let out = api.scratch.join(format!("bundle-{}", Uuid::now_v7()));
    let bundled = api.mirrors.bundle(repository, (want, have), &out).await;
    let kept = match bundled {
        Ok(Bundled::Written { .. }) => {
            let (artifacts, file) = (api.artifacts.clone(), out.clone());
            let kept = blocking(move || artifacts.put_file(&file)).await?;
            kept.map(Some).map_err(|error| refused::put(&error))
        }
        Ok(Bundled::NothingNew) => Ok(None),
        Err(error) => Err(failed(&error)),
    };
    // It is gone where it became the artifact.
    blocking(move || drop(std::fs::remove_file(out))).await?;
    kept
}

fn failed(error: &TreesError) -> Status {
    match error {
        TreesError::Bundle(_) => {
            let message = error.to_string();
            ganger_proto::status::plain(Code::FailedPrecondition, "no_bundle", &message)
        }
        TreesError::Git(_)
        | TreesError::Ref(_)
        | TreesError::Name(_)
        | TreesError::Mismatch(_)
        | TreesError::Scope(_) => internal(error),
    }
}

/// Commits of a request, no more than one page.
pub(super) fn commits(field: &str, named: &[String]) -> Result<Vec<CommitId>, Malformed> {
    if named.len() > limits::PAGE {
        let form = format!("{} commits, and {} are the most", named.len(), limits::PAGE);
        return Err(Malformed::new(field, Reason::Form(form)));
    }
    read::each_text(field, named)
}

#[tonic::async_trait]
impl v1::source_service_server::SourceService for Sources {
    async fn have(
        &self,
        request: Request<v1::SourceServiceHaveRequest>,
    ) -> Result<Response<v1::SourceServiceHaveResponse>, Status> {
        any_of(request.extensions(), &[Role::Read, Role::Worker])?;
        let v1::SourceServiceHaveRequest { repository, commits: asked } = request.into_inner();
        let repository: RepositoryId = read::text("repository", &repository)?;
        let asked = commits("commits", &asked)?;
        let held = self.api.mirrors.known(&repository, &asked).await;
        let held = held.map_err(|error| failed(&error))?;
        let held = held.iter().map(ToString::to_string).collect();
        Ok(Response::new(v1::SourceServiceHaveResponse { held }))
    }

    async fn bundle(
        &self,
        request: Request<v1::SourceServiceBundleRequest>,
    ) -> Result<Response<v1::SourceServiceBundleResponse>, Status> {
        any_of(request.extensions(), &[Role::Read, Role::Worker])?;
        let v1::SourceServiceBundleRequest { repository, want, have } = request.into_inner();
        let repository: RepositoryId = read::text("repository", &repository)?;
        let want: CommitId = read::text("want", &want)?;
        let have = commits("have", &have)?;
        let _place = self.places.acquire().await.map_err(|_| gone())?;
        let bundle = bundle(&self.api, &repository, (&want, &have)).await?;
        let bundle = bundle.map(Into::into);
        Ok(Response::new(v1::SourceServiceBundleResponse { bundle }))
    }
}

//! A run's branch on its way into a repository here.
//!
//! Objects and one branch are added; nothing that is checked out is touched (`ganger_git` sees to
//! that). Whether a run is to be handed over is the commands'.

use std::path::{Path, PathBuf};

use ganger_git::{BranchError, BranchFetched, DiscoverError, FindError, Git, Source};
use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::ids::CommitId;
use ganger_shared::view::RunView;
use thiserror::Error as ThisError;

use crate::error::Error;
use crate::exit::Exit;
use crate::transfer;

/// Why a branch was not brought here.
#[derive(Debug, ThisError)]
pub enum HandOverError {
    /// There is no git.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The repository cannot be opened.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The branch cannot be made or moved.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// There is no room for the bundle.
    #[error("make a temporary directory")]
    Temporary(#[source] std::io::Error),
    /// The coordinator gave no bundle although one is needed.
    #[error("fetch {branch}: the coordinator sent nothing for {tip}")]
    Empty {
        /// The branch.
        branch: String,
        /// Where it stands.
        tip: CommitId,
    },
}

impl HandOverError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Branch(BranchError::CheckedOut { .. } | BranchError::Moved { .. }) => {
                Exit::Refused
            }
            Self::Discover(DiscoverError::NotARepository { .. }) => Exit::NotFound,
            Self::Find(_)
            | Self::Discover(_)
            | Self::Branch(_)
            | Self::Temporary(_)
            | Self::Empty { .. } => Exit::Failed,
        }
    }
}

/// A branch that stands in a repository here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedOver {
    /// The branch.
    pub branch: String,
    /// Where it stands.
    pub tip: CommitId,
    /// The repository.
    pub repository: PathBuf,
    /// Whether it was there already.
    pub unchanged: bool,
}

/// A branch to be brought here.
#[derive(Debug)]
pub struct Branch {
    name: String,
    tip: CommitId,
    base: Option<CommitId>,
    repository: PathBuf,
    repository_id: String,
}

impl Branch {
    /// The branch of a completed run that is to be delivered, where its repository is on this machine.
    pub fn of(run: &RunView) -> Option<Self> {
        let wanted = run.row.state == "completed" && run.delivery == "branch";
        let found = Self {
            name: run.branch.clone()?,
            tip: run.tip.clone()?,
            base: run.base.clone(),
            repository: PathBuf::from(run.repository.clone()?),
            repository_id: run.repository_id.clone()?,
        };
        (wanted && found.repository.is_dir()).then_some(found)
    }

    /// Brings it into its repository.
    pub async fn fetch(&self, clients: &Clients) -> Result<HandedOver, Error> {
        let source = open(&self.repository).await?;
        let base = present(&source, self.base.as_ref()).await;
        let mut bundle = self.bundle(clients, base.as_slice()).await?;
        if bundle.is_none() {
            // The tip is the base: nothing was changed, and git wants a bundle to make a branch of.
            bundle = self.bundle(clients, &[]).await?;
        }
        let bundle = bundle.ok_or_else(|| HandOverError::Empty {
            branch: self.name.clone(),
            tip: self.tip.clone(),
        })?;
        take_in(clients, &source, &bundle, (&self.name, &self.tip)).await
    }

    async fn bundle(
        &self,
        clients: &Clients,
        have: &[CommitId],
    ) -> Result<Option<ArtifactRef>, Error> {
        let request = v1::SourceServiceBundleRequest {
            repository: self.repository_id.clone(),
            want: self.tip.to_string(),
            have: have.iter().map(ToString::to_string).collect(),
        };
        let answer = clients.sources().bundle(request).await?.into_inner();
        transfer::named("bundle", answer.bundle)
    }
}

/// Opens a repository of the user's.
pub async fn open(path: &Path) -> Result<Source, Error> {
    let git = Git::find(ganger_git::Limits::default()).await.map_err(HandOverError::from)?;
    Ok(Source::discover(&git, path).await.map_err(HandOverError::from)?)
}

/// The commit, if the repository has it.
pub async fn present(source: &Source, commit: Option<&CommitId>) -> Option<CommitId> {
    source.resolve(commit?.as_str()).await.ok()
}

/// Fetches a bundle and makes the branch of it.
pub async fn take_in(
    clients: &Clients,
    source: &Source,
    bundle: &ArtifactRef,
    (branch, tip): (&str, &CommitId),
) -> Result<HandedOver, Error> {
    let dir = tempfile::tempdir().map_err(HandOverError::Temporary)?;
    let file = dir.path().join("branch.bundle");
    transfer::fetch_to(clients, bundle, &file).await?;
    let fetched =
        source.fetch_branch_from_bundle(&file, branch, tip).await.map_err(HandOverError::from)?;
    Ok(HandedOver {
        branch: branch.to_owned(),
        tip: tip.clone(),
        repository: source.path().to_owned(),
        unchanged: fetched == BranchFetched::Unchanged,
    })
}

//! Large things, to and from the coordinator, on a connection of their own so that no beat waits
//! behind them: artifacts in chunks by digest, and sources as git bundles.
//!
//! Waits while the control link is down, tries a bounded number of times while it is up. Not here:
//! what an artifact means, and git.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::ids::{CommitId, RepositoryId};
use ganger_shared::limits;
use thiserror::Error;
use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::link::dial::{Authority, TokenError};

mod download;
mod upload;

/// Times one transfer is tried while the link is up.
pub const TRIES_MAX: u32 = 6;
/// The wait before the second try; it doubles with each.
const WAIT_FIRST: Duration = Duration::from_millis(200);
/// Commits the coordinator is told of as being here; it asks for no more.
const HAVE_MAX: usize = 500;

/// Why something large did not get across.
#[derive(Debug, Error)]
pub enum BulkError {
    /// A file of ours could not be read or written.
    #[error("transfer {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is larger than anything may be.
    #[error("transfer {what}: {bytes} bytes are more than the {max} allowed")]
    TooLarge {
        /// What.
        what: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// What arrived is not what was asked for.
    #[error("download {wanted}: what arrived hashes to {found}")]
    Damaged {
        /// Its digest.
        wanted: Digest,
        /// What was computed.
        found: Digest,
    },
    /// The coordinator says something that makes no sense.
    #[error("transfer {what}: the coordinator answered {answer}")]
    Nonsense {
        /// What.
        what: String,
        /// The answer.
        answer: String,
    },
    /// The coordinator refuses, and would again.
    #[error("transfer {what}: refused as {code:?}: {message}")]
    Refused {
        /// What.
        what: String,
        /// How.
        code: Code,
        /// Its words.
        message: String,
    },
    /// The coordinator could not be heard, as often as it was tried.
    #[error("transfer {what}: gave up after {tries} tries, the last ended with {last}")]
    GaveUp {
        /// What.
        what: String,
        /// How often.
        tries: u32,
        /// How the last one ended.
        last: String,
    },
    /// The worker's token cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// How one try ended when it did not succeed.
pub(crate) enum Failure {
    /// It may go better next time.
    Again(String),
    /// It will not.
    Final(BulkError),
}

impl From<BulkError> for Failure {
    fn from(error: BulkError) -> Self {
        Self::Final(error)
    }
}

/// The connection for large things; cheap to clone.
#[derive(Clone, Debug)]
pub struct Bulk {
    channel: Channel,
    authority: Authority,
    attached: watch::Receiver<bool>,
}

impl Bulk {
    /// Transfers over `channel`, a connection apart from the control link, while `attached` says
    /// that the link is up.
    pub fn new(channel: Channel, authority: Authority, attached: watch::Receiver<bool>) -> Self {
        Self { channel, authority, attached }
    }

    /// Hands a file over and returns the name the coordinator keeps it by.
    ///
    /// Only what is not there yet is sent. The file must not change meanwhile.
    pub async fn upload(&self, path: &Path) -> Result<ArtifactRef, BulkError> {
        let artifact = upload::name(path).await?;
        let what = format!("{} as {}", path.display(), artifact.sha256);
        self.tries(&what, || upload::once(self, path, &artifact)).await?;
        Ok(artifact)
    }

    /// Fetches an artifact into a file that did not exist, complete and verified or not at all.
    pub async fn download(&self, artifact: &ArtifactRef, to: &Path) -> Result<(), BulkError> {
        let what = artifact.sha256.to_string();
        if artifact.bytes > limits::ARTIFACT_BYTES {
            let (bytes, max) = (artifact.bytes, limits::ARTIFACT_BYTES);
            return Err(BulkError::TooLarge { what, bytes, max });
        }
        self.tries(&what, || download::once(self, artifact, to)).await
    }

    /// Fetches a bundle that makes `commit` whole for one who has `have`, into the file `to`.
    ///
    /// False, and no file, where nothing is missing.
    pub async fn fetch_source(
        &self,
        repository: &RepositoryId,
        commit: &CommitId,
        have: &[CommitId],
        to: &Path,
    ) -> Result<bool, BulkError> {
        let what = format!("commit {commit} of {repository}");
        let request = v1::SourceServiceBundleRequest {
            repository: repository.to_string(),
            want: commit.to_string(),
            have: have.iter().take(HAVE_MAX).map(ToString::to_string).collect(),
        };
        let bundle = self.tries(&what, || self.bundle(&what, request.clone())).await?;
        match bundle {
            None => Ok(false),
            Some(artifact) => self.download(&artifact, to).await.map(|()| true),
        }
    }

    fn clients(&self) -> Result<Clients, BulkError> {
        Ok(self.authority.clients(self.channel.clone())?)
    }

    async fn bundle(
        &self,
        what: &str,
        request: v1::SourceServiceBundleRequest,
    ) -> Result<Option<ArtifactRef>, Failure> {
        let mut sources = self.clients()?.sources();
        let answer = sources.bundle(request).await.map_err(|status| sorted(what, &status))?;
        let Some(bundle) = answer.into_inner().bundle else { return Ok(None) };
        let sha256 = bundle.sha256.parse().map_err(|error| {
            Failure::Final(BulkError::Nonsense {
                what: what.to_owned(),
                answer: format!("{error}"),
            })
        })?;
        Ok(Some(ArtifactRef { sha256, bytes: bundle.bytes }))
    }

    /// Tries until it succeeds, is refused, or was tried often enough. A try that ends because the
    /// link is down is not counted: the coordinator will come back, and the attempt has its own
    /// bounds.
    async fn tries<T, F>(&self, what: &str, once: impl Fn() -> F) -> Result<T, BulkError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let (mut tries, mut attached) = (0, self.attached.clone());
        loop {
            // An error means that nobody keeps a link any more: then one more try tells the rest.
            let _ = attached.wait_for(|attached| *attached).await;
            let last = match once().await {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(last)) => last,
            };
            if *attached.borrow() {
                tries += 1;
            }
            if tries >= TRIES_MAX || attached.has_changed().is_err() {
                return Err(BulkError::GaveUp { what: what.to_owned(), tries, last });
            }
            tracing::debug!(what, tries, last, "a transfer is tried again");
            pause(WAIT_FIRST * 2_u32.pow(tries)).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the wait between two tries of a transfer")]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// What an answer of the coordinator means for trying again.
pub(crate) fn sorted(what: &str, status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss => Failure::Final(BulkError::Refused {
            what: what.to_owned(),
            code: status.code(),
            message: status.message().to_owned(),
        }),
        // A torn connection shows as any of these.
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable => Failure::Again(format!("{:?}: {}", status.code(), status.message())),
    }
}

//! Large bodies on the wire: chunks of at most 64 KiB, resumable, each held once.
//!
//! One chunk of each transfer is in memory, and transfers are bounded; files are touched only where
//! blocking is allowed.

pub(super) mod refused;

use std::sync::Arc;
use std::time::Duration;

use ganger_proto::{Malformed, Reason, read, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::limits;
use ganger_shared::rejection::Rejection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::ask::{blocking, gone};
use super::{Api, any_of};
use crate::artifacts::{Begun, FinishError, Reader, Upload};

/// Transfers under way at once.
const TRANSFERS: usize = 64;
/// Chunks read ahead of the network.
const AHEAD: usize = 2;
/// How long an upload may send nothing; what came is kept.
const IDLE: Duration = Duration::from_mins(1);

type Chunk = Result<v1::ArtifactServiceDownloadResponse, Status>;

/// The service.
pub struct Bodies {
    api: Api,
    places: Arc<Semaphore>,
}

impl Bodies {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api, places: Arc::new(Semaphore::new(TRANSFERS)) }
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let busy = Rejection::Busy { what: "the queue of transfers", limit: TRANSFERS };
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| status::of(&busy))
    }

    async fn stat_of(&self, sha256: Digest) -> Result<v1::ArtifactServiceStatResponse, Status> {
        let artifacts = self.api.artifacts.clone();
        let here = blocking(move || match artifacts.read(&sha256) {
            Ok(reader) => Ok((true, reader.bytes())),
            Err(crate::artifacts::ReadError::Absent { .. }) => {
                Ok((false, artifacts.received(&sha256)))
            }
            Err(error) => Err(refused::read(&error)),
        })
        .await?;
        let (complete, received) = here?;
        Ok(v1::ArtifactServiceStatResponse { complete, received })
    }

    async fn begin(&self, artifact: ArtifactRef) -> Result<Begun, Status> {
        let artifacts = self.api.artifacts.clone();
        let begun = blocking(move || artifacts.begin(&artifact)).await?;
        begun.map_err(|error| refused::begin(&error))
    }

    async fn take(
        &self,
        mut chunks: Streaming<v1::ArtifactServiceUploadRequest>,
    ) -> Result<v1::ArtifactServiceUploadResponse, Status> {
        let first = self.next(&mut chunks).await?;
        let first = first.ok_or_else(|| Malformed::new("artifact", Reason::Missing))?;
        let artifact: ArtifactRef = read::required("artifact", first.artifact.clone())?;
        let mut upload = match self.begin(artifact.clone()).await? {
            Begun::Wanted(upload) => upload,
            Begun::Held => {
                let held = self.stat_of(artifact.sha256).await?;
                let v1::ArtifactServiceStatResponse { complete, received } = held;
                return Ok(v1::ArtifactServiceUploadResponse { complete, received });
            }
        };
        let mut next = Some(first);
        while let Some(chunk) = next {
            same(&artifact, &chunk)?;
            upload = write(upload, chunk).await?;
            next = self.next(&mut chunks).await?;
        }
        finish(upload).await
    }

    /// The next chunk; an upload that falls silent, or outlives the coordinator, goes on later.
    async fn next(
        &self,
        chunks: &mut Streaming<v1::ArtifactServiceUploadRequest>,
    ) -> Result<Option<v1::ArtifactServiceUploadRequest>, Status> {
        let idle = || {
            let message =
                format!("no chunk came for {} s; go on where `Stat` says", IDLE.as_secs());
            status::plain(Code::DeadlineExceeded, "upload_idle", &message)
        };
        tokio::select! {
            biased;
            () = self.api.ending.cancelled() => Err(gone()),
            chunk = tokio::time::timeout(IDLE, chunks.message()) => chunk.map_err(|_| idle())?,
        }
    }
}

/// A chunk is no larger than the limit, and of the artifact the first one named.
fn same(artifact: &ArtifactRef, chunk: &v1::ArtifactServiceUploadRequest) -> Result<(), Status> {
    let bytes = chunk.data.len();
    if bytes > limits::CHUNK_BYTES {
        let form = format!("{bytes} bytes, and {} are the most of one chunk", limits::CHUNK_BYTES);
        return Err(Malformed::new("data", Reason::Form(form)).into());
    }
    let named: Option<ArtifactRef> = read::optional("artifact", chunk.artifact.clone())?;
    if named.is_some_and(|named| named != *artifact) {
        let form = "it is another one than the first chunk named".to_owned();
        return Err(Malformed::new("artifact", Reason::Form(form)).into());
    }
    Ok(())
}

async fn write(
    mut upload: Upload,
    chunk: v1::ArtifactServiceUploadRequest,
) -> Result<Upload, Status> {
    let written = blocking(move || {
        let written = upload.write_chunk(chunk.offset, &chunk.data);
        written.map(|()| upload)
    });
    written.await?.map_err(|error| refused::write(&error))
}

/// Turns it into an artifact; bytes that are still missing are no error, they come later.
async fn finish(upload: Upload) -> Result<v1::ArtifactServiceUploadResponse, Status> {
    match blocking(move || upload.finish()).await? {
        Ok(artifact) => {
            Ok(v1::ArtifactServiceUploadResponse { complete: true, received: artifact.bytes })
        }
        Err(FinishError::Incomplete { received, .. }) => {
            Ok(v1::ArtifactServiceUploadResponse { complete: false, received })
        }
        Err(error @ (FinishError::WrongDigest { .. } | FinishError::Io { .. })) => {
            Err(refused::finish(&error))
        }
    }
}

/// The part of an artifact that is asked for.
struct Part {
    reader: Arc<Reader>,
    offset: u64,
    end: u64,
}

impl Part {
    fn of(reader: Reader, offset: u64, length: u64) -> Result<Self, Status> {
        let bytes = reader.bytes();
        if offset > bytes {
            let message = format!("offset {offset} is beyond the artifact's {bytes} bytes");
            return Err(status::plain(Code::OutOfRange, "offset", &message));
        }
        let end = if length == 0 { bytes } else { offset.saturating_add(length).min(bytes) };
        Ok(Self { reader: Arc::new(reader), offset, end })
    }

    /// Sends it; an empty part is one empty chunk, which says how large the artifact is.
    async fn send(mut self, send: mpsc::Sender<Chunk>) {
        let bytes = self.reader.bytes();
        loop {
            let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
            let (reader, offset) = (Arc::clone(&self.reader), self.offset);
            let chunk = blocking(move || reader.chunk(offset, left.min(limits::CHUNK_BYTES))).await;
            let chunk = chunk.and_then(|read| read.map_err(|error| refused::read(&error)));
            let chunk = chunk.map(|data| v1::ArtifactServiceDownloadResponse {
                offset,
                data: data.into(),
                bytes,
            });
            self.offset += chunk.as_ref().map_or(0, |chunk| chunk.data.len() as u64);
            let last = chunk.is_err() || self.offset >= self.end;
            if send.send(chunk).await.is_err() || last {
                return;
            }
        }
    }
}

#[tonic::async_trait]
impl v1::artifact_service_server::ArtifactService for Bodies {
    type DownloadStream = ReceiverStream<Chunk>;

    async fn stat(
        &self,
        request: Request<v1::ArtifactServiceStatRequest>,
    ) -> Result<Response<v1::ArtifactServiceStatResponse>, Status> {
        any_of(request.extensions(), &[Role::Read, Role::Worker])?;
        let sha256 = read::text("sha256", &request.into_inner().sha256)?;
        Ok(Response::new(self.stat_of(sha256).await?))
    }

    async fn upload(
        &self,
        request: Request<Streaming<v1::ArtifactServiceUploadRequest>>,
    ) -> Result<Response<v1::ArtifactServiceUploadResponse>, Status> {
        any_of(request.extensions(), &[Role::Submit, Role::Worker])?;
        let _place = self.place()?;
        Ok(Response::new(self.take(request.into_inner()).await?))
    }

    async fn download(
        &self,
        request: Request<v1::ArtifactServiceDownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        any_of(request.extensions(), &[Role::Read, Role::Worker])?;
        let place = self.place()?;
        let v1::ArtifactServiceDownloadRequest { sha256, offset, length } = request.into_inner();
        let sha256: Digest = read::text("sha256", &sha256)?;
        let artifacts = self.api.artifacts.clone();
        let reader = blocking(move || artifacts.read(&sha256)).await?;
        let part = Part::of(reader.map_err(|error| refused::read(&error))?, offset, length)?;
        let (send, receive) = mpsc::channel(AHEAD);
        let ending = self.api.ending.clone();
        self.api.streams.spawn(async move {
            let _place = place;
            let told = send.clone();
            tokio::select! {
                biased;
                () = ending.cancelled() => drop(told.try_send(Err(gone()))),
                () = part.send(send) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(receive)))
    }
}

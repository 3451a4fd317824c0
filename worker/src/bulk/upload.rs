//! One try to hand a file over: ask how much of it is there, send the rest, hear that it is whole.
//!
//! Not here: how often it is tried.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};

use ganger_proto::v1;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::limits;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;

use super::{Bulk, BulkError, Failure, sorted};

/// Chunks read ahead of the network.
const CHUNKS_AHEAD: usize = 4;

/// The digest and size of a file.
pub(super) async fn name(path: &Path) -> Result<ArtifactRef, BulkError> {
    let failed = |source| BulkError::File { path: path.to_owned(), source };
    let mut file = File::open(path).await.map_err(failed)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; limits::CHUNK_BYTES];
    loop {
        let read = file.read(&mut chunk).await.map_err(failed)?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        bytes += read as u64;
        if bytes > limits::ARTIFACT_BYTES {
            let (what, max) = (path.display().to_string(), limits::ARTIFACT_BYTES);
            return Err(BulkError::TooLarge { what, bytes, max });
        }
    }
    Ok(ArtifactRef { sha256: Digest::from_bytes(hash.finalize().into()), bytes })
}

/// Sends what is missing; done when the coordinator says that all of it is there.
pub(super) async fn once(bulk: &Bulk, path: &Path, artifact: &ArtifactRef) -> Result<(), Failure> {
    let what = artifact.sha256.to_string();
    let mut store = bulk.clients()?.artifacts();
    let ask = v1::ArtifactServiceStatRequest { sha256: what.clone() };
    let there = store.stat(ask).await.map_err(|status| sorted(&what, &status))?.into_inner();
    if there.complete {
        return Ok(());
    }
    let (chunks, waiting) = mpsc::channel(CHUNKS_AHEAD);
    let reader = AbortOnDropHandle::new(tokio::spawn(read(
        path.to_owned(),
        artifact.clone(),
        there.received.min(artifact.bytes),
        chunks,
    )));
    let sent = store.upload(ReceiverStream::new(waiting)).await;
    // A refusal may come because our own file ended early: then that is the reason to tell.
    if let Some(Ok(Err(error))) = finished(reader).await {
        return Err(Failure::Final(error));
    }
    let sent = sent.map_err(|status| sorted(&what, &status))?.into_inner();
    if sent.complete {
        return Ok(());
    }
    Err(Failure::Again(format!("{} of {} bytes are there", sent.received, artifact.bytes)))
}

/// What the reader ended with; `None` where it still waits to be heard.
async fn finished(
    reader: AbortOnDropHandle<Result<(), BulkError>>,
) -> Option<Result<Result<(), BulkError>, tokio::task::JoinError>> {
    if reader.is_finished() { Some(reader.await) } else { None }
}

async fn read(
    path: PathBuf,
    artifact: ArtifactRef,
    from: u64,
    chunks: mpsc::Sender<v1::ArtifactServiceUploadRequest>,
) -> Result<(), BulkError> {
    let failed = |source| BulkError::File { path: path.clone(), source };
    let mut file = File::open(&path).await.map_err(failed)?;
    file.seek(SeekFrom::Start(from)).await.map_err(failed)?;
    let mut offset = from;
    loop {
        let left = artifact.bytes - offset;
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(limits::CHUNK_BYTES);
        let mut data = vec![0; size];
        file.read_exact(&mut data).await.map_err(failed)?;
        let named = v1::ArtifactRef { sha256: artifact.sha256.to_string(), bytes: artifact.bytes };
        let request = v1::ArtifactServiceUploadRequest {
            artifact: (offset == from).then_some(named),
            offset,
            data: data.into(),
        };
        offset += size as u64;
        if chunks.send(request).await.is_err() || offset == artifact.bytes {
            return Ok(());
        }
    }
}

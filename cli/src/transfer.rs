//! Bodies on their way: a file or bytes to the coordinator, an artifact from it.
//!
//! By digest, in chunks, going on where the other side stands. Which body is wanted is not here.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};

use ganger_proto::client::Clients;
use ganger_proto::v1;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::limits;
use sha2::{Digest as _, Sha256};
use thiserror::Error as ThisError;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::error::Error;
use crate::exit::Exit;
use crate::output::{note, words};

/// Chunks read ahead of the network.
const CHUNKS_AHEAD: usize = 4;
/// Bodies from this size on are told of.
const LARGE: u64 = 8 << 20;
/// How many parts the progress of a large body is told in.
const PARTS: u64 = 10;

/// Why a body did not arrive.
#[derive(Debug, ThisError)]
pub enum TransferError {
    /// The file cannot be read or written.
    #[error("move {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The body is larger than allowed.
    #[error("send {what}: it has {bytes} bytes, and {max} are allowed (limit artifact_bytes)")]
    TooLarge {
        /// What.
        what: String,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        max: u64,
    },
    /// What arrived is not what was named.
    #[error("fetch {sha256}: what came has another digest or length")]
    Differs {
        /// What was named.
        sha256: Digest,
    },
    /// The coordinator took only a part.
    #[error("send {what}: only {received} bytes of it arrived")]
    Partial {
        /// What.
        what: String,
        /// How much arrived.
        received: u64,
    },
}

impl TransferError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::TooLarge { .. } => Exit::Refused,
            Self::File { .. } | Self::Differs { .. } | Self::Partial { .. } => Exit::Failed,
        }
    }
}

/// The digest and size of a file.
pub async fn name(path: &Path, max: u64) -> Result<ArtifactRef, TransferError> {
    let failed = |source| TransferError::File { path: path.to_owned(), source };
    let mut file = File::open(path).await.map_err(failed)?;
    let bytes = file.metadata().await.map_err(failed)?.len();
    if bytes > max {
        return Err(TransferError::TooLarge { what: path.display().to_string(), bytes, max });
    }
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; limits::CHUNK_BYTES];
    loop {
        let read = file.read(&mut chunk).await.map_err(failed)?;
        if read == 0 {
            let sha256 = Digest::from_bytes(hash.finalize().into());
            return Ok(ArtifactRef { sha256, bytes });
        }
        hash.update(&chunk[..read]);
        bytes += read as u64;
    }
}

/// Sends what of a file is not there yet. `what` is told where it takes long.
pub async fn send(
    clients: &Clients,
    path: &Path,
    artifact: &ArtifactRef,
    what: &str,
) -> Result<(), Error> {
    let mut store = clients.artifacts();
    let ask = v1::ArtifactServiceStatRequest { sha256: artifact.sha256.to_string() };
    let there = store.stat(ask).await?.into_inner();
    if there.complete {
        return Ok(());
    }
    let (chunks, waiting) = mpsc::channel(CHUNKS_AHEAD);
    let from = there.received.min(artifact.bytes);
    let reading = read(path.to_owned(), artifact.clone(), from, chunks, what.to_owned());
    let reader = AbortOnDropHandle::new(tokio::spawn(reading));
    let sent = store.upload(ReceiverStream::new(waiting)).await;
    // A refusal may come because our own file broke off: then that is what is to be told.
    if reader.is_finished()
        && let Ok(Err(error)) = reader.await
    {
        return Err(error.into());
    }
    let sent = sent?.into_inner();
    if sent.complete {
        return Ok(());
    }
    Err(TransferError::Partial { what: what.to_owned(), received: sent.received }.into())
}

async fn read(
    path: PathBuf,
    artifact: ArtifactRef,
    from: u64,
    chunks: mpsc::Sender<v1::ArtifactServiceUploadRequest>,
    what: String,
) -> Result<(), TransferError> {
    let failed = |source| TransferError::File { path: path.clone(), source };
    let mut file = File::open(&path).await.map_err(failed)?;
    file.seek(SeekFrom::Start(from)).await.map_err(failed)?;
    let (mut offset, mut told) = (from, 0);
    loop {
        let left = artifact.bytes - offset;
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(limits::CHUNK_BYTES);
        let mut data = vec![0; size];
        file.read_exact(&mut data).await.map_err(failed)?;
        let request = v1::ArtifactServiceUploadRequest {
            artifact: (offset == from).then(|| artifact.clone().into()),
            offset,
            data: data.into(),
        };
        offset += size as u64;
        if chunks.send(request).await.is_err() || offset == artifact.bytes {
            return Ok(());
        }
        told = tell(&what, (offset, artifact.bytes), told);
    }
}

/// Tells each tenth of a large body once.
fn tell(what: &str, (done, all): (u64, u64), told: u64) -> u64 {
    let part = done * PARTS / all.max(1);
    if all >= LARGE && part > told {
        note(&format!("{what}: {} of {}", words::size(done), words::size(all)));
    }
    part.max(told)
}

/// Fetches an artifact chunk by chunk into `take`, and proves what came.
pub async fn fetch(
    clients: &Clients,
    artifact: &ArtifactRef,
    mut take: impl AsyncFnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let request = v1::ArtifactServiceDownloadRequest {
        sha256: artifact.sha256.to_string(),
        offset: 0,
        length: 0,
    };
    let mut stream = clients.artifacts().download(request).await?.into_inner();
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    while let Some(chunk) = stream.message().await? {
        hash.update(&chunk.data);
        bytes += chunk.data.len() as u64;
        take(&chunk.data).await?;
    }
    let came = ArtifactRef { sha256: Digest::from_bytes(hash.finalize().into()), bytes };
    if came == *artifact {
        return Ok(());
    }
    Err(TransferError::Differs { sha256: artifact.sha256 }.into())
}

/// Fetches an artifact into a file.
pub async fn fetch_to(clients: &Clients, artifact: &ArtifactRef, path: &Path) -> Result<(), Error> {
    let failed = |source| TransferError::File { path: path.to_owned(), source };
    let mut file = File::create(path).await.map_err(failed)?;
    fetch(clients, artifact, async |data| Ok(file.write_all(data).await.map_err(failed)?)).await?;
    file.flush().await.map_err(failed)?;
    Ok(())
}

/// The artifact an answer names, read from the wire.
pub fn named(field: &str, wire: Option<v1::ArtifactRef>) -> Result<Option<ArtifactRef>, Error> {
    Ok(ganger_proto::read::optional(field, wire)?)
}

/// Whether a status says that there is no such thing.
pub fn is_absent(status: &Status) -> bool {
    status.code() == tonic::Code::NotFound
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    #[tokio::test]
    async fn a_file_is_named_by_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("body");
        let body = vec![7; 200_000];
        std::fs::write(&path, &body).unwrap();
        assert_eq!(name(&path, 200_000).await.unwrap(), ArtifactRef::of(&body));
        let refused = name(&path, 199_999).await.unwrap_err();
        assert!(matches!(refused, TransferError::TooLarge { bytes: 200_000, max: 199_999, .. }));
    }

    #[test]
    fn a_large_body_is_told_in_tenths() {
        let all = LARGE;
        let told = (1..=100).fold((0, 0), |(told, lines), n| {
            let next = tell("x", (all * n / 100, all), told);
            (next, lines + u64::from(next > told))
        });
        assert_eq!(told, (PARTS, PARTS));
        assert_eq!(tell("x", (10, 20), 0), 5);
    }
}

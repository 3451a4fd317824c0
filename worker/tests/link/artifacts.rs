//! An artifact store over real gRPC that resumes, and that a test can make to break off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ganger_proto::v1;
use ganger_proto::v1::artifact_service_server::ArtifactService;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::limits::CHUNK_BYTES;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// Artifacts in a directory, whole ones and parts.
#[derive(Clone)]
pub struct Artifacts {
    dir: Arc<Path>,
    /// Bytes after which the next transfer breaks off; 0 for never.
    pub breaks_after: Arc<AtomicU64>,
    /// Bytes that were sent either way.
    pub moved: Arc<AtomicU64>,
}

impl Artifacts {
    pub fn new(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self { dir: Arc::from(dir), breaks_after: Arc::default(), moved: Arc::default() }
    }

    pub fn keep(&self, bytes: &[u8]) -> ArtifactRef {
        let artifact = ArtifactRef::of(bytes);
        std::fs::write(self.whole(&artifact.sha256.to_string()), bytes).unwrap();
        artifact
    }

    /// Keeps something else under the name of these bytes.
    pub fn damage(&self, artifact: &ArtifactRef) {
        let path = self.whole(&artifact.sha256.to_string());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }

    pub fn bytes(&self, artifact: &ArtifactRef) -> Vec<u8> {
        std::fs::read(self.whole(&artifact.sha256.to_string())).unwrap()
    }

    fn whole(&self, sha256: &str) -> PathBuf {
        self.dir.join(sha256)
    }

    fn part(&self, sha256: &str) -> PathBuf {
        self.dir.join(format!("{sha256}.part"))
    }

    fn breaks(&self, bytes: usize) -> bool {
        self.moved.fetch_add(bytes as u64, Ordering::SeqCst);
        let after = self.breaks_after.load(Ordering::SeqCst);
        if after == 0 {
            return false;
        }
        self.breaks_after.store(after.saturating_sub(bytes as u64), Ordering::SeqCst);
        after <= bytes as u64
    }
}

fn broken() -> Status {
    Status::unavailable("the connection broke off")
}

#[tonic::async_trait]
impl ArtifactService for Artifacts {
    async fn stat(
        &self,
        request: Request<v1::ArtifactServiceStatRequest>,
    ) -> Result<Response<v1::ArtifactServiceStatResponse>, Status> {
        let sha256 = request.into_inner().sha256;
        let complete = self.whole(&sha256).exists();
        let received = std::fs::metadata(self.part(&sha256)).map_or(0, |part| part.len());
        Ok(Response::new(v1::ArtifactServiceStatResponse { complete, received }))
    }

    async fn upload(
        &self,
        request: Request<Streaming<v1::ArtifactServiceUploadRequest>>,
    ) -> Result<Response<v1::ArtifactServiceUploadResponse>, Status> {
        let mut chunks = request.into_inner();
        let mut named: BTreeMap<&str, v1::ArtifactRef> = BTreeMap::new();
        while let Some(chunk) = chunks.message().await? {
            if let Some(artifact) = chunk.artifact {
                named.insert("it", artifact);
            }
            let sha256 = named["it"].sha256.clone();
            let mut bytes = std::fs::read(self.part(&sha256)).unwrap_or_default();
            if chunk.offset != bytes.len() as u64 {
                return Err(Status::out_of_range(format!("{} bytes are here", bytes.len())));
            }
            bytes.extend(&chunk.data);
            std::fs::write(self.part(&sha256), &bytes).unwrap();
            if self.breaks(chunk.data.len()) {
                return Err(broken());
            }
        }
        let artifact = named.remove("it").ok_or_else(|| Status::invalid_argument("no name"))?;
        let bytes = std::fs::read(self.part(&artifact.sha256)).unwrap();
        assert_eq!(ArtifactRef::of(&bytes).sha256.to_string(), artifact.sha256);
        std::fs::rename(self.part(&artifact.sha256), self.whole(&artifact.sha256)).unwrap();
        let (complete, received) = (true, artifact.bytes);
        Ok(Response::new(v1::ArtifactServiceUploadResponse { complete, received }))
    }

    type DownloadStream =
        Pin<Box<dyn Stream<Item = Result<v1::ArtifactServiceDownloadResponse, Status>> + Send>>;

    async fn download(
        &self,
        request: Request<v1::ArtifactServiceDownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        let v1::ArtifactServiceDownloadRequest { sha256, offset, .. } = request.into_inner();
        let whole = std::fs::read(self.whole(&sha256)).map_err(|_| Status::not_found("no such"))?;
        let bytes = whole.len() as u64;
        let mut answers = Vec::new();
        for start in (usize::try_from(offset).unwrap()..whole.len()).step_by(CHUNK_BYTES) {
            let data = &whole[start..whole.len().min(start + CHUNK_BYTES)];
            if self.breaks(data.len()) {
                answers.push(Err(broken()));
                break;
            }
            let (offset, data) = (start as u64, data.to_vec().into());
            answers.push(Ok(v1::ArtifactServiceDownloadResponse { offset, data, bytes }));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }
}

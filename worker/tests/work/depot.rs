//! The coordinator's side of bulk transfer, over real gRPC: artifacts in a directory, bundles from a
//! real mirror. It keeps what it is given and decides nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use ganger_git::{Bundled, Mirror};
use ganger_proto::v1;
use ganger_proto::v1::artifact_service_server::{ArtifactService, ArtifactServiceServer};
use ganger_proto::v1::source_service_server::{SourceService, SourceServiceServer};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::ids::CommitId;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

const CHUNK: usize = 64 << 10;

#[derive(Clone)]
struct Depot {
    dir: Arc<Path>,
    mirrors: Arc<BTreeMap<String, Mirror>>,
}

/// Serves artifacts below `dir` and bundles of `mirrors` until it is dropped.
pub struct Served {
    pub address: String,
    dir: PathBuf,
    server: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Served {
    pub async fn start(dir: &Path, mirrors: BTreeMap<String, Mirror>) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let depot = Depot { dir: Arc::from(dir), mirrors: Arc::new(mirrors) };
        let server = tonic::transport::Server::builder()
            .add_service(ArtifactServiceServer::new(depot.clone()))
            .add_service(SourceServiceServer::new(depot))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self { address, dir: dir.to_owned(), server }
    }

    /// The bytes of an artifact.
    pub fn bytes(&self, artifact: &ArtifactRef) -> Vec<u8> {
        let bytes = std::fs::read(self.dir.join(artifact.sha256.to_string())).unwrap();
        assert_eq!(ArtifactRef::of(&bytes), *artifact);
        bytes
    }

    /// An artifact that is here from now on.
    pub fn keep(&self, bytes: &[u8]) -> ArtifactRef {
        let artifact = ArtifactRef::of(bytes);
        std::fs::write(self.dir.join(artifact.sha256.to_string()), bytes).unwrap();
        artifact
    }

    /// The bytes of everything that was handed over.
    pub fn everything(&self) -> Vec<Vec<u8>> {
        let entries = std::fs::read_dir(&self.dir).unwrap();
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
    }
}

impl Depot {
    fn path(&self, sha256: &str) -> PathBuf {
        assert!(sha256.bytes().all(|byte| byte.is_ascii_hexdigit()), "{sha256}");
        self.dir.join(sha256)
    }
}

type Chunks =
    Pin<Box<dyn Stream<Item = Result<v1::ArtifactServiceDownloadResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ArtifactService for Depot {
    async fn stat(
        &self,
        request: Request<v1::ArtifactServiceStatRequest>,
    ) -> Result<Response<v1::ArtifactServiceStatResponse>, Status> {
        let complete = self.path(&request.into_inner().sha256).exists();
        Ok(Response::new(v1::ArtifactServiceStatResponse { complete, received: 0 }))
    }

    async fn upload(
        &self,
        request: Request<Streaming<v1::ArtifactServiceUploadRequest>>,
    ) -> Result<Response<v1::ArtifactServiceUploadResponse>, Status> {
        let mut chunks = request.into_inner();
        let (mut name, mut bytes) = (None, Vec::new());
        while let Some(chunk) = chunks.message().await? {
            name = name.or(chunk.artifact);
            bytes.extend(chunk.data);
        }
        let wanted = name.ok_or_else(|| Status::invalid_argument("no artifact was named"))?;
        let found = ArtifactRef::of(&bytes);
        if found.sha256.to_string() != wanted.sha256 {
            return Err(Status::data_loss("it hashes to something else"));
        }
        std::fs::write(self.path(&wanted.sha256), &bytes).unwrap();
        let received = found.bytes;
        Ok(Response::new(v1::ArtifactServiceUploadResponse { complete: true, received }))
    }

    type DownloadStream = Chunks;

    async fn download(
        &self,
        request: Request<v1::ArtifactServiceDownloadRequest>,
    ) -> Result<Response<Chunks>, Status> {
        let v1::ArtifactServiceDownloadRequest { sha256, offset, .. } = request.into_inner();
        let bytes = std::fs::read(self.path(&sha256))
            .map_err(|_| Status::not_found(format!("no artifact {sha256}")))?;
        let total = bytes.len() as u64;
        let rest = bytes[usize::try_from(offset).unwrap()..].to_vec();
        let mut at = offset;
        let chunks: Vec<_> = rest
            .chunks(CHUNK)
            .map(|data| {
                let offset = at;
                at += data.len() as u64;
                Ok(v1::ArtifactServiceDownloadResponse {
                    offset,
                    data: data.to_vec().into(),
                    bytes: total,
                })
            })
            .collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks).map(|chunk| chunk))))
    }
}

#[tonic::async_trait]
impl SourceService for Depot {
    async fn have(
        &self,
        _request: Request<v1::SourceServiceHaveRequest>,
    ) -> Result<Response<v1::SourceServiceHaveResponse>, Status> {
        Err(Status::unimplemented("no worker asks this"))
    }

    async fn bundle(
        &self,
        request: Request<v1::SourceServiceBundleRequest>,
    ) -> Result<Response<v1::SourceServiceBundleResponse>, Status> {
        let request = request.into_inner();
        let mirror = self
            .mirrors
            .get(&request.repository)
            .ok_or_else(|| Status::not_found("no such repository"))?;
        let commit = |text: &String| CommitId::parse(text).unwrap();
        let have: Vec<CommitId> = request.have.iter().map(commit).collect();
        let out = self.dir.join(format!("bundle-{}", uuid::Uuid::now_v7().simple()));
        let made = mirror.make_bundle(&out, &commit(&request.want), &have).await;
        let bundle = match made.map_err(|error| Status::not_found(error.to_string()))? {
            Bundled::NothingNew => None,
            Bundled::Written { .. } => {
                let bytes = std::fs::read(&out).unwrap();
                let ArtifactRef { sha256, bytes: length } = ArtifactRef::of(&bytes);
                std::fs::rename(&out, self.path(&sha256.to_string())).unwrap();
                Some(v1::ArtifactRef { sha256: sha256.to_string(), bytes: length })
            }
        };
        Ok(Response::new(v1::SourceServiceBundleResponse { bundle }))
    }
}

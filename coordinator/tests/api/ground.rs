//! One coordinator, its tokens, and plans small enough to read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_coordinator::{Config, Coordinator};
use ganger_proto::auth::Bearer;
use ganger_proto::client::Clients;
use ganger_proto::{Refusal, v1};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::limits::CHUNK_BYTES;
use ganger_telemetry::{LogOptions, ServiceIdentity, Settings, Telemetry};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

/// A coordinator and the directory it lives in.
pub struct Ground {
    dir: TempDir,
    config: Config,
    telemetry: Telemetry,
    coordinator: Option<Coordinator>,
}

impl Ground {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A coordinator with other settings than the defaults.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let dir = TempDir::new().unwrap();
        let mut config = Config::new(dir.path().join("data"));
        change(&mut config);
        let identity = ServiceIdentity::new("ganger-coordinator", "test");
        let (telemetry, _) =
            Telemetry::build(&identity, &Settings::off(), LogOptions::default()).unwrap();
        let mut ground = Self { dir, config, telemetry, coordinator: None };
        ground.begin().await;
        ground
    }

    /// Starts it where it ended.
    pub async fn begin(&mut self) {
        let started = ganger_coordinator::start(self.config.clone(), &self.telemetry).await;
        self.coordinator = Some(started.map_err(|error| error.to_string()).unwrap());
    }

    /// Ends the coordinator cleanly.
    pub async fn end(&mut self) {
        let coordinator = self.coordinator.take().unwrap();
        coordinator.ending().cancel();
        coordinator.ended().await.map_err(|error| error.to_string()).unwrap();
    }

    /// Ends it and starts another on the same directory.
    pub async fn restart(&mut self) {
        self.end().await;
        self.begin().await;
    }

    pub fn data(&self) -> PathBuf {
        self.config.data.clone()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn endpoint(&self) -> Endpoint {
        let address = self.coordinator.as_ref().unwrap().address;
        Endpoint::from_shared(format!("http://{address}")).unwrap()
    }

    pub async fn channel(&self) -> Channel {
        self.endpoint().connect().await.unwrap()
    }

    /// The operator's clients on a connection that takes in little ahead of its reader.
    pub async fn narrow(&self) -> Clients {
        let bytes = Some(1 << 16);
        let endpoint = self.endpoint();
        let endpoint = endpoint.initial_stream_window_size(bytes);
        let endpoint = endpoint.initial_connection_window_size(bytes);
        let bearer = Bearer::new(&self.token("operator.token")).unwrap();
        Clients::new(endpoint.connect().await.unwrap(), bearer)
    }

    /// Clients for the bearer of this token.
    pub async fn bearer(&self, token: &str) -> Clients {
        Clients::new(self.channel().await, Bearer::new(token).unwrap())
    }

    pub async fn operator(&self) -> Clients {
        self.bearer(&self.token("operator.token")).await
    }

    pub async fn worker(&self) -> Clients {
        self.bearer(&self.token("worker-join.token")).await
    }

    fn token(&self, file: &str) -> String {
        std::fs::read_to_string(self.data().join(file)).unwrap().trim().to_owned()
    }

    /// Clients for a new token of this role.
    pub async fn of_role(&self, role: v1::Role) -> Clients {
        let request = v1::TokenServiceIssueRequest {
            idempotency_key: key(),
            name: format!("{role:?}").to_lowercase(),
            role: role.into(),
            ..Default::default()
        };
        let issued = self.operator().await.tokens().issue(request).await.unwrap().into_inner();
        self.bearer(&issued.secret).await
    }
}

/// A key nobody used before.
pub fn key() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// A plan of these units without a repository, each after the one before it.
pub fn plan(name: &str, units: &[&str]) -> String {
    let before = |at: usize| at.checked_sub(1).map_or("", |before| units[before]);
    let unit = |(at, unit): (usize, &&str)| {
        let after = before(at);
        format!("  - {{ id: {unit}, kind: command, run: make, after: [{after}] }}\n")
    };
    let units: String = units.iter().enumerate().map(unit).collect();
    format!("version: 1\nname: {name}\nmode: autonomous\nunits:\n{units}")
}

pub fn submit(key: &str, plan: &str) -> v1::PlanServiceSubmitRequest {
    v1::PlanServiceSubmitRequest {
        idempotency_key: key.to_owned(),
        plan: plan.as_bytes().to_vec(),
        ..Default::default()
    }
}

/// Submits a plan and returns its run.
pub async fn submitted(clients: &Clients, plan: &str) -> String {
    clients.plans().submit(submit(&key(), plan)).await.unwrap().into_inner().run_id
}

/// A run as it is now.
pub async fn get(clients: &Clients, run: &str) -> v1::RunView {
    let request = v1::RunServiceGetRequest { run: run.to_owned() };
    clients.runs().get(request).await.unwrap().into_inner().run.unwrap()
}

/// The states of a run's units, in plan order.
pub fn states(view: &v1::RunView) -> Vec<(&str, &str)> {
    view.units.iter().map(|unit| (unit.id.as_str(), unit.state.as_str())).collect()
}

/// Why a call was refused.
pub fn refused<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Refusal {
    answer.unwrap_err().into()
}

/// The stable word of a refusal.
pub fn word<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> String {
    refused(answer).code
}

/// The chunks of an upload of these bytes from an offset on, but for the last `short` bytes.
pub fn chunks(bytes: &[u8], from: usize, short: usize) -> Vec<v1::ArtifactServiceUploadRequest> {
    let artifact: v1::ArtifactRef = ArtifactRef::of(bytes).into();
    let sent = &bytes[from..bytes.len() - short];
    let mut offset = from as u64;
    let mut all = Vec::new();
    for data in sent.chunks(CHUNK_BYTES) {
        let data = data.to_vec();
        let len = data.len() as u64;
        all.push(v1::ArtifactServiceUploadRequest {
            artifact: Some(artifact.clone()),
            offset,
            data: data.into(),
        });
        offset += len;
    }
    all
}

/// Uploads these bytes whole.
pub async fn upload(clients: &Clients, bytes: &[u8]) -> v1::ArtifactRef {
    let stream = tokio_stream::iter(chunks(bytes, 0, 0));
    let answer = clients.artifacts().upload(stream).await.unwrap().into_inner();
    assert!(answer.complete);
    ArtifactRef::of(bytes).into()
}

/// What is awaited, or a failed test where it does not come.
pub async fn within<F: Future>(awaited: F) -> F::Output {
    let come = tokio::time::timeout(Duration::from_mins(1), awaited).await;
    come.unwrap_or_else(|_| panic!("what is awaited does not come"))
}

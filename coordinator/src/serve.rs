//! Starting and ending a coordinator.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ganger_git::Git;
use ganger_shared::actor::Actor as By;
use ganger_shared::event::{Envelope, SystemEvent};
use ganger_telemetry::Telemetry;
use ractor::{Actor, ActorRef};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifacts::Artifacts;
use crate::clock::Clock;
use crate::config::Config;
use crate::fleet::{self, FleetMessage};
use crate::house::{FOLDS, House};
use crate::journal::{EventStore, IndexOutcome, Journal, OpenReport};
use crate::root::{self, Children, Root, RootMessage};
use crate::runs::RunsMessage;
use crate::services::{self, Api, Authority};
use crate::system;
use crate::tokens::{self, Tokens};
use crate::trees::Mirrors;

/// How long calls under way may take to end.
const DRAIN: Duration = Duration::from_secs(5);
/// How often an idle connection is asked whether it is there (P116), and how long it may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_WITHIN: Duration = Duration::from_secs(10);
/// Reasons to end that may wait to be read.
const FATAL: usize = 8;

/// Why a coordinator does not start, or how it ended.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its directory cannot be made.
    #[error("make {}: {source}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The journal does not open.
    #[error("open the journal: {0}")]
    Journal(#[from] crate::journal::OpenError),
    /// The artifact store does not open.
    #[error("open the artifacts: {0}")]
    Artifacts(#[from] crate::artifacts::OpenError),
    /// There is no git that can be used.
    #[error(transparent)]
    Git(#[from] ganger_git::FindError),
    /// Tokens cannot be read or written.
    #[error("tokens: {0}")]
    Tokens(#[from] tokens::Error),
    /// The start cannot be recorded.
    #[error(transparent)]
    System(#[from] system::Error),
    /// The address cannot be listened on.
    #[error("listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The address is not loopback and the connection would be readable by others.
    #[error(
        "{0} is not a loopback address and TLS is not set up: tokens would be readable on the \
         network; listen on 127.0.0.1, or say --plaintext to accept that"
    )]
    Plaintext(SocketAddr),
    /// An actor did not start.
    #[error("start the actors: {0}")]
    Actors(String),
    /// It had to end.
    #[error("{0}")]
    Fatal(String),
    /// The server broke.
    #[error("serve: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// A background task broke.
    #[error("a part of the coordinator panicked")]
    Panicked,
}

/// A coordinator that serves.
pub struct Coordinator {
    /// Where it listens.
    pub address: SocketAddr,
    ending: CancellationToken,
    served: JoinHandle<Result<(), StartError>>,
}

impl Coordinator {
    /// Cancelled, it ends the coordinator.
    pub fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Waits until it has ended, cleanly or with the reason it had to.
    pub async fn ended(self) -> Result<(), StartError> {
        self.served.await.unwrap_or(Err(StartError::Panicked))
    }
}

/// Opens the store, starts the actors and serves.
pub async fn start(config: Config, telemetry: &Telemetry) -> Result<Coordinator, StartError> {
    if !config.listen.ip().is_loopback() && !config.plaintext {
        return Err(StartError::Plaintext(config.listen));
    }
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    let address = listener
        .local_addr()
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    let (fatal, reasons) = mpsc::channel(FATAL);
    let ending = CancellationToken::new();
    let opened = open(&config).await?;
    let clock = Clock::start();
    let tokens = Tokens::open(opened.store.clone(), clock, &config.data).await?;
    record_start(&opened, clock).await?;
    let (root, children) = actors(&opened, &config, clock, fatal.clone()).await?;
    let house = House {
        store: opened.store.clone(),
        clock,
        limits: config.limits.clone(),
        folds: Arc::new(Semaphore::new(FOLDS)),
        projector: telemetry.projector(),
        fleet: children.fleet,
        runs: children.runs,
        trees: children.trees,
    };
    begin(&house).map_err(StartError::Actors)?;
    let endpoint_file = config.endpoint_file.clone();
    let api = Api {
        house,
        artifacts: opened.artifacts,
        mirrors: opened.mirrors,
        tokens,
        scratch: opened.scratch,
        config: Arc::new(config),
        ending: ending.clone(),
        streams: TaskTracker::new(),
        fatal,
    };
    write_endpoint(endpoint_file.as_deref(), address)?;
    let endpoint = (endpoint_file, address);
    let served = tokio::spawn(serve(api, listener, (root, reasons), opened.journal, endpoint));
    Ok(Coordinator { address, ending, served })
}

struct Opened {
    journal: Journal,
    store: EventStore,
    artifacts: Artifacts,
    mirrors: Mirrors,
    scratch: PathBuf,
    repairs: Vec<String>,
}

async fn open(config: &Config) -> Result<Opened, StartError> {
    let scratch = config.data.join("scratch");
    let mirrors = config.data.join("mirrors");
    for path in [&config.data, &scratch, &mirrors] {
        // What is in it is not for others of this machine: sources, outputs, the hashes of tokens.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| StartError::Directory { path: path.clone(), source })?;
    }
    let git = Git::find(ganger_git::Limits::default()).await?;
    let options = crate::journal::Options {
        accept_loss: config.accept_loss,
        ..crate::journal::Options::default()
    };
    let dir = config.data.join("journal");
    let opening = tokio::task::spawn_blocking(move || Journal::open(&dir, options));
    let (journal, report) = opening.await.map_err(|_| StartError::Panicked)??;
    let repairs = repairs(&report);
    for repair in &repairs {
        tracing::warn!(%repair, "the store was repaired");
    }
    let options = crate::artifacts::Options {
        artifact_bytes_max: config.limits.artifact_bytes,
        ..crate::artifacts::Options::default()
    };
    let artifacts = Artifacts::open(&config.data.join("artifacts"), options)?;
    let store = EventStore::Disk(journal.clone());
    let mirrors = Mirrors::new(git, mirrors, artifacts.clone());
    Ok(Opened { journal, store, artifacts, mirrors, scratch, repairs })
}

/// What opening the store had to do, a line each.
fn repairs(report: &OpenReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cut) = &report.log.cut {
        lines.push(format!("cut an unfinished batch off the log: {cut:?}"));
    }
    lines.extend(report.removed.iter().map(|path| format!("removed {}", path.display())));
    match &report.index {
        IndexOutcome::Kept => {}
        IndexOutcome::Completed { lines: added } => {
            lines.push(format!("index: {added} lines completed from the log"));
        }
        IndexOutcome::Rebuilt { why, lines: held, .. } => {
            lines.push(format!("index: rebuilt from the log, {held} lines: {why}"));
        }
    }
    if report.loss_accepted {
        lines.push("a loss was accepted; a new generation begins".to_owned());
    }
    if !report.reserve {
        lines.push("there is no room for the reserve file".to_owned());
    }
    lines
}

async fn record_start(opened: &Opened, clock: Clock) -> Result<(), StartError> {
    let event = SystemEvent::CoordinatorStarted {
        build: env!("CARGO_PKG_VERSION").to_owned(),
        repairs: opened.repairs.clone(),
    };
    let envelope = Envelope { at: clock.utc(), by: By::Coordinator, event };
    Ok(system::append(&opened.store, vec![envelope]).await?)
}

async fn actors(
    opened: &Opened,
    config: &Config,
    clock: Clock,
    fatal: mpsc::Sender<String>,
) -> Result<(ActorRef<RootMessage>, Children), StartError> {
    let (children, started) = oneshot::channel();
    let arguments = root::Arguments {
        fleet: fleet::Arguments { clock, limits: config.limits.clone() },
        mirrors: opened.mirrors.clone(),
        fatal,
        children,
    };
    let (root, _) = Actor::spawn(None, Root, arguments)
        .await
        .map_err(|error| StartError::Actors(error.to_string()))?;
    let children = started.await.map_err(|_| StartError::Panicked)?;
    Ok((root, children))
}

fn begin(house: &House) -> Result<(), String> {
    house
        .fleet
        .cast(FleetMessage::Begin(Box::new(house.clone())))
        .map_err(|error| error.to_string())?;
    house.runs.cast(RunsMessage::Open(Box::new(house.clone()))).map_err(|error| error.to_string())
}

async fn serve(
    api: Api,
    listener: TcpListener,
    (root, mut reasons): (ActorRef<RootMessage>, mpsc::Receiver<String>),
    journal: Journal,
    (endpoint, address): (Option<PathBuf>, SocketAddr),
) -> Result<(), StartError> {
    let ending = api.ending.clone();
    let authority = Authority::new(api.tokens.clone());
    let server = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_WITHIN))
        .layer(tonic::service::InterceptorLayer::new(authority))
        .add_routes(services::router(&api));
    let incoming = TcpListenerStream::new(listener).map(|socket| {
        if let Ok(socket) = &socket {
            // Without it a small answer waits for the peer's delayed acknowledgement.
            socket.set_nodelay(true)?;
        }
        socket
    });
    let signal = ending.clone();
    let mut serving = tokio::spawn(
        server.serve_with_incoming_shutdown(incoming, async move { signal.cancelled().await }),
    );
    // In this order: once it is ending, a server without connections is done at the same moment, and
    // the journal is still to be closed.
    let fatal = tokio::select! {
        biased;
        reason = reasons.recv() => reason,
        () = ending.cancelled() => None,
        broke = &mut serving => Some(match broke {
            Ok(Ok(())) => "the server ended by itself".to_owned(),
            Ok(Err(error)) => format!("serve: {error}"),
            Err(_) => StartError::Panicked.to_string(),
        }),
    };
    let stopped = serving.is_finished();
    ending.cancel();
    forget_endpoint(endpoint.as_deref(), address);
    api.streams.close();
    // Streams and calls end by themselves; one that does not is cut.
    let _ = tokio::time::timeout(DRAIN, api.streams.wait()).await;
    if !stopped && tokio::time::timeout(DRAIN, &mut serving).await.is_err() {
        serving.abort();
    }
    rest(&api.house).await;
    root.stop(None);
    drop(api);
    let closed = journal.close().await;
    match (fatal, closed) {
        (Some(reason), _) => Err(StartError::Fatal(reason)),
        (None, Err(error)) => Err(StartError::Fatal(format!("close the journal: {error}"))),
        (None, Ok(_)) => Ok(()),
    }
}

/// Lets the actors finish what they have begun: orders to git, then the runs' batches, then what is
/// to be remembered of the fleet. Whatever does not end in time is cut, as a crash would cut it.
async fn rest(house: &House) {
    let within = Some(DRAIN);
    if house.trees.drain_and_wait(within).await.is_err() {
        tracing::warn!("an order to git was cut");
    }
    house.runs.get_cell().drain_children_and_wait(within).await;
    if house.fleet.drain_and_wait(within).await.is_err() {
        tracing::warn!("the fleet did not end in time");
    }
}

/// Clients of this machine find the coordinator here; readable by its owner only through the
/// directory it is in. Whoever reads it sees an address or nothing.
fn write_endpoint(path: Option<&Path>, address: SocketAddr) -> Result<(), StartError> {
    let Some(path) = path else { return Ok(()) };
    let failed = |source| StartError::Directory { path: path.to_owned(), source };
    let new = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&new, endpoint(address)).map_err(failed)?;
    std::fs::rename(&new, path).map_err(failed)
}

/// Removes the address, unless another coordinator wrote its own there.
fn forget_endpoint(path: Option<&Path>, address: SocketAddr) {
    let Some(path) = path else { return };
    if std::fs::read_to_string(path).is_ok_and(|text| text == endpoint(address)) {
        // Somebody may have removed it before.
        let _ = std::fs::remove_file(path);
    }
}

fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}\n")
}

#[cfg(test)]
mod tests;

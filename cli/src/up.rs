//! A coordinator in this process and workers as children of it: the only place of this crate that
//! starts processes.
//!
//! The children are this very program. They die when their standard input ends, so that none
//! outlives us, however we end. Which command wants what is not here.

use std::net::SocketAddr;
use std::path::PathBuf;

use ganger_coordinator::journal::OpenError;
use ganger_coordinator::{Config, Coordinator, StartError};
use ganger_telemetry::Telemetry;
use thiserror::Error as ThisError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::exit::Exit;
use crate::server::{Server, ServerError};
use crate::settings::Settings;
use crate::telemetry;

mod child;

pub use child::{Say, Wish};

/// Embedded workers that may be asked for.
pub const WORKERS_MAX: u32 = 64;

/// Why something of our own did not start, or broke.
#[derive(Debug, ThisError)]
pub enum UpError {
    /// The state directory cannot be made.
    #[error("make {}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The coordinator did not start, or had to end.
    #[error(transparent)]
    Coordinator(#[from] StartError),
    /// Telemetry of our own.
    #[error("start telemetry: {0}")]
    Telemetry(String),
    /// The coordinator's task panicked.
    #[error("run the coordinator: it panicked")]
    Panicked,
    /// This program cannot be found to be started again.
    #[error("find this program")]
    Program(#[source] std::io::Error),
}

impl UpError {
    /// Another process has the directory.
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            Self::Coordinator(StartError::Journal(OpenError::Log(ganger_log::OpenError::Lock(
                ganger_log::LockError::Held { .. }
            ))))
        )
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Coordinator(StartError::Plaintext(_)) => Exit::Refused,
            Self::Directory { .. }
            | Self::Coordinator(_)
            | Self::Telemetry(_)
            | Self::Panicked
            | Self::Program(_) => Exit::Failed,
        }
    }
}

/// A coordinator of our own, and its workers.
#[derive(Debug)]
pub struct Embedded {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its workers.
    pub workers: Workers,
    ending: CancellationToken,
    ended: JoinHandle<Result<(), StartError>>,
}

/// The workers of an embedded coordinator: none until they are started.
#[derive(Debug, Clone)]
pub struct Workers {
    address: SocketAddr,
    kept: TaskTracker,
    wish: watch::Sender<Wish>,
}

impl Embedded {
    /// Starts a coordinator on the state directory.
    pub async fn start(
        settings: &Settings,
        listen: Option<SocketAddr>,
        telemetry: Option<&Telemetry>,
    ) -> Result<Self, UpError> {
        let state = &settings.state;
        state
            .make()
            .map_err(|source| UpError::Directory { path: state.path().to_owned(), source })?;
        let mut config = Config::new(state.path().to_owned());
        config.endpoint_file = Some(state.endpoint_file());
        config.limits = settings.file.coordinator.limits.over(&config.limits);
        if let Some(listen) = listen {
            config.listen = listen;
        }
        let quiet = match telemetry {
            Some(_) => None,
            None => Some(
                telemetry::none().map_err(|error: Error| UpError::Telemetry(error.to_string()))?,
            ),
        };
        let telemetry = telemetry.or(quiet.as_ref()).expect("one of both is there");
        let coordinator = ganger_coordinator::start(config, telemetry).await?;
        Ok(Self::of(coordinator))
    }

    fn of(coordinator: Coordinator) -> Self {
        Self {
            address: coordinator.address,
            workers: Workers {
                address: coordinator.address,
                kept: TaskTracker::new(),
                wish: watch::Sender::new(Wish::Stay),
            },
            ending: coordinator.ending(),
            ended: tokio::spawn(coordinator.ended()),
        }
    }

    /// How it is spoken to; always with the operator's token, whatever token others are shown.
    pub fn server(&self, settings: &Settings) -> Result<Server, ServerError> {
        let own = Settings { token_file: None, ..settings.clone() };
        Server::at(&format!("http://{}", self.address), &own)
    }

    /// Waits until the coordinator has ended by itself, which it should not.
    pub async fn broke(&mut self) -> UpError {
        match (&mut self.ended).await {
            Ok(Ok(())) | Err(_) => UpError::Panicked,
            Ok(Err(error)) => error.into(),
        }
    }

    /// Ends the workers as wished, then the coordinator.
    pub async fn stop(self, wish: Wish) -> Result<(), UpError> {
        self.workers.wish.send_replace(wish);
        self.workers.kept.close();
        self.workers.kept.wait().await;
        self.ending.cancel();
        if self.ended.is_finished() {
            // `broke` has told it.
            return Ok(());
        }
        match self.ended.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(UpError::Panicked),
        }
    }
}

impl Workers {
    /// Starts workers and keeps them: one that dies is started anew.
    pub fn start(
        &self,
        settings: &Settings,
        (workers, slots): (u32, u32),
        say: Say,
    ) -> Result<(), UpError> {
        let program = child::this_program().map_err(UpError::Program)?;
        for n in 1..=workers {
            let name = format!("local-{n}");
            let worker = child::Worker {
                program: program.clone(),
                server: format!("http://{}", self.address),
                token_file: settings.state.worker_token(),
                data: settings.state.worker(&name),
                name,
                slots,
                say,
                config: settings.config.clone(),
            };
            self.kept.spawn(child::keep(worker, self.wish.subscribe()));
        }
        Ok(())
    }
}

//! A worker in this process and what tests do with it.

use std::path::Path;
use std::time::Duration;

use ganger_shared::ids::{Epoch, RunId};
use ganger_shared::link::Lease;
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{Assignment, Body};
use ganger_shared::time::DurationMs;
use ganger_worker::RunError;
use ganger_worker::config::Config;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::coordinator::{Coordinator, TOKEN, within};

/// A directory, a coordinator and, once started, a worker.
pub struct Ground {
    pub dir: TempDir,
    pub coordinator: Coordinator,
}

/// A running worker.
pub struct Worker {
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<(), RunError>>,
}

impl Ground {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), TOKEN).unwrap();
        let coordinator = Coordinator::listen(&dir.path().join("artifacts"), None).await;
        Self { dir, coordinator }
    }

    pub fn config(&self) -> Config {
        config(&self.coordinator.address, self.dir.path())
    }

    pub fn worker(&self) -> Worker {
        Worker::start(self.config())
    }

    /// Another coordinator on the same address, as after its restart.
    pub async fn coordinator_again(self) -> Self {
        let Self { dir, coordinator } = self;
        let address = coordinator.address.clone();
        coordinator.vanish().await;
        let coordinator = Coordinator::listen(&dir.path().join("artifacts"), Some(&address)).await;
        Self { dir, coordinator }
    }
}

/// A worker's configuration with short waits.
pub fn config(address: &str, dir: &Path) -> Config {
    let mut config = Config::new(address, dir.join("token"), dir.join("worker"));
    config.bounds.redial_min_ms = DurationMs(20);
    config.bounds.redial_max_ms = DurationMs(200);
    config.bounds.kill_ms = DurationMs(10_000);
    config.labels.insert("team".to_owned(), "tools".to_owned());
    config
}

impl Worker {
    pub fn start(config: Config) -> Self {
        let (shutdown, asked) = oneshot::channel();
        let run = tokio::spawn(ganger_worker::run(config, async {
            // A test that ends early takes the worker down with its runtime.
            if asked.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Self { shutdown: Some(shutdown), run }
    }

    /// Asks it to leave.
    pub fn leave(&mut self) {
        let _ = self.shutdown.take().unwrap().send(());
    }

    /// How it ended.
    pub async fn ended(self) -> Result<(), RunError> {
        within(self.run).await.unwrap()
    }
}

pub fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test);
    // Whatever a worker still does must not reach into the next test.
    runtime.shutdown_timeout(Duration::from_secs(5));
}

/// A command without a repository.
pub fn command(unit: &str, epoch: u64, run: &str) -> Assignment {
    Assignment {
        run: RunId::from_uuid_bytes(&[3; 16]),
        work: format!("{unit}/main/1").parse().unwrap(),
        epoch: Epoch(epoch),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
        source: None,
        timeout_ms: DurationMs::from_mins(5),
        silence_ms: None,
        grace_ms: DurationMs(300),
        on_disconnect: OnDisconnect::Continue,
        env: vec![],
        body: Body::Command { run: run.to_owned(), files: vec!["**".to_owned()] },
    }
}

pub fn lease(assignment: &Assignment) -> Lease {
    ganger_worker::attempts::port::lease_of(assignment)
}

//! What a coordinator leaves behind for others of its machine, and takes away again.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::os::unix::fs::PermissionsExt as _;

use ganger_telemetry::{LogOptions, ServiceIdentity, Settings};
use tempfile::TempDir;

use super::*;

fn telemetry() -> Telemetry {
    let identity = ServiceIdentity::new("ganger-coordinator", "test");
    Telemetry::build(&identity, &Settings::off(), LogOptions::default()).unwrap().0
}

fn config(dir: &TempDir) -> Config {
    let mut config = Config::new(dir.path().join("data"));
    config.endpoint_file = Some(dir.path().join("endpoint"));
    config
}

#[tokio::test]
async fn a_clean_end_takes_the_endpoint_away_and_needs_no_repair() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("endpoint");
    for _ in 0..2 {
        let coordinator = start(config(&dir), &telemetry()).await.unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(written, format!("http://{}\n", coordinator.address));
        coordinator.ending().cancel();
        coordinator.ended().await.unwrap();
        assert!(!file.exists());
    }
    let mode = std::fs::metadata(dir.path().join("data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let (journal, _) =
        Journal::open(&dir.path().join("data/journal"), crate::journal::Options::default())
            .unwrap();
    let events = system::read(&EventStore::Disk(journal), 1, 100).unwrap();
    let starts: Vec<Vec<String>> = events
        .into_iter()
        .filter_map(|(_, envelope)| match envelope.event {
            SystemEvent::CoordinatorStarted { repairs, .. } => Some(repairs),
            SystemEvent::TokenIssued { .. }
            | SystemEvent::TokenRevoked { .. }
            | SystemEvent::SubmitRecorded { .. }
            | SystemEvent::RunQuarantined { .. }
            | SystemEvent::RunUnquarantined { .. }
            | SystemEvent::ArtifactPurged { .. } => None,
        })
        .collect();
    assert_eq!(starts, [Vec::<String>::new(), Vec::new()], "nothing was to repair");
}

#[tokio::test]
async fn the_endpoint_of_another_coordinator_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let coordinator = start(config(&dir), &telemetry()).await.unwrap();
    let file = dir.path().join("endpoint");
    std::fs::write(&file, "http://127.0.0.1:1\n").unwrap();
    coordinator.ending().cancel();
    coordinator.ended().await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "http://127.0.0.1:1\n");
}

#[tokio::test]
async fn plain_text_off_loopback_is_refused() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir);
    config.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = start(config, &telemetry()).await;
    assert!(matches!(refused, Err(StartError::Plaintext(_))));
}

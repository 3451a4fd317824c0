//! Folding a run from its snapshot and its events: at the start, and after a refused batch.

use std::sync::Arc;

use ganger_coordinator_core::run::{FoldError, Run};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::limits;
use thiserror::Error;
use tokio::task::JoinError;

use super::State;
use super::snapshot::Snapshots;
use crate::journal::{EventStore, ReadError, StreamName};

/// The version of the state's encoding. A snapshot of another version is not loaded; the events are.
pub(super) const SCHEMA: u32 = 1;

/// Why a run cannot be folded.
#[derive(Debug, Error)]
pub enum Error {
    /// The store does not give its events.
    #[error("read the run's events")]
    Read(#[from] ReadError),
    /// An event is not one this build knows.
    #[error("event {seq} of {stream} is not readable: {source}")]
    Unreadable {
        /// The stream.
        stream: String,
        /// Its place.
        seq: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// An event does not fit onto the ones before.
    #[error("event {seq} of {stream} does not apply: {source}")]
    Fold {
        /// The stream.
        stream: String,
        /// Its place.
        seq: u64,
        /// Why.
        source: Box<FoldError>,
    },
    /// Folding panicked.
    #[error("fold the run's events: {0}")]
    Panicked(String),
    /// Nothing is folded any more.
    #[error("fold the run's events: the coordinator is ending")]
    Closed,
}

impl State {
    /// Folds beside the actor, and only a few runs at once: both readers and memory are bounded.
    pub(super) async fn fold(&mut self) -> Result<(), Error> {
        let places = Arc::clone(&self.house.folds);
        let place = places.acquire_owned().await.map_err(|_| Error::Closed)?;
        let (store, stream) = (self.house.store.clone(), self.stream.clone());
        let folding = tokio::task::spawn_blocking(move || {
            let _place = place;
            folded(&store, &stream)
        });
        (self.run, self.snapshots) =
            folding.await.map_err(|error| Error::Panicked(said(error)))??;
        self.spans.folded(&self.run);
        Ok(())
    }
}

fn folded(store: &EventStore, stream: &StreamName) -> Result<(Run, Snapshots), Error> {
    let mut snapshots = Snapshots::default();
    let mut run = snapshot(store, stream, &mut snapshots).unwrap_or_default();
    loop {
        let page = store.read(stream, run.sequence() + 1, limits::PAGE)?;
        if page.is_empty() {
            break;
        }
        for stored in page {
            let (stream, seq) = (stream.to_string(), stored.seq);
            let envelope: Envelope<RunEvent> = serde_json::from_str(&stored.body)
                .map_err(|source| Error::Unreadable { stream: stream.clone(), seq, source })?;
            run.apply(seq, &envelope).map_err(|source| Error::Fold {
                stream,
                seq,
                source: Box::new(source),
            })?;
        }
    }
    run.settle();
    Ok((run, snapshots))
}

/// The newest snapshot that can be read; a bad one is only slower, never wrong.
fn snapshot(store: &EventStore, stream: &StreamName, found: &mut Snapshots) -> Option<Run> {
    let loaded = store.load_snapshot(stream, SCHEMA).ok()?.snapshot?;
    let run: Run = serde_json::from_slice(&loaded.bytes).ok()?;
    (found.at, found.bytes) = (run.sequence(), loaded.bytes.len() as u64);
    Some(run)
}

/// What a panic said, as far as it said it in words.
fn said(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words").to_owned()
}

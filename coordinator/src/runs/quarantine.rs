//! Runs that cannot be folded are set aside by a fact, so that they are not folded again and again.

use ganger_shared::actor::Actor;
use ganger_shared::event::{Envelope, RunEvent, SystemEvent};
use ganger_shared::ids::{IdempotencyKey, RunId};
use ganger_shared::limits;
use ganger_shared::rejection::Rejection;
use ractor::{ActorId, ActorProcessingErr, ActorRef};

use super::{RunsMessage, State};
use crate::house::House;
use crate::journal::{ReadError, StreamName};
use crate::system;

/// Failures of one run within [`WITHIN_MS`] that set it aside.
const FAILURES: usize = 3;
const WITHIN_MS: u64 = 60_000;

impl State {
    pub(super) fn read_quarantine(&mut self, house: &House) -> Result<(), ActorProcessingErr> {
        let mut from = 1;
        loop {
            let page = system::read(&house.store, from, limits::PAGE)?;
            let Some(last) = page.last().map(|(seq, _)| *seq) else { return Ok(()) };
            from = last + 1;
            for (_, Envelope { event, .. }) in page {
                match event {
                    SystemEvent::RunQuarantined { run, reason } => {
                        self.quarantined.insert(run, reason);
                    }
                    SystemEvent::RunUnquarantined { run } => {
                        self.quarantined.remove(&run);
                    }
                    SystemEvent::CoordinatorStarted { .. }
                    | SystemEvent::TokenIssued { .. }
                    | SystemEvent::TokenRevoked { .. }
                    | SystemEvent::SubmitRecorded { .. }
                    | SystemEvent::ArtifactPurged { .. } => {}
                }
            }
        }
    }

    /// A run that is not folded has no calls; the one that made it is still known, so that a repeated
    /// submit does not make a second run (P042).
    pub(super) fn remember_submits(&mut self, house: &House) -> Result<(), ActorProcessingErr> {
        for run in self.quarantined.keys() {
            let stream = StreamName::run(run.as_str()).expect("a run id is plain");
            if let Some(key) = submit_key(house, &stream)? {
                self.submits.insert(key, run.clone());
            }
        }
        Ok(())
    }

    /// A run's actor died: it is started again, unless it dies of the same thing again and again.
    pub(super) async fn failed(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        actor: ActorId,
        reason: &str,
    ) -> Result<(), ActorProcessingErr> {
        let Some(run) = self.gone(actor) else { return Ok(()) };
        tracing::error!(%run, %reason, "a run's actor died");
        if self.ending() {
            return Ok(());
        }
        let now = self.house().clock.mono_ms();
        let failures = self.failures.entry(run.clone()).or_default();
        failures.push_back(now);
        failures.retain(|at| now.saturating_sub(*at) <= WITHIN_MS);
        if failures.len() < FAILURES {
            self.start(myself, &run).await?;
            return Ok(());
        }
        self.set_aside(run, reason.to_owned()).await
    }

    async fn set_aside(&mut self, run: RunId, reason: String) -> Result<(), ActorProcessingErr> {
        let event = SystemEvent::RunQuarantined { run: run.clone(), reason: reason.clone() };
        let at = self.house().clock.utc();
        let envelope = Envelope { at, by: Actor::Coordinator, event };
        system::append(&self.house().store, vec![envelope]).await?;
        self.quarantined.insert(run.clone(), reason);
        if self.folding.remove(&run) {
            self.open_if_folded()?;
        }
        Ok(())
    }

    pub(super) async fn release(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        name: &str,
    ) -> Result<Result<RunId, Rejection>, ActorProcessingErr> {
        let run = match self.resolve(name) {
            Ok(run) => run,
            Err(rejection) => return Ok(Err(rejection)),
        };
        if self.quarantined.remove(&run).is_some() {
            self.failures.remove(&run);
            let event = SystemEvent::RunUnquarantined { run: run.clone() };
            let at = self.house().clock.utc();
            let envelope = Envelope { at, by: Actor::Coordinator, event };
            system::append(&self.house().store, vec![envelope]).await?;
            self.start(myself, &run).await?;
        }
        Ok(Ok(run))
    }
}

/// The key of a run's first call, its submit.
fn submit_key(house: &House, stream: &StreamName) -> Result<Option<IdempotencyKey>, ReadError> {
    let mut from = 1;
    loop {
        let page = house.store.read(stream, from, limits::PAGE)?;
        let Some(last) = page.last().map(|stored| stored.seq) else { return Ok(None) };
        from = last + 1;
        for stored in page {
            // What is not readable may be the reason why the run is set aside.
            let envelope = serde_json::from_str::<Envelope<RunEvent>>(&stored.body);
            if let Ok(Envelope { event: RunEvent::CommandRecorded(record), .. }) = envelope {
                return Ok(Some(record.key));
            }
        }
    }
}

//! Following a run: what is in the journal first, then what happens, in order and without a gap.
//!
//! A watcher that reads too slowly loses its subscription, never the run its pace (P108): it is told
//! from where to watch again. The stream ends after the last event of a run that is over.

use std::sync::Arc;

use ganger_proto::convert::Watched;
use ganger_proto::v1::run_service_watch_response::Next;
use ganger_proto::{status, v1};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::RunId;
use ganger_shared::limits;
use ganger_shared::rejection::Rejection;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::summary::summary;
use crate::journal::StreamName;
use crate::run::{RunMessage, Seen, Watching};
use crate::services::Api;
use crate::services::ask::{ask, blocking, gone, internal, row_of};

/// Events read ahead of the network.
const AHEAD: usize = 16;
/// Times a run's actor may end under one watcher before the watcher is told to come again.
const ACTORS: usize = 8;

type Answer = Result<v1::RunServiceWatchResponse, Status>;

/// Why following stopped.
enum End {
    /// Nothing follows, or the watcher went away.
    Over,
    /// The run's actor ended; the next one goes on.
    ActorGone,
    /// The watcher is told why.
    Failed(Status),
}

/// Starts to follow a run from after a sequence on.
pub(super) async fn follow(
    api: &Api,
    name: &str,
    after: u64,
) -> Result<ReceiverStream<Answer>, Status> {
    let actor = api.find(name).await?;
    let row = row_of(&actor, name).await?;
    if after > row.sequence {
        let what = format!("run {}", row.id);
        let (expected, current) = (after, row.sequence);
        return Err(status::of(&Rejection::StaleSequence { what, expected, current }));
    }
    let (send, receive) = mpsc::channel(AHEAD);
    let watcher = Watcher { api: api.clone(), run: row.id, sent: after, send };
    api.streams.spawn(watcher.pump());
    Ok(ReceiverStream::new(receive))
}

struct Watcher {
    api: Api,
    run: RunId,
    /// The last sequence that was sent.
    sent: u64,
    send: mpsc::Sender<Answer>,
}

impl Watcher {
    async fn pump(mut self) {
        let ending = self.api.ending.clone();
        let end = tokio::select! {
            biased;
            () = ending.cancelled() => End::Failed(gone()),
            end = self.all() => end,
        };
        if let End::Failed(status) = end
            && self.send.try_send(Err(status)).is_err()
        {
            tracing::debug!(run = %self.run, "a watcher went away before it was told why");
        }
    }

    async fn all(&mut self) -> End {
        for _ in 0..ACTORS {
            match self.with_one_actor().await {
                End::ActorGone => {}
                end @ (End::Over | End::Failed(_)) => return end,
            }
        }
        End::Failed(internal(&format!("run {} ends again and again; look at it", self.run)))
    }

    async fn with_one_actor(&mut self) -> End {
        let watching = match self.api.find(self.run.as_str()).await {
            Ok(actor) => ask(&actor, RunMessage::Watch).await,
            Err(status) => return End::Failed(status),
        };
        let Ok(Watching { sequence, over, events }) = watching else { return End::ActorGone };
        match self.backlog(sequence).await {
            Ok(()) if over => End::Over,
            Ok(()) => self.live(events).await,
            Err(end) => end,
        }
    }

    /// What was written before the subscription began.
    async fn backlog(&mut self, until: u64) -> Result<(), End> {
        let stream = StreamName::run(self.run.as_str()).expect("a run id is plain");
        while self.sent < until {
            let (store, stream, from) =
                (self.api.house.store.clone(), stream.clone(), self.sent + 1);
            let page = blocking(move || store.read(&stream, from, limits::PAGE)).await;
            let page = page.map_err(End::Failed)?.map_err(|error| End::Failed(internal(&error)))?;
            if page.is_empty() {
                return Err(End::Failed(internal(&format!(
                    "event {from} of {} is gone",
                    self.run
                ))));
            }
            for stored in page {
                let envelope: Envelope<RunEvent> = serde_json::from_str(&stored.body)
                    .map_err(|error| End::Failed(internal(&error)))?;
                self.tell(stored.seq, &envelope, stored.body).await?;
            }
        }
        Ok(())
    }

    async fn live(&mut self, mut events: broadcast::Receiver<Arc<Seen>>) -> End {
        loop {
            match events.recv().await {
                Ok(seen) if seen.seq <= self.sent => {}
                Ok(seen) => {
                    let json = match serde_json::to_string(&seen.envelope) {
                        Ok(json) => json,
                        Err(error) => return End::Failed(internal(&error)),
                    };
                    if let Err(end) = self.tell(seen.seq, &seen.envelope, json).await {
                        return end;
                    }
                    if ends(&seen.envelope.event) {
                        return End::Over;
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => return self.resync().await,
                Err(broadcast::error::RecvError::Closed) => return End::ActorGone,
            }
        }
    }

    async fn tell(
        &mut self,
        seq: u64,
        envelope: &Envelope<RunEvent>,
        json: String,
    ) -> Result<(), End> {
        let watched = Watched::new(seq, envelope, summary(&envelope.event), json)
            .map_err(|error| End::Failed(internal(&error)))?;
        self.say(Next::Event(watched.into())).await?;
        self.sent = seq;
        Ok(())
    }

    async fn resync(&mut self) -> End {
        let sequence = self.sent;
        match self.say(Next::ResyncRequired(v1::ResyncRequired { sequence })).await {
            Ok(()) => End::Over,
            Err(end) => end,
        }
    }

    async fn say(&self, next: Next) -> Result<(), End> {
        let answer = v1::RunServiceWatchResponse { next: Some(next) };
        self.send.send(Ok(answer)).await.map_err(|_| End::Over)
    }
}

/// Whether the event is a run's last but for late facts.
fn ends(event: &RunEvent) -> bool {
    matches!(event, RunEvent::RunAborted | RunEvent::RunCompleted { .. })
}

//! A worker's end in good order: attempts end and report, reports are answered, then goodbye.
//!
//! Each part has its share of one bound; what is not said in time is in the outbox and is said by
//! the next process. Not here: what ends a worker otherwise.

use std::time::Duration;

use ganger_shared::time::DurationMs;
use ractor::{ActorRef, call_t};
use tokio::time::timeout;

use crate::attempts::AttemptsMessage;
use crate::link::LinkMessage;
use crate::outbox::Outbox;

/// How long the last reports wait for their answers.
const ANSWERS: Duration = Duration::from_secs(5);
/// How long the goodbye may take.
const GOODBYE_MS: u64 = 5_000;

/// Takes leave of everybody.
pub(super) async fn leave(
    attempts: ActorRef<AttemptsMessage>,
    link: ActorRef<LinkMessage>,
    outbox: Outbox,
    bound: DurationMs,
) {
    if let Err(error) = call_t!(attempts, AttemptsMessage::Leave, bound.0) {
        tracing::warn!(%error, "attempts were still ending; their processes end with us");
    }
    let mut owed = outbox.owed();
    // A coordinator that is away does not keep us: the next process hands the rest in.
    let answered = owed.wait_for(|owed| owed.unanswered.is_empty());
    if timeout(ANSWERS.min(bound.to_std()), answered).await.is_err() {
        tracing::info!("the last reports are not answered; they stay in the outbox");
    }
    if let Err(error) = call_t!(link, LinkMessage::Leave, GOODBYE_MS) {
        tracing::warn!(%error, "the goodbye was not said in time");
    }
}

//! Waiting for a run in one call: a compact answer as soon as something happened, or when the time
//! is over, which is no error.

use std::sync::Arc;
use std::time::Duration;

use ganger_proto::convert::Snapshot;
use ganger_proto::{Malformed, Reason, v1};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{RunId, UnitId};
use ganger_shared::time::Timestamp;
use ganger_shared::view::{RunView, UnitView};
use ractor::ActorRef;
use tokio::sync::broadcast;
use tonic::Status;

use crate::journal::StreamName;
use crate::run::{RunMessage, Seen, Watching};
use crate::services::Api;
use crate::services::ask::{ask, blocking, gone, internal, row_of, view_of};

/// How long a wait lasts that does not say (R168).
const TIMEOUT: Duration = Duration::from_mins(4);
/// The longest wait.
const TIMEOUT_MAX: Duration = Duration::from_hours(12);

/// What is waited for.
struct Wanted {
    after: u64,
    rest: bool,
}

pub(super) async fn wait(
    api: &Api,
    request: v1::RunServiceWaitRequest,
) -> Result<v1::RunServiceWaitResponse, Status> {
    let timeout = timeout(request.timeout_ms)?;
    let wanted = Wanted { after: request.after_sequence, rest: rest(request.wake_on)? };
    // The whole id from here on: the beginning may fit another run later.
    let row = row_of(&api.find(&request.run).await?, &request.run).await?;
    let happened = tokio::select! {
        biased;
        happened = until(api, &row.id, &wanted) => { happened?; true }
        () = api.ending.cancelled() => return Err(gone()),
        () = pass(timeout) => false,
    };
    let snapshot = snapshot(api, &row.id).await?;
    Ok(v1::RunServiceWaitResponse { snapshot: Some(snapshot.into()), expired: !happened })
}

fn timeout(ms: u64) -> Result<Duration, Malformed> {
    let asked = Duration::from_millis(ms);
    if asked > TIMEOUT_MAX {
        let form = format!("{ms} ms, and {} ms (12 h) are the most", TIMEOUT_MAX.as_millis());
        return Err(Malformed::new("timeout_ms", Reason::Form(form)));
    }
    Ok(if ms == 0 { TIMEOUT } else { asked })
}

fn rest(wake_on: i32) -> Result<bool, Malformed> {
    match v1::WakeOn::try_from(wake_on) {
        Ok(v1::WakeOn::Unspecified | v1::WakeOn::Event) => Ok(false),
        Ok(v1::WakeOn::Rest) => Ok(true),
        Err(_) => Err(Malformed::new("wake_on", Reason::UnknownValue(wake_on))),
    }
}

#[expect(clippy::disallowed_methods, reason = "the caller asked to wait this long at most")]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Returns when what is wanted is so.
async fn until(api: &Api, run: &RunId, wanted: &Wanted) -> Result<(), Status> {
    loop {
        let actor = api.find(run.as_str()).await?;
        let Ok(Watching { mut events, .. }) = ask(&actor, RunMessage::Watch).await else {
            continue;
        };
        loop {
            if holds(&actor, run, wanted).await? {
                return Ok(());
            }
            if !next(&mut events).await {
                break;
            }
        }
    }
}

async fn holds(actor: &ActorRef<RunMessage>, run: &RunId, wanted: &Wanted) -> Result<bool, Status> {
    let row = row_of(actor, run.as_str()).await?;
    Ok(if wanted.rest { at_rest(&row.state) } else { row.sequence > wanted.after })
}

/// Whether the run goes on by itself; a pause is somebody's wish and is waited out.
fn at_rest(state: &str) -> bool {
    matches!(state, "held" | "budget_limited" | "waiting" | "completed" | "failed" | "aborted")
}

/// Waits for the next event and takes with it all that are there; false when the actor is gone.
async fn next(events: &mut broadcast::Receiver<Arc<Seen>>) -> bool {
    use broadcast::error::{RecvError, TryRecvError};
    match events.recv().await {
        Ok(_) | Err(RecvError::Lagged(_)) => {}
        Err(RecvError::Closed) => return false,
    }
    loop {
        match events.try_recv() {
            Ok(_) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Closed) => return false,
        }
    }
}

async fn snapshot(api: &Api, run: &RunId) -> Result<Snapshot, Status> {
    let actor = api.find(run.as_str()).await?;
    let view = view_of(&actor, run.as_str()).await?;
    let updated_at = updated_at(api, &view).await?;
    let running = view.units.iter().filter(|unit| has_live_attempt(unit));
    let running: Vec<UnitId> = running.map(|unit| unit.id.clone()).collect();
    let (blocker, next_action) = help(&view);
    Ok(Snapshot {
        running,
        attention: None,
        blocker,
        next_action,
        ledger: view.ledger,
        questions: Vec::new(),
        updated_at,
        row: view.row,
    })
}

fn has_live_attempt(unit: &UnitView) -> bool {
    unit.attempts.iter().any(|attempt| attempt.ended_at.is_none())
}

/// What keeps the run from going on, and the command that would help most.
fn help(view: &RunView) -> (Option<String>, Option<String>) {
    let named = |state: &str| {
        view.units.iter().find(|unit| unit.state == state).map(|unit| {
            let reason = unit.reason.as_deref().unwrap_or("no reason was given");
            format!("unit {} is {state}: {reason}", unit.id)
        })
    };
    let closed = || {
        let closed = view.units.iter().find(|unit| unit.gate.as_deref() == Some("closed"));
        closed.map(|unit| format!("the gate of unit {} is closed", unit.id))
    };
    let conflict = || {
        let torn = |unit: &&UnitView| unit.integration.as_deref() == Some("conflict");
        let torn = view.units.iter().find(torn);
        torn.map(|unit| format!("unit {} does not fit onto the branch", unit.id))
    };
    let reason = view.row.reason.clone();
    match (view.row.state.as_str(), reason.as_deref()) {
        ("paused", _) => (reason.map(|why| format!("paused: {why}")), Some("resume".to_owned())),
        ("held", Some("unit_failed")) => {
            let unit = named("failed").or_else(|| named("cancelled"));
            (unit.or_else(conflict).or(reason), Some("stop".to_owned()))
        }
        ("held", _) => (closed().or_else(conflict).or(reason), Some("stop".to_owned())),
        ("budget_limited", _) => {
            (reason.map(|which| format!("limit reached: {which}")), Some("stop".to_owned()))
        }
        _ => (None, None),
    }
}

/// When the last event was recorded: the journal knows.
async fn updated_at(api: &Api, view: &RunView) -> Result<Timestamp, Status> {
    let stream = StreamName::run(view.row.id.as_str()).expect("a run id is plain");
    let (store, last) = (api.house.store.clone(), view.row.sequence);
    let page = blocking(move || store.read(&stream, last, 1)).await?;
    let stored = page.map_err(|error| internal(&error))?.pop();
    let stored = stored.ok_or_else(|| internal(&format!("event {last} is gone")))?;
    let envelope: Envelope<RunEvent> =
        serde_json::from_str(&stored.body).map_err(|error| internal(&error))?;
    Ok(envelope.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R168: a wait that does not say lasts 240 s, the longest 12 h.
    #[test]
    fn a_wait_has_a_default_and_a_longest_time() {
        assert_eq!(timeout(0), Ok(TIMEOUT));
        assert_eq!(timeout(43_200_000), Ok(TIMEOUT_MAX));
        assert!(timeout(43_200_001).is_err());
    }
}

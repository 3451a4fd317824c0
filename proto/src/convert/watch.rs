//! One event as a watcher sees it.

use ganger_shared::actor::Actor;
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, Subject, UnitId, WorkId};
use ganger_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::malformed::Malformed;
use crate::{read, v1};

/// One event of a run, with what people want to know of it beside what was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// Its place in the run's stream, from 1.
    pub sequence: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// Whose act it was.
    pub by: Actor,
    /// Its type, such as `AttemptLeased`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The unit it is about, where it is about one.
    pub unit: Option<UnitId>,
    /// The attempt it is about, where it is about one.
    pub attempt: Option<AttemptId>,
    /// One line for people.
    pub summary: String,
    /// The stored event, as one line of JSON.
    #[serde(skip)]
    pub json: String,
}

/// Only the type of a stored event: its text form belongs to the schema, not to this room.
#[derive(Deserialize)]
struct Tag {
    r#type: String,
}

impl Watched {
    /// The event stored as `json` at `sequence`, with one line for people.
    pub fn new(
        sequence: u64,
        stored: &Envelope<RunEvent>,
        summary: String,
        json: String,
    ) -> Result<Self, serde_json::Error> {
        let Tag { r#type: kind } = serde_json::from_str(&json)?;
        Ok(Self {
            sequence,
            at: stored.at,
            by: stored.by.clone(),
            kind,
            unit: stored.event.unit(),
            attempt: stored.event.work().and_then(attempt_of),
            summary,
            json,
        })
    }
}

fn attempt_of(work: WorkId) -> Option<AttemptId> {
    match work {
        WorkId::Attempt(attempt) => Some(attempt),
        WorkId::Check(check) => match check.subject {
            Subject::Attempt(attempt) | Subject::Merge(attempt) => Some(attempt),
            Subject::Final(_) => None,
        },
    }
}

impl TryFrom<v1::RunEvent> for Watched {
    type Error = Malformed;
    fn try_from(wire: v1::RunEvent) -> Result<Self, Malformed> {
        let v1::RunEvent { sequence, at, by, r#type, unit, attempt, summary, json } = wire;
        Ok(Self {
            sequence,
            at: read::time("at", at)?,
            by: read::text("by", &by)?,
            kind: read::said("type", r#type)?,
            unit: read::optional_text("unit", unit.as_ref())?,
            attempt: read::optional_text("attempt", attempt.as_ref())?,
            summary,
            json,
        })
    }
}

impl From<Watched> for v1::RunEvent {
    fn from(watched: Watched) -> Self {
        let Watched { sequence, at, by, kind, unit, attempt, summary, json } = watched;
        Self {
            sequence,
            at: Some(read::to_wire_time(at)),
            by: by.to_string(),
            r#type: kind,
            unit: unit.map(Into::into),
            attempt: attempt.map(Into::into),
            summary,
            json,
        }
    }
}

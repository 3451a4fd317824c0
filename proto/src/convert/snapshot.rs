//! A run in a few lines: what `Wait` and `Evaluate` answer with.

use std::collections::BTreeMap;

use ganger_shared::ids::{QuestionId, UnitId};
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::time::Timestamp;
use ganger_shared::view::RunRow;
use serde::Serialize;

use super::run::{ledger_from_wire, ledger_to_wire};
use super::texts;
use crate::malformed::Malformed;
use crate::{read, v1};

/// A run in a few lines; its latest sequence is `row.sequence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// What a list shows of it.
    #[serde(flatten)]
    pub row: RunRow,
    /// Units with a live attempt.
    pub running: Vec<UnitId>,
    /// Why somebody should look, where somebody should.
    pub attention: Option<String>,
    /// What keeps the run from going on, where something does.
    pub blocker: Option<String>,
    /// The command that would help most, such as `accept`.
    pub next_action: Option<String>,
    /// The account of every dimension.
    pub ledger: BTreeMap<Dimension, Account>,
    /// Open questions.
    pub questions: Vec<QuestionId>,
    /// When the last event was recorded.
    pub updated_at: Timestamp,
}

impl TryFrom<v1::RunSnapshot> for Snapshot {
    type Error = Malformed;
    fn try_from(wire: v1::RunSnapshot) -> Result<Self, Malformed> {
        let v1::RunSnapshot {
            row,
            running,
            attention,
            blocker,
            next_action,
            ledger,
            questions,
            updated_at,
        } = wire;
        Ok(Self {
            row: read::required("row", row)?,
            running: read::each_text("running", &running)?,
            attention,
            blocker,
            next_action,
            ledger: ledger_from_wire("ledger", ledger)?,
            questions: read::each_text("questions", &questions)?,
            updated_at: read::time("updated_at", updated_at)?,
        })
    }
}

impl From<Snapshot> for v1::RunSnapshot {
    fn from(snapshot: Snapshot) -> Self {
        let Snapshot {
            row,
            running,
            attention,
            blocker,
            next_action,
            ledger,
            questions,
            updated_at,
        } = snapshot;
        Self {
            row: Some(row.into()),
            running: texts(&running),
            attention,
            blocker,
            next_action,
            ledger: ledger_to_wire(ledger),
            questions: texts(&questions),
            updated_at: Some(read::to_wire_time(updated_at)),
        }
    }
}

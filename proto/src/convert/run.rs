//! How runs and units are shown.

use std::collections::BTreeMap;

use ganger_shared::event::Conflict;
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::view::{Explanation, RunRow, RunView, UnitView};

use super::{texts, wires};
use crate::malformed::{Malformed, Reason};
use crate::v1::conflict::Kind as WireConflict;
use crate::{read, v1};

impl TryFrom<v1::RunRow> for RunRow {
    type Error = Malformed;
    fn try_from(wire: v1::RunRow) -> Result<Self, Malformed> {
        let v1::RunRow {
            id,
            name,
            project,
            labels,
            state,
            reason,
            counts,
            submitted_at,
            ended_at,
            sequence,
            trace_id,
        } = wire;
        Ok(Self {
            id: read::text("id", &id)?,
            name,
            project: read::text("project", &project)?,
            labels,
            state: read::said("state", state)?,
            reason,
            counts,
            submitted_at: read::time("submitted_at", submitted_at)?,
            ended_at: read::optional_time("ended_at", ended_at)?,
            sequence,
            trace_id,
        })
    }
}

impl From<RunRow> for v1::RunRow {
    fn from(row: RunRow) -> Self {
        let RunRow {
            id,
            name,
            project,
            labels,
            state,
            reason,
            counts,
            submitted_at,
            ended_at,
            sequence,
            trace_id,
        } = row;
        Self {
            id: id.to_string(),
            name,
            project: project.to_string(),
            labels,
            state,
            reason,
            counts,
            submitted_at: Some(read::to_wire_time(submitted_at)),
            ended_at: ended_at.map(read::to_wire_time),
            sequence,
            trace_id,
        }
    }
}

impl TryFrom<v1::RunView> for RunView {
    type Error = Malformed;
    fn try_from(wire: v1::RunView) -> Result<Self, Malformed> {
        let v1::RunView {
            row,
            goal,
            contract_hash,
            plan,
            revision,
            repository,
            repository_id,
            base,
            branch,
            tip,
            delivery,
            ledger,
            units,
            final_checks,
        } = wire;
        Ok(Self {
            row: read::required("row", row)?,
            goal,
            contract_hash: read::text("contract_hash", &contract_hash)?,
            plan: read::required("plan", plan)?,
            revision,
            repository,
            repository_id,
            base: read::optional_text("base", base.as_ref())?,
            branch,
            tip: read::optional_text("tip", tip.as_ref())?,
            delivery,
            ledger: ledger_from_wire("ledger", ledger)?,
            units: read::each("units", units)?,
            final_checks: read::each("final_checks", final_checks)?,
        })
    }
}

impl From<RunView> for v1::RunView {
    fn from(view: RunView) -> Self {
        let RunView {
            row,
            goal,
            contract_hash,
            plan,
            revision,
            repository,
            repository_id,
            base,
            branch,
            tip,
            delivery,
            ledger,
            units,
            final_checks,
        } = view;
        Self {
            row: Some(row.into()),
            goal,
            contract_hash: contract_hash.to_string(),
            plan: Some(plan.into()),
            revision,
            repository,
            repository_id,
            base: base.map(Into::into),
            branch,
            tip: tip.map(Into::into),
            delivery,
            ledger: ledger_to_wire(ledger),
            units: wires(units),
            final_checks: wires(final_checks),
        }
    }
}

/// The accounts by dimension; one account of each at most.
pub(super) fn ledger_from_wire(
    field: &str,
    accounts: Vec<v1::Account>,
) -> Result<BTreeMap<Dimension, Account>, Malformed> {
    let mut ledger = BTreeMap::new();
    for (at, account) in accounts.into_iter().enumerate() {
        let v1::Account { dimension, limit, reserved, settled } = account;
        let field = format!("{field}[{at}].dimension");
        let dimension: Dimension = read::word(&field, dimension)?;
        if ledger.insert(dimension, Account { limit, reserved, settled }).is_some() {
            return Err(Malformed::new(field, Reason::Duplicate(dimension.to_string())));
        }
    }
    Ok(ledger)
}

/// The accounts in the order of their dimensions.
pub(super) fn ledger_to_wire(ledger: BTreeMap<Dimension, Account>) -> Vec<v1::Account> {
    ledger
        .into_iter()
        .map(|(dimension, Account { limit, reserved, settled })| v1::Account {
            dimension: v1::Dimension::from(dimension).into(),
            limit,
            reserved,
            settled,
        })
        .collect()
}

impl TryFrom<v1::UnitView> for UnitView {
    type Error = Malformed;
    fn try_from(wire: v1::UnitView) -> Result<Self, Malformed> {
        let v1::UnitView {
            id,
            task,
            kind,
            after,
            state,
            reason,
            integration,
            conflict,
            commit,
            gate,
            waiting_for,
            sequence,
            losses,
            attempts,
        } = wire;
        Ok(Self {
            id: read::text("id", &id)?,
            task: read::optional_text("task", task.as_ref())?,
            kind: read::said("kind", kind)?,
            after: read::each_text("after", &after)?,
            state: read::said("state", state)?,
            reason,
            integration,
            conflict: read::optional("conflict", conflict)?,
            commit: read::optional_text("commit", commit.as_ref())?,
            gate,
            waiting_for,
            sequence,
            losses,
            attempts: read::each("attempts", attempts)?,
        })
    }
}

impl From<UnitView> for v1::UnitView {
    fn from(view: UnitView) -> Self {
        let UnitView {
            id,
            task,
            kind,
            after,
            state,
            reason,
            integration,
            conflict,
            commit,
            gate,
            waiting_for,
            sequence,
            losses,
            attempts,
        } = view;
        Self {
            id: id.to_string(),
            task: task.map(Into::into),
            kind,
            after: texts(&after),
            state,
            reason,
            integration,
            conflict: conflict.map(Into::into),
            commit: commit.map(Into::into),
            gate,
            waiting_for,
            sequence,
            losses,
            attempts: wires(attempts),
        }
    }
}

impl TryFrom<v1::Conflict> for Conflict {
    type Error = Malformed;
    fn try_from(wire: v1::Conflict) -> Result<Self, Malformed> {
        let v1::Conflict { kind } = wire;
        Ok(match read::present("kind", kind)? {
            WireConflict::Files(v1::FilesConflict { files }) => Self::Files { files },
            WireConflict::Checks(v1::ChecksConflict { failed }) => {
                Self::Checks { failed: read::each_text("checks.failed", &failed)? }
            }
            WireConflict::ForeignTip(v1::ForeignTip { found }) => Self::ForeignTip {
                found: read::optional_text("foreign_tip.found", found.as_ref())?,
            },
        })
    }
}

impl From<Conflict> for v1::Conflict {
    fn from(conflict: Conflict) -> Self {
        let kind = match conflict {
            Conflict::Files { files } => WireConflict::Files(v1::FilesConflict { files }),
            Conflict::Checks { failed } => {
                WireConflict::Checks(v1::ChecksConflict { failed: texts(&failed) })
            }
            Conflict::ForeignTip { found } => {
                WireConflict::ForeignTip(v1::ForeignTip { found: found.map(Into::into) })
            }
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<v1::Explanation> for Explanation {
    type Error = Malformed;
    fn try_from(wire: v1::Explanation) -> Result<Self, Malformed> {
        let v1::Explanation { unit, state, position, reasons } = wire;
        Ok(Self {
            unit: read::text("unit", &unit)?,
            state: read::said("state", state)?,
            position,
            reasons,
        })
    }
}

impl From<Explanation> for v1::Explanation {
    fn from(explanation: Explanation) -> Self {
        let Explanation { unit, state, position, reasons } = explanation;
        Self { unit: unit.to_string(), state, position, reasons }
    }
}

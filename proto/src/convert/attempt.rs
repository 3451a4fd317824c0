//! How attempts and checks are shown.

use ganger_shared::ids::Epoch;
use ganger_shared::time::DurationMs;
use ganger_shared::view::{AttemptView, CheckView};

use super::wires;
use crate::malformed::Malformed;
use crate::{read, v1};

impl TryFrom<v1::AttemptView> for AttemptView {
    type Error = Malformed;
    fn try_from(wire: v1::AttemptView) -> Result<Self, Malformed> {
        let v1::AttemptView {
            id,
            epoch,
            state,
            worker,
            base,
            leased_at,
            started_at,
            ended_at,
            active_ms,
            delivery,
            failure,
            output,
            checks,
            verdicts,
            progress,
        } = wire;
        Ok(Self {
            id: read::text("id", &id)?,
            epoch: Epoch(epoch),
            state: read::said("state", state)?,
            worker: read::text("worker", &worker)?,
            base: read::optional_text("base", base.as_ref())?,
            leased_at: read::time("leased_at", leased_at)?,
            started_at: read::optional_time("started_at", started_at)?,
            ended_at: read::optional_time("ended_at", ended_at)?,
            active_ms: active_ms.map(DurationMs),
            delivery: read::optional("delivery", delivery)?,
            failure: read::optional("failure", failure)?,
            output: read::optional("output", output)?,
            checks: read::each("checks", checks)?,
            verdicts: read::each("verdicts", verdicts)?,
            progress: read::optional("progress", progress)?,
        })
    }
}

impl From<AttemptView> for v1::AttemptView {
    fn from(view: AttemptView) -> Self {
        let AttemptView {
            id,
            epoch,
            state,
            worker,
            base,
            leased_at,
            started_at,
            ended_at,
            active_ms,
            delivery,
            failure,
            output,
            checks,
            verdicts,
            progress,
        } = view;
        Self {
            id: id.to_string(),
            epoch: epoch.0,
            state,
            worker: worker.to_string(),
            base: base.map(Into::into),
            leased_at: Some(read::to_wire_time(leased_at)),
            started_at: started_at.map(read::to_wire_time),
            ended_at: ended_at.map(read::to_wire_time),
            active_ms: active_ms.map(|active| active.0),
            delivery: delivery.map(Into::into),
            failure: failure.map(Into::into),
            output: output.map(Into::into),
            checks: wires(checks),
            verdicts: wires(verdicts),
            progress: progress.map(Into::into),
        }
    }
}

impl TryFrom<v1::CheckView> for CheckView {
    type Error = Malformed;
    fn try_from(wire: v1::CheckView) -> Result<Self, Malformed> {
        let v1::CheckView { id, required, state, worker, place, tree, result } = wire;
        Ok(Self {
            id: read::text("id", &id)?,
            required,
            state: read::said("state", state)?,
            worker: read::optional_text("worker", worker.as_ref())?,
            place: read::optional_word("place", place)?,
            tree: read::text("tree", &tree)?,
            result: read::optional("result", result)?,
        })
    }
}

impl From<CheckView> for v1::CheckView {
    fn from(view: CheckView) -> Self {
        let CheckView { id, required, state, worker, place, tree, result } = view;
        Self {
            id: id.to_string(),
            required,
            state,
            worker: worker.map(Into::into),
            place: place.map(|place| v1::Place::from(place).into()),
            tree: tree.to_string(),
            result: result.map(Into::into),
        }
    }
}

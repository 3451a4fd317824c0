//! A run as people see it: what its actor has, and beside it what only the fleet knows.
//!
//! Progress and reasons come from the last beats; they are shown and nothing is decided on them.

use ganger_shared::ids::{RunId, UnitId, WorkId};
use ganger_shared::view::{Explanation, RunView};
use tokio::sync::oneshot;
use tonic::Status;

use crate::fleet::FleetMessage;
use crate::run::RunMessage;
use crate::services::Api;
use crate::services::ask::{ask, gone, view_of};

/// Ready units of one run whose reason to wait is shown; `explain` shows it of any.
const EXPLAINED: usize = 64;

/// What the fleet says of a unit that waits: its place, and reasons.
type Waiting = Option<(Option<u64>, Vec<String>)>;

/// A run, whole.
pub(in crate::services) async fn view(api: &Api, name: &str) -> Result<RunView, Status> {
    let mut view = api.view(name).await?;
    let run = view.row.id.clone();
    let asked = run.clone();
    let progress = api.ask_fleet(|port| FleetMessage::Progress { run: asked, port }).await?;
    for one in progress {
        let WorkId::Attempt(id) = &one.lease.work else { continue };
        let mut attempts = view.units.iter_mut().flat_map(|unit| &mut unit.attempts);
        let live = attempts.find(|a| a.id == *id && a.epoch == one.lease.epoch);
        if let Some(attempt) = live.filter(|attempt| attempt.ended_at.is_none()) {
            attempt.progress = Some(one);
        }
    }
    let ready = view.units.iter().filter(|unit| unit.state == "ready").take(EXPLAINED);
    let ready: Vec<UnitId> = ready.map(|unit| unit.id.clone()).collect();
    for (unit, waiting) in waiting(api, &run, ready).await? {
        let first = waiting.and_then(|(_, reasons)| reasons.into_iter().next());
        if let Some(unit) = view.units.iter_mut().find(|other| other.id == unit) {
            unit.waiting_for = first;
        }
    }
    Ok(view)
}

/// Why these units wait. All are asked before the first answer is awaited.
async fn waiting(
    api: &Api,
    run: &RunId,
    units: Vec<UnitId>,
) -> Result<Vec<(UnitId, Waiting)>, Status> {
    let mut asked = Vec::with_capacity(units.len());
    for unit in units {
        let (port, answer) = oneshot::channel();
        let message = FleetMessage::Explain { run: run.clone(), unit: unit.clone(), port };
        api.house.fleet.cast(message).map_err(|_| gone())?;
        asked.push((unit, answer));
    }
    let mut told = Vec::with_capacity(asked.len());
    for (unit, answer) in asked {
        told.push((unit, answer.await.map_err(|_| gone())?));
    }
    Ok(told)
}

/// Why one unit does not run, and the run's sequence.
pub(in crate::services) async fn explain(
    api: &Api,
    name: &str,
    unit: &str,
) -> Result<(Vec<Explanation>, u64), Status> {
    let actor = api.find(name).await?;
    let row = crate::services::ask::row_of(&actor, name).await?;
    let wanted = unit.to_owned();
    let explained = ask(&actor, |port| RunMessage::Explain { unit: wanted, port }).await?;
    let explanation = explained.map_err(|rejection| ganger_proto::status::of(&rejection))?;
    let units = vec![explanation.unit.clone()];
    let mut told = waiting(api, &row.id, units).await?;
    let waiting = told.pop().and_then(|(_, waiting)| waiting);
    Ok((vec![merged(explanation, waiting)], row.sequence))
}

/// Why every unit that is not done does not run, and the run's sequence.
pub(in crate::services) async fn explain_all(
    api: &Api,
    name: &str,
) -> Result<(Vec<Explanation>, u64), Status> {
    let actor = api.find(name).await?;
    let view = view_of(&actor, name).await?;
    let open: Vec<Explanation> = view
        .units
        .iter()
        .filter(|unit| !done(&unit.state, unit.integration.as_deref()))
        .map(|unit| {
            let gate = unit.gate.iter().map(|gate| format!("its gate is {gate}"));
            let reasons = unit.reason.iter().cloned().chain(gate).collect();
            let (unit, state) = (unit.id.clone(), unit.state.clone());
            Explanation { unit, state, position: None, reasons }
        })
        .collect();
    let units = open.iter().map(|explanation| explanation.unit.clone()).collect();
    let told = waiting(api, &view.row.id, units).await?;
    let explained = open.into_iter().zip(told);
    let explained = explained.map(|(explanation, (_, waiting))| merged(explanation, waiting));
    Ok((explained.collect(), view.row.sequence))
}

fn done(state: &str, integration: Option<&str>) -> bool {
    match state {
        "accepted" => !matches!(integration, Some("pending" | "conflict")),
        "skipped" | "cancelled" => true,
        _ => false,
    }
}

fn merged(mut explanation: Explanation, waiting: Waiting) -> Explanation {
    if let Some((position, reasons)) = waiting {
        explanation.position = position;
        explanation.reasons.extend(reasons);
    }
    explanation
}

//! A run as people see it: what its actor has, and beside it what only the fleet knows.
//!
//! Progress and reasons come from the last beats; they are shown and nothing is decided on them.

use ganger_shared::event::Conflict;
use ganger_shared::ids::{RunId, UnitId, WorkId};
use ganger_shared::view::{Explanation, RunView, UnitView};
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
    let wanted = unit.to_owned();
    let explained = ask(&actor, |port| RunMessage::Explain { unit: wanted, port }).await?;
    let explanation = explained.map_err(|rejection| ganger_proto::status::of(&rejection))?;
    let view = view_of(&actor, name).await?;
    explained_of(api, &view, |unit| unit.id == explanation.unit).await
}

/// Why every unit that is not done does not run, and the run's sequence.
pub(in crate::services) async fn explain_all(
    api: &Api,
    name: &str,
) -> Result<(Vec<Explanation>, u64), Status> {
    let actor = api.find(name).await?;
    let view = view_of(&actor, name).await?;
    explained_of(api, &view, |unit| !done(&unit.state, unit.integration.as_deref())).await
}

async fn explained_of(
    api: &Api,
    view: &RunView,
    wanted: impl Fn(&UnitView) -> bool,
) -> Result<(Vec<Explanation>, u64), Status> {
    let units: Vec<&UnitView> = view.units.iter().filter(|unit| wanted(unit)).collect();
    let ids = units.iter().map(|unit| unit.id.clone()).collect();
    let told = waiting(api, &view.row.id, ids).await?;
    let explained = units.into_iter().zip(told);
    let explained = explained.map(|(unit, (_, waiting))| merged(own(view, unit), waiting));
    Ok((explained.collect(), view.row.sequence))
}

/// What the run itself knows of why a unit is not further.
fn own(view: &RunView, unit: &UnitView) -> Explanation {
    let mut reasons: Vec<String> = unit.reason.clone().into_iter().collect();
    reasons.extend(unit.gate.iter().map(|gate| format!("its gate is {gate}")));
    if unit.state == "delivered" {
        let checks = unit.attempts.last().map(|attempt| attempt.checks.as_slice());
        let open = checks.unwrap_or_default().iter().filter(|check| check.state != "pass");
        reasons.extend(open.map(|check| format!("check {} is {}", check.id.check, check.state)));
    }
    if unit.state == "pending" {
        let open = view.units.iter().filter(|on| unit.after.contains(&on.id));
        let open = open.filter(|on| !done(&on.state, on.integration.as_deref()));
        reasons.extend(open.map(|on| format!("waits for {}, which is {}", on.id, standing(on))));
    }
    reasons.extend(unit.conflict.as_ref().map(conflict));
    let (unit, state) = (unit.id.clone(), unit.state.clone());
    Explanation { unit, state, position: None, reasons }
}

fn standing(unit: &UnitView) -> String {
    match unit.integration.as_deref() {
        Some("pending") => format!("{} and not on the branch yet", unit.state),
        Some(_) | None => unit.state.clone(),
    }
}

fn conflict(conflict: &Conflict) -> String {
    match conflict {
        Conflict::Files { files } => format!("its changes do not merge: {}", files.join(", ")),
        Conflict::Checks { failed } => {
            let names: Vec<&str> = failed.iter().map(|check| check.check.as_str()).collect();
            format!("on the merged tree these checks do not pass: {}", names.join(", "))
        }
        Conflict::ForeignTip { .. } => "somebody else moved the branch".to_owned(),
    }
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

//! One line for people about each event.
//!
//! Not here: what a program needs; that is in the event itself.

use ganger_shared::actor::Actor;
use ganger_shared::delivery::{CheckResult, Delivery, Outcome};
use ganger_shared::event::{Conflict, HoldReason, LossReason, RunEvent};
use ganger_shared::text::cut_bytes;
use ganger_shared::verdict::{Judgement, Verdict};

/// The longest line.
const LINE_BYTES: usize = 240;
/// Files or checks named in a line.
const NAMED: usize = 3;

/// The line.
pub(super) fn summary(event: &RunEvent) -> String {
    cut_bytes(line(event).replace(['\n', '\r'], " "), LINE_BYTES)
}

#[rustfmt::skip]
fn line(event: &RunEvent) -> String {
    use RunEvent as E;
    match event {
        E::RunSubmitted(run) => format!("run `{}` submitted to project {}", run.name, run.project),
        E::TaskPlanned { task, .. } => format!("task {} planned", task.id),
        E::UnitPlanned { unit, .. } => format!("unit {} planned", unit.id),
        E::RevisionAccepted { revision, units } => format!("revision {revision} in force, {units} unit(s) added"),
        E::CommandRecorded(record) => format!("call {} recorded", record.key),
        E::AttemptLeased(lease) => format!("{} leased to {}", lease.attempt, lease.worker),
        E::AttemptAccepted { attempt, .. } => format!("{attempt} taken up by its worker"),
        E::AttemptStarted { attempt, .. } => format!("{attempt} started"),
        E::AttemptStopping { attempt, .. } => format!("{attempt} is being stopped"),
        E::AttemptDelivered { attempt, ended, .. } => format!("{attempt} delivered{}", delivered(&ended.end)),
        E::DeliveryTaken { attempt } => format!("delivery of {attempt} stands in the mirror"),
        E::AttemptFailed { attempt, ended, .. } => format!("{attempt} failed: {}: {}", ended.end.failure.class, ended.end.failure.message),
        E::AttemptCancelled { attempt, .. } => format!("{attempt} cancelled"),
        E::AttemptLost { attempt, reason, .. } => format!("{attempt} lost: {}", lost(*reason)),
        E::LateResult { attempt, adopted, .. } => format!("late result of {attempt}{}", if *adopted { ", adopted" } else { "" }),
        E::RetryScheduled { unit, not_before, .. } => format!("another attempt of {unit} from {not_before} on"),
        E::UnitFailed { unit, failure } => format!("unit {unit} failed: {}: {}", failure.class, failure.message),
        E::CheckLeased(lease) => format!("check {} leased to {}", lease.check, lease.worker),
        E::CheckMeasured { check, result, .. } => format!("check {check}: {}", measured(result)),
        E::CheckLost { check, reason, .. } => format!("check {check} lost: {}", lost(*reason)),
        E::VerdictGiven(verdict) => judged(verdict),
        E::MergePrepared { attempt, tree, .. } => format!("{attempt} merged onto the moved branch as tree {tree}"),
        E::IntegrationConflicted { attempt, conflict } => format!("{attempt} does not fit onto the branch: {}", torn(conflict)),
        E::ApplyIntended { attempt, .. } => format!("{attempt} is being put onto the branch"),
        E::Applied { attempt, commit } => format!("{attempt} is on the branch as {commit}"),
        E::UnitCancelled { unit, reason, .. } => format!("unit {unit} cancelled: {reason}"),
        E::UnitStopping { unit, reason } => format!("unit {unit} is being stopped: {reason}"),
        E::RunPaused { reason } => format!("paused: {reason}"),
        E::RunResumed => "resumed".to_owned(),
        E::RunHeld { reason } => format!("held: {}", held(*reason)),
        E::RunReleased => "goes on".to_owned(),
        E::RunBudgetLimited { dimension } => format!("limit reached: {dimension}"),
        E::RunStopping { reason, .. } => format!("is being stopped: {reason}"),
        E::RunAborted => "aborted".to_owned(),
        E::RunCompleted { tip: Some(tip) } => format!("completed at {tip}"),
        E::RunCompleted { tip: None } => "completed".to_owned(),
    }
}

fn delivered(delivery: &Delivery) -> String {
    match &delivery.tree {
        Some(tree) => format!(", {} path(s) changed", tree.changes.total),
        None => String::new(),
    }
}

fn lost(reason: LossReason) -> &'static str {
    match reason {
        LossReason::LeaseExpired => "no beat came for the lease's length",
        LossReason::NotHeld => "its worker does not hold it any more",
        LossReason::InstanceReplaced => "its worker was started anew",
        LossReason::WorkerLeft => "its worker left",
    }
}

fn held(reason: HoldReason) -> &'static str {
    match reason {
        HoldReason::UnitFailed => "a unit failed and nothing else can go on",
        HoldReason::Gate => "a gate is closed and nothing else can go on",
        HoldReason::Safeguard => "a safeguard stopped it",
    }
}

fn measured(result: &CheckResult) -> String {
    let word = match result.outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::NotMeasured => "not measured",
    };
    match &result.message {
        Some(message) => format!("{word}: {message}"),
        None => word.to_owned(),
    }
}

fn judged(verdict: &Verdict) -> String {
    let word = match verdict.verdict {
        Judgement::Accept => "accepted",
        Judgement::Reject => "rejected",
        Judgement::Blocked => "left undecided",
    };
    let by = match &verdict.actor {
        Actor::Policy(_) => "policy".to_owned(),
        other @ (Actor::Principal(_) | Actor::Coordinator | Actor::Worker(_)) => other.to_string(),
    };
    format!("{} {word} by {by}: {}", verdict.attempt, verdict.reason)
}

fn torn(conflict: &Conflict) -> String {
    match conflict {
        Conflict::Files { files } => named(files),
        Conflict::Checks { failed } => named(failed),
        Conflict::ForeignTip { found: Some(found) } => {
            format!("somebody else moved it to {found}")
        }
        Conflict::ForeignTip { found: None } => "somebody else removed it".to_owned(),
    }
}

fn named<T: ToString>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    match all.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        Some(_) | None => shown.join(", "),
    }
}

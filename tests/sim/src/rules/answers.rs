//! Whether the journal holds what a worker may now forget.

use ganger_coordinator_core::run::{Attempt, Phase, Run};
use ganger_shared::ids::{CheckId, WorkId};
use ganger_shared::link::{Fact, Lease};

/// Whether a fact that is said to be recorded is so.
pub(super) fn stands(run: &Run, lease: &Lease, fact: &Fact) -> bool {
    match &lease.work {
        WorkId::Check(id) => check_stands(run, id, fact),
        WorkId::Attempt(_) => attempt(run, lease).is_some_and(|attempt| match fact {
            Fact::Accepted => attempt.phase != Phase::Leased,
            Fact::Started(_) => {
                attempt.started.is_some()
                    || !matches!(attempt.phase, Phase::Leased | Phase::Preparing | Phase::Running)
            }
            Fact::Delivered(_) => kept(run, lease, fact),
            Fact::Failed(_) | Fact::Stopped(_) => is_over(attempt),
            Fact::Measured(_) => false,
        }),
    }
}

/// Whether what was handed in is held somewhere: as the delivery, or beside what it came too late for.
pub(super) fn kept(run: &Run, lease: &Lease, fact: &Fact) -> bool {
    let (Fact::Delivered(handed), Some(attempt)) = (fact, attempt(run, lease)) else { return true };
    let held = match &attempt.phase {
        Phase::Delivered { ended, .. } => Some(&ended.end),
        Phase::Failed { ended } => ended.end.left.as_ref(),
        Phase::Cancelled { late, .. } | Phase::Lost { late, .. } => late.as_deref(),
        Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => None,
    };
    held == Some(&handed.end)
}

fn attempt<'a>(run: &'a Run, lease: &Lease) -> Option<&'a Attempt> {
    let WorkId::Attempt(id) = &lease.work else { return None };
    let mut attempts = run.unit(&id.unit)?.attempts.iter();
    attempts.find(|attempt| attempt.lease.attempt == *id && attempt.lease.epoch == lease.epoch)
}

fn is_over(attempt: &Attempt) -> bool {
    match attempt.phase {
        Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => false,
        Phase::Delivered { .. }
        | Phase::Failed { .. }
        | Phase::Cancelled { .. }
        | Phase::Lost { .. } => true,
    }
}

fn check_stands(run: &Run, id: &CheckId, fact: &Fact) -> bool {
    let Some(measuring) = run.measuring(id) else { return false };
    match fact {
        Fact::Accepted | Fact::Started(_) => true,
        Fact::Measured(_) | Fact::Failed(_) | Fact::Stopped(_) => {
            measuring.result.is_some() || measuring.id.n > id.n
        }
        Fact::Delivered(_) => false,
    }
}

//! One order of a run: carried out, tried again while git is only busy, and answered as a command.

use std::time::Duration;

use ganger_coordinator_core::run::{Effect, EffectId, Verb};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::RunId;

use super::mirrors::{AppliedAs, Expected, Mirrors, TreesError};

/// Tries of one order before its run is told, or it stays owed until the next start.
const TRIES: u32 = 4;
/// The wait before the first repetition; doubled each time.
const WAIT: Duration = Duration::from_millis(250);

/// The order's id, for effects that are orders to the trees.
pub(super) fn id(effect: &Effect) -> Option<EffectId> {
    match effect {
        Effect::Take { attempt, .. } => Some(EffectId::Take(attempt.clone())),
        Effect::Merge { attempt, .. } => Some(EffectId::Merge(attempt.clone())),
        Effect::Apply { attempt, .. } => Some(EffectId::Apply(attempt.clone())),
        Effect::WantSlot(_)
        | Effect::Claim { .. }
        | Effect::Assign { .. }
        | Effect::Stop { .. } => None,
    }
}

/// Carries an order out; `None` where nothing can be said and it stays owed.
pub(super) async fn carry_out(mirrors: &Mirrors, run: &RunId, effect: &Effect) -> Option<Verb> {
    let mut wait = WAIT;
    for _ in 1..TRIES {
        match once(mirrors, run, effect).await {
            Ok(verb) => return verb,
            Err(error) if passing(&error) => {
                tracing::warn!(%run, %error, "the mirror did not answer; trying again");
                pause(wait).await;
                wait *= 2;
            }
            Err(error) => return given_up(run, effect, &error),
        }
    }
    match once(mirrors, run, effect).await {
        Ok(verb) => verb,
        Err(error) => given_up(run, effect, &error),
    }
}

#[expect(clippy::disallowed_methods, reason = "a bounded wait between tries of a busy repository")]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// Whether the same order may well succeed in a moment.
fn passing(error: &TreesError) -> bool {
    match error {
        TreesError::Git(_) | TreesError::Ref(_) => true,
        TreesError::Bundle(_)
        | TreesError::Name(_)
        | TreesError::Mismatch(_)
        | TreesError::Scope(_) => false,
    }
}

fn given_up(run: &RunId, effect: &Effect, error: &TreesError) -> Option<Verb> {
    tracing::error!(%run, %error, "an order to the mirror failed");
    match effect {
        Effect::Take { attempt, .. } => {
            let class = match error {
                TreesError::Scope(_) => FailureClass::ScopeViolation,
                TreesError::Git(_)
                | TreesError::Bundle(_)
                | TreesError::Ref(_)
                | TreesError::Name(_)
                | TreesError::Mismatch(_) => FailureClass::OutputRegistrationFailed,
            };
            let failure = Failure::new(class, error.to_string());
            Some(Verb::TakeFailed { attempt: attempt.clone(), failure })
        }
        Effect::Merge { .. }
        | Effect::Apply { .. }
        | Effect::WantSlot(_)
        | Effect::Claim { .. }
        | Effect::Assign { .. }
        | Effect::Stop { .. } => None,
    }
}

async fn once(mirrors: &Mirrors, run: &RunId, effect: &Effect) -> Result<Option<Verb>, TreesError> {
    match effect {
        Effect::Take { attempt, repository, bundle, commit, base, tree, files } => {
            let expected = Expected { commit, base, tree, files };
            mirrors.take(repository, run, (attempt, bundle), &expected).await?;
            Ok(Some(Verb::Taken { attempt: attempt.clone() }))
        }
        Effect::Merge { attempt, repository, commit, onto } => {
            let result = mirrors.merge(repository, (run, attempt), (commit, onto)).await?;
            Ok(Some(Verb::Merged { attempt: attempt.clone(), parent: onto.clone(), result }))
        }
        Effect::Apply { attempt, repository, parent, tree, time_unix, message } => {
            let values = (message.as_str(), *time_unix);
            let attempt = attempt.clone();
            match mirrors.apply(repository, run, (parent, tree), values).await? {
                AppliedAs::Done(commit) => {
                    Ok(Some(Verb::ApplyDone { attempt, commit, tree: tree.clone() }))
                }
                AppliedAs::Elsewhere(found) => Ok(Some(Verb::ApplyRefused { attempt, found })),
            }
        }
        Effect::WantSlot(_)
        | Effect::Claim { .. }
        | Effect::Assign { .. }
        | Effect::Stop { .. } => Ok(None),
    }
}

//! Callers that come while runs are still being folded wait: what they ask for may be among those.
//!
//! A submit under a key that was used before the restart must find the run it made (P042), and a run
//! that exists must not be called unknown.

use ganger_shared::ids::{IdempotencyKey, RunId};
use ractor::{ActorProcessingErr, ActorRef};

use super::{RunsMessage, State};

/// Callers that may wait; more are told that nobody answers.
const PARKED: usize = 1_024;

impl State {
    /// The message, unless it has to wait.
    pub(super) fn park(&mut self, message: RunsMessage) -> Option<RunsMessage> {
        let waits = match &message {
            RunsMessage::Find { .. }
            | RunsMessage::Submit { .. }
            | RunsMessage::List { .. }
            | RunsMessage::Reserve { .. }
            | RunsMessage::Release { .. } => !self.opened,
            RunsMessage::Open(_)
            | RunsMessage::Standing(_)
            | RunsMessage::Tell { .. }
            | RunsMessage::Reconcile { .. }
            | RunsMessage::Attached { .. }
            | RunsMessage::Owed { .. }
            | RunsMessage::JournalFailed { .. } => false,
        };
        if !waits {
            return Some(message);
        }
        if self.parked.len() < PARKED {
            self.parked.push(message);
        } else {
            tracing::warn!(limit = PARKED, "too many callers wait for the runs to be folded");
        }
        None
    }

    /// Hands over what waited, once every run is folded.
    pub(super) fn unpark(
        &mut self,
        myself: &ActorRef<RunsMessage>,
    ) -> Result<(), ActorProcessingErr> {
        if self.opened {
            for message in std::mem::take(&mut self.parked) {
                myself.cast(message)?;
            }
        }
        Ok(())
    }

    /// The run of a key; its mirror is prepared under this id before the submit is written.
    pub(super) fn reserve(&mut self, key: IdempotencyKey, new: Option<RunId>) -> Option<RunId> {
        if let Some(run) = self.submits.get(&key) {
            return Some(run.clone());
        }
        let new = new?;
        self.submits.insert(key, new.clone());
        Some(new)
    }
}

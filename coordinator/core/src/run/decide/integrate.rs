//! What the coordinator's own trees report: deliveries taken, merges computed, commits made.

use ganger_shared::event::{Conflict, RunEvent};
use ganger_shared::failure::Failure;
use ganger_shared::ids::{AttemptId, CommitId, TreeId};
use ganger_shared::link::{Ended, Failed};
use ganger_shared::time::Timestamp;

use super::Decision;
use crate::run::command::Reply;
use crate::run::effect::EffectId;
use crate::run::state::{Applying, Run};
use crate::run::unit::{Phase, UnitState};

impl Run {
    /// An answer to an effect that is not owed (any more) changes nothing.
    fn answer(&self, owed: &EffectId, events: Vec<RunEvent>) -> Decision {
        let due = self.owed.contains_key(owed);
        let events = if due { events } else { Vec::new() };
        Decision { events, reply: Reply::Done { sequence: 0, replayed: !due } }
    }

    pub(super) fn taken(&self, attempt: AttemptId) -> Decision {
        let owed = EffectId::Take(attempt.clone());
        self.answer(&owed, vec![RunEvent::DeliveryTaken { attempt }])
    }

    pub(super) fn take_failed(
        &self,
        attempt: AttemptId,
        failure: Failure,
        now: Timestamp,
    ) -> Decision {
        let owed = EffectId::Take(attempt.clone());
        let Some((ix, at)) = self.attempt(&attempt) else { return self.answer(&owed, Vec::new()) };
        let Phase::Delivered { ended, .. } = &self.units[ix].attempts[at].phase else {
            return self.answer(&owed, Vec::new());
        };
        let epoch = self.units[ix].attempts[at].lease.epoch;
        let next = match self.units[ix].state {
            UnitState::Delivered { .. } => Some(self.after_failure(ix, &failure, now)),
            UnitState::Pending
            | UnitState::Ready { .. }
            | UnitState::Running
            | UnitState::Accepted { .. }
            | UnitState::Failed { .. }
            | UnitState::Stopping { .. }
            | UnitState::Cancelled { .. }
            | UnitState::Skipped { .. } => None,
        };
        let ended = Box::new(Ended {
            end: Failed { failure, left: Some(ended.end.clone()), usage: ended.end.usage },
            active_ms: ended.active_ms,
            output: ended.output.clone(),
            output_truncated: ended.output_truncated,
        });
        let mut events = vec![RunEvent::AttemptFailed { attempt, epoch, ended }];
        events.extend(next);
        self.answer(&owed, events)
    }

    pub(super) fn merged(
        &self,
        attempt: AttemptId,
        parent: CommitId,
        result: Result<(TreeId, CommitId), Vec<String>>,
    ) -> Decision {
        let owed = EffectId::Merge(attempt.clone());
        let asked = matches!(&self.applying, Some(Applying::Merging { onto }) if *onto == parent);
        let event = match result {
            Ok((tree, commit)) => RunEvent::MergePrepared { attempt, parent, tree, commit },
            Err(files) => {
                RunEvent::IntegrationConflicted { attempt, conflict: Conflict::Files { files } }
            }
        };
        self.answer(&owed, if asked { vec![event] } else { Vec::new() })
    }

    pub(super) fn apply_done(
        &self,
        attempt: AttemptId,
        commit: CommitId,
        tree: &TreeId,
    ) -> Decision {
        let owed = EffectId::Apply(attempt.clone());
        let intended =
            matches!(&self.applying, Some(Applying::Committing { tree: meant }) if meant == tree);
        let events =
            if intended { vec![RunEvent::Applied { attempt, commit }] } else { Vec::new() };
        self.answer(&owed, events)
    }

    pub(super) fn apply_refused(&self, attempt: AttemptId, found: Option<CommitId>) -> Decision {
        let owed = EffectId::Apply(attempt.clone());
        let conflict = Conflict::ForeignTip { found };
        self.answer(&owed, vec![RunEvent::IntegrationConflicted { attempt, conflict }])
    }
}

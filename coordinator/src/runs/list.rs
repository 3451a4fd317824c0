//! Finding and listing runs.

use ganger_shared::ids::RunId;
use ganger_shared::rejection::Rejection;
use ganger_shared::view::RunRow;
use ractor::{ActorProcessingErr, ActorRef};

use super::{Listed, RunsMessage, State};
use crate::run::RunMessage;

/// Candidates shown for a beginning that fits several runs.
const CANDIDATES: usize = 10;

impl State {
    pub(super) async fn find(
        &mut self,
        myself: &ActorRef<RunsMessage>,
        name: &str,
    ) -> Result<Result<ActorRef<RunMessage>, Rejection>, ActorProcessingErr> {
        let run = match self.resolve(name) {
            Ok(run) => run,
            Err(rejection) => return Ok(Err(rejection)),
        };
        if let Some(reason) = self.quarantined.get(&run) {
            let reason = reason.clone();
            return Ok(Err(Rejection::Quarantined { run, reason }));
        }
        let unknown = Rejection::UnknownRun { run: name.to_owned() };
        Ok(self.actor(myself, &run).await?.ok_or(unknown))
    }

    /// The run of this id, or the only one whose id begins with it.
    pub(super) fn resolve(&self, name: &str) -> Result<RunId, Rejection> {
        // A run that is just being folded anew has an actor and no row yet.
        let known = || self.rows.keys().chain(self.quarantined.keys()).chain(self.actors.keys());
        let mut fits: Vec<&RunId> = known().filter(|run| run.as_str().starts_with(name)).collect();
        fits.sort_unstable();
        fits.dedup();
        match fits.as_slice() {
            _ if name.is_empty() => Err(Rejection::UnknownRun { run: name.to_owned() }),
            [] => Err(Rejection::UnknownRun { run: name.to_owned() }),
            [run] => Ok((*run).clone()),
            several => {
                if let Some(exact) = several.iter().find(|run| run.as_str() == name) {
                    return Ok((**exact).clone());
                }
                let candidates = several.iter().take(CANDIDATES).map(|run| (*run).clone());
                Err(Rejection::AmbiguousRun {
                    run: name.to_owned(),
                    candidates: candidates.collect(),
                })
            }
        }
    }

    /// Every run, newest first: ids sort by time.
    pub(super) fn list(&self) -> Vec<Listed> {
        let listed = |row: &RunRow| {
            let live = self.actors.get(&row.id).filter(|_| row.ended_at.is_none()).cloned();
            Listed { row: row.clone(), live }
        };
        self.rows.values().rev().map(listed).collect()
    }
}

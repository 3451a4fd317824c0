//! Plays the mirror: deliveries are taken, merges computed, the branch moved by compare-and-set.
//!
//! Merged trees and commits follow from their names alone, so an order that is repeated gives the
//! same. The branches outlive the process.

use std::collections::BTreeMap;

use ganger_coordinator_core::run::{Effect, EffectId, Verb};
use ganger_shared::digest::Digest;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::{CommitId, RunId, TreeId};

use super::run::Asked;
use super::runs::RunsMail;
use super::{CoordinatorEvent, Mail};
use crate::worker::program::{commit_of, tree_of};
use crate::world::World;

/// How long an order that came to nothing is left alone.
const AFTER_NOTHING_MS: u64 = 30_000;

/// Orders under way, and what the run wants by now.
#[derive(Debug, Default)]
pub(crate) struct TreesRoom {
    under_way: BTreeMap<(RunId, EffectId), (Effect, Effect)>,
}

impl TreesRoom {
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }
}

impl World {
    pub(super) fn order_trees(&mut self, run: &RunId, id: EffectId, effect: Effect) {
        let key = (run.clone(), id.clone());
        let under_way = &mut self.hub().trees.under_way;
        if let Some((_, latest)) = under_way.get_mut(&key) {
            *latest = effect;
            return;
        }
        under_way.insert(key, (effect.clone(), effect));
        let wait = self.chance.within(2, 120);
        self.on_coordinator(wait, CoordinatorEvent::Ordered(run.clone(), id));
    }

    pub(super) fn order_done(&mut self, run: &RunId, id: &EffectId) {
        let key = (run.clone(), id.clone());
        let Some((done, latest)) = self.hub().trees.under_way.remove(&key) else { return };
        let verb = self.carry_out_order(run, &done);
        if done != latest {
            self.order_trees(run, id.clone(), latest);
        }
        match verb {
            Some(verb) => {
                let asked = Box::new(Asked::internal(verb));
                self.post(Mail::Runs(RunsMail::Tell { run: run.clone(), asked }));
            }
            None => self.on_coordinator(AFTER_NOTHING_MS, CoordinatorEvent::Owed(run.clone())),
        }
    }

    fn carry_out_order(&mut self, run: &RunId, effect: &Effect) -> Option<Verb> {
        let fails = !self.calm && self.chance.once_in(25);
        match effect {
            Effect::Take { attempt, .. } if fails => {
                let failure = Failure::new(FailureClass::ScopeViolation, "outside its files");
                Some(Verb::TakeFailed { attempt: attempt.clone(), failure })
            }
            Effect::Merge { .. } | Effect::Apply { .. } if fails => None,
            Effect::Take { attempt, .. } => Some(Verb::Taken { attempt: attempt.clone() }),
            Effect::Merge { attempt, commit, onto, .. } => {
                let result = merged(commit, onto);
                Some(Verb::Merged { attempt: attempt.clone(), parent: onto.clone(), result })
            }
            Effect::Apply { attempt, parent, tree, time_unix, .. } => {
                let made = commit_of(&format!("{parent} {tree} {time_unix}"));
                let base = commit_of("base");
                let tip = self.coordinator.branches.entry(run.clone()).or_insert(base);
                if tip == parent {
                    *tip = made.clone();
                }
                let (attempt, found) = (attempt.clone(), tip.clone());
                if found == made {
                    return Some(Verb::ApplyDone { attempt, commit: made, tree: tree.clone() });
                }
                Some(Verb::ApplyRefused { attempt, found: Some(found) })
            }
            Effect::WantSlot(_)
            | Effect::Claim { .. }
            | Effect::Assign { .. }
            | Effect::Stop { .. } => None,
        }
    }
}

/// What merging gives; some pairs do not fit.
fn merged(commit: &CommitId, onto: &CommitId) -> Result<(TreeId, CommitId), Vec<String>> {
    let name = format!("{commit} {onto}");
    if Digest::of(name.as_bytes()).as_bytes()[0] < 6 {
        return Err(vec!["src/0".to_owned()]);
    }
    Ok((tree_of(&name), commit_of(&name)))
}

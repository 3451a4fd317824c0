//! Which files are kept for whom (R046).
//!
//! A unit's claim stands as long as one of its parts: what the run asserts, a lease, or an offer
//! that is not answered. Units never share overlapping files of one repository; the lanes of one
//! unit do.

use std::collections::BTreeMap;
use std::sync::Arc;

use ganger_shared::ids::{RepositoryId, RunId, UnitId};
use ganger_shared::link::Lease;

use crate::globs::Patterns;

/// Whose claim.
pub(super) type Owner = (RunId, UnitId);

/// Why a claim stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The run says so.
    Held,
    /// A lease was granted for it.
    Lease(Lease),
    /// A slot was offered for it.
    Offer(u64),
}

/// Files of one repository, compiled; shared by a want, its offer and its lease.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) repository: RepositoryId,
    pub(super) patterns: Arc<Patterns>,
}

impl Files {
    pub(super) fn new(repository: RepositoryId, globs: &[String]) -> Self {
        Self { repository, patterns: Arc::new(Patterns::new(globs)) }
    }
}

/// All claims, by repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    repositories: BTreeMap<RepositoryId, BTreeMap<Owner, BTreeMap<Part, Arc<Patterns>>>>,
    /// Where an owner's claims are, for releases that do not say it.
    owners: BTreeMap<Owner, RepositoryId>,
}

impl Claims {
    /// Adds a part. A run has one repository, so an owner never has claims in two.
    pub(super) fn add(&mut self, owner: &Owner, part: Part, files: &Files) {
        self.owners.insert(owner.clone(), files.repository.clone());
        self.repositories
            .entry(files.repository.clone())
            .or_default()
            .entry(owner.clone())
            .or_default()
            .insert(part, Arc::clone(&files.patterns));
    }

    /// Removes a part; whether the owner claims less than before.
    pub(super) fn remove(&mut self, owner: &Owner, part: &Part) -> bool {
        let Some(repository) = self.owners.get(owner) else { return false };
        let Some(claims) = self.repositories.get_mut(repository) else { return false };
        let Some(parts) = claims.get_mut(owner) else { return false };
        let removed = parts.remove(part).is_some();
        if parts.is_empty() {
            claims.remove(owner);
            if claims.is_empty() {
                self.repositories.remove(repository);
            }
            self.owners.remove(owner);
        }
        removed
    }

    /// The first other owner whose claim has a file in common.
    pub(super) fn blocker(&self, owner: &Owner, files: &Files) -> Option<Owner> {
        self.repositories.get(&files.repository)?.iter().find_map(|(other, parts)| {
            let blocks =
                other != owner && parts.values().any(|patterns| files.patterns.overlap(patterns));
            blocks.then(|| other.clone())
        })
    }

    /// Every owner of a run.
    pub(super) fn of_run(&self, run: &RunId) -> Vec<Owner> {
        self.owners.keys().filter(|(of, _)| of == run).cloned().collect()
    }

    /// Pairs of owners whose claims overlap, for tests of the invariant.
    #[cfg(test)]
    pub(super) fn overlaps(&self) -> Vec<(Owner, Owner)> {
        let mut found = vec![];
        for claims in self.repositories.values() {
            for (owner, parts) in claims {
                for (other, others) in claims.range(owner.clone()..).skip(1) {
                    if parts.values().any(|a| others.values().any(|b| a.overlap(b))) {
                        found.push((owner.clone(), other.clone()));
                    }
                }
            }
        }
        found
    }
}

//! Brings a commit into the worker's mirror of its repository.
//!
//! Every fetched commit is pinned, so that it is never missing below a tree that borrows from the
//! mirror, and so that the next bundle can build upon it.

use std::fs;

use ganger_git::{BundleError, Mirror, RefName};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::CommitId;
use ganger_shared::spec::Source;

use super::{make_private, open_mirror, our_refs};
use crate::attempts::port::Site;
use crate::executor::{failed, file_failed};

/// Where the refs are remembered that an attempt must leave as they are.
pub(super) const REFS_FILE: &str = "mirror-refs.json";
/// Tries of a transfer whose bundle came damaged.
const TRIES_MAX: u32 = 2;

/// The mirror of the source's repository, with the source's commit in it.
pub(super) async fn mirror_with(site: &Site, source: &Source) -> Result<Mirror, Failure> {
    let mirror = open_mirror(site, &source.repository).await?;
    for _ in 0..TRIES_MAX {
        if has(&mirror, &source.commit).await? {
            return Ok(mirror);
        }
        match fetch(site, &mirror, source).await? {
            Fetched::Whole => return Ok(mirror),
            // The other side believed that we have more than we have: ask for everything.
            Fetched::Again(reason) => {
                tracing::warn!(commit = %source.commit, reason, "a source is fetched again");
            }
        }
    }
    let message = format!("failed to fetch commit {} {TRIES_MAX} times", source.commit);
    Err(Failure::new(FailureClass::WorkspaceFailed, message))
}

/// Makes sure of one more commit of the same repository, such as the one pinned files come from.
pub(super) async fn also(site: &Site, source: &Source, commit: &CommitId) -> Result<(), Failure> {
    let source = Source { commit: commit.clone(), ..source.clone() };
    mirror_with(site, &source).await.map(drop)
}

/// The refs of ours in a mirror, as text.
pub(super) async fn refs(mirror: &Mirror) -> Result<Vec<(String, String)>, Failure> {
    let refs = mirror.refs_under(&our_refs()).await;
    let refs = refs.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    Ok(refs.into_iter().map(|(name, commit)| (name.to_string(), commit.to_string())).collect())
}

enum Fetched {
    Whole,
    Again(String),
}

async fn fetch(site: &Site, mirror: &Mirror, source: &Source) -> Result<Fetched, Failure> {
    let have = mirror.refs_under(&our_refs()).await;
    let have = have.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    let have: Vec<CommitId> = have.into_iter().map(|(_, commit)| commit).collect();
    let transfers = site.transfers();
    make_private(&transfers).map_err(|error| file_failed("make", &transfers, &error))?;
    let to = transfers.join(format!("{}.bundle", uuid::Uuid::now_v7().simple()));
    let file = RemovedAfter(&to);
    let (repository, commit) = (&source.repository, &source.commit);
    let came = site.bulk.fetch_source(repository, commit, &have, file.0).await;
    let came = came.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    if !came && !has(mirror, commit).await? {
        return Ok(Fetched::Again("the coordinator says that nothing is missing".to_owned()));
    }
    if came {
        match mirror.fetch_bundle(file.0, commit).await {
            Ok(()) => {}
            Err(
                error @ (BundleError::Damaged { .. } | BundleError::MissingPrerequisite { .. }),
            ) => {
                return Ok(Fetched::Again(error.to_string()));
            }
            Err(
                error @ (BundleError::WithoutCommit { .. }
                | BundleError::TooLarge { .. }
                | BundleError::UnknownTip { .. }
                | BundleError::Shallow { .. }
                | BundleError::Git(_)),
            ) => return Err(failed(FailureClass::WorkspaceFailed, &error)),
        }
    }
    let name = format!("refs/ganger/base/{commit}");
    let name = RefName::parse(&name).expect("a commit's digits make a name");
    let pinned = mirror.pin(&name, commit).await;
    pinned.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
    Ok(Fetched::Whole)
}

async fn has(mirror: &Mirror, commit: &CommitId) -> Result<bool, Failure> {
    let has = mirror.has_commit(commit).await;
    has.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))
}

/// A transfer's file, gone once it was used or given up.
struct RemovedAfter<'p>(&'p std::path::Path);

impl Drop for RemovedAfter<'_> {
    fn drop(&mut self) {
        let _never_came = fs::remove_file(self.0);
    }
}

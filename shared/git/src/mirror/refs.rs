//! Refs: read, compared and set, deleted.
//!
//! A moved ref is an answer with its actual place inside, never overwritten.

use ganger_shared::ids::CommitId;

use super::Mirror;
use crate::command::{Call, Place};
use crate::error::Error;
use crate::name::RefName;
use crate::program::Git;

/// Why a ref was not moved or deleted.
#[derive(Debug, thiserror::Error)]
pub enum RefError {
    /// The ref is not where it was expected.
    #[error(
        "move {name}: it was expected at {} and is at {}",
        place_of(expected.as_ref()),
        place_of(actual.as_ref())
    )]
    Moved {
        /// The ref.
        name: RefName,
        /// Where the caller thought it was; none for a new one.
        expected: Option<CommitId>,
        /// Where it is; none if it is not there.
        actual: Option<CommitId>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] Error),
}

fn place_of(commit: Option<&CommitId>) -> &str {
    commit.map_or("nothing (no such ref)", CommitId::as_str)
}

impl Mirror {
    /// Where the ref is; none if it is not there.
    pub async fn read_ref(&self, name: &RefName) -> Result<Option<CommitId>, Error> {
        read_ref(&self.git, &self.place, name).await
    }

    /// Moves a ref from `expected` to `new`; `expected` is none for a ref that must not exist yet.
    pub async fn update_ref(
        &self,
        name: &RefName,
        new: &CommitId,
        expected: Option<&CommitId>,
    ) -> Result<(), RefError> {
        let _held = self.lock("move a ref").await?;
        self.forget_lock(name.as_str());
        compare_and_set(&self.git, &self.place, name, (new, expected)).await
    }

    /// Deletes a ref that is at `expected`.
    pub async fn delete_ref(&self, name: &RefName, expected: &CommitId) -> Result<(), RefError> {
        let _held = self.lock("delete a ref").await?;
        self.forget_lock(name.as_str());
        let actual = self.read_ref(name).await?;
        if actual.as_ref() != Some(expected) {
            let (name, expected) = (name.clone(), Some(expected.clone()));
            return Err(RefError::Moved { name, expected, actual });
        }
        let call = Call::new(&self.git, "delete a ref", &self.place);
        call.args(["update-ref", "--no-deref", "-d", name.as_str(), expected.as_str()])
            .run()
            .await?;
        Ok(())
    }

    /// The refs whose names begin with `prefix` (whole parts of it), with their commits.
    pub async fn refs_under(&self, prefix: &RefName) -> Result<Vec<(RefName, CommitId)>, Error> {
        const OPERATION: &str = "list refs";
        let answer = Call::new(&self.git, OPERATION, &self.place)
            .args(["for-each-ref", "--format=%(objectname) %(refname)", prefix.as_str()])
            .run()
            .await?;
        let read = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            Some((RefName::parse(name).ok()?, CommitId::parse(commit).ok()?))
        };
        let text = answer.text();
        let named: Option<Vec<_>> = text.lines().map(read).collect();
        named.ok_or_else(|| self.place.unexpected(OPERATION, &answer.stdout))
    }
}

pub(crate) async fn read_ref(
    git: &Git,
    place: &Place,
    name: &RefName,
) -> Result<Option<CommitId>, Error> {
    const OPERATION: &str = "read a ref";
    let answer = Call::new(git, OPERATION, place)
        .args(["for-each-ref", "--format=%(refname) %(objectname)", name.as_str()])
        .run()
        .await?;
    // The pattern also matches refs below a directory of that name.
    let text = answer.text();
    let id = text.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' '));
    id.map(|id| {
        CommitId::parse(id).map_err(|_| Error::unexpected(OPERATION, place.dir(), id.as_bytes()))
    })
    .transpose()
}

pub(crate) async fn compare_and_set(
    git: &Git,
    place: &Place,
    name: &RefName,
    (new, expected): (&CommitId, Option<&CommitId>),
) -> Result<(), RefError> {
    let none = "0".repeat(new.as_str().len());
    let old = expected.map_or(none.as_str(), CommitId::as_str);
    let call = Call::new(git, "move a ref", place);
    let moved = call.args(["update-ref", "--no-deref", name.as_str(), new.as_str(), old]).run();
    let Err(error) = moved.await else { return Ok(()) };
    // Git says the same for a moved ref and for a broken store; the ref itself tells them apart.
    let actual = read_ref(git, place, name).await?;
    if actual.as_ref() == expected {
        return Err(RefError::Git(error));
    }
    Err(RefError::Moved { name: name.clone(), expected: expected.cloned(), actual })
}

pub(crate) async fn set(
    git: &Git,
    place: &Place,
    name: &RefName,
    commit: &CommitId,
) -> Result<(), Error> {
    let call = Call::new(git, "pin a commit", place);
    call.args(["update-ref", "--no-deref", name.as_str(), commit.as_str()]).run().await?;
    Ok(())
}

//! The repository of a plan: found and read, or made of a seed; its base shipped as a bundle.
//!
//! The user's repository is only read here. What is missing is a problem of the plan, told with the
//! others.

use std::path::{Path, PathBuf};

use ganger_git::{
    BundleError, Bundled, DiscoverError, FindError, Git, ResolveError, SeedError, Source,
};
use ganger_proto::client::Clients;
use ganger_proto::convert::SubmittedSource;
use ganger_proto::{read, v1};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::Repository;
use ganger_shared::ids::{CommitId, RepositoryId};
use ganger_shared::plan::{self, PlanFile};
use ganger_shared::problem::{Code, Problem};
use thiserror::Error as ThisError;

use crate::error::Error;
use crate::state_dir::StateDir;
use crate::submission::SubmissionError;
use crate::submission::files::within;
use crate::transfer;

/// Commits the coordinator is asked about, so that only what it lacks is sent.
const ASKED: u32 = 500;
/// Digits of a hash that are enough here.
const ID_DIGITS: usize = 32;
const SHORT_DIGITS: usize = 8;

/// Why a repository cannot be used.
#[derive(Debug, ThisError)]
pub enum SourceError {
    /// There is no git.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] ganger_git::Error),
    /// The repository cannot be opened.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Its base cannot be found.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The seed cannot be made into one.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// It cannot be sent.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// There is no room for the bundle.
    #[error("make a temporary directory")]
    Temporary(#[source] std::io::Error),
}

/// The repository as it was found.
#[derive(Debug)]
pub enum Found {
    /// The plan names none.
    Nothing,
    /// The plan names one that is not there.
    Missing,
    /// A directory to make one of.
    Seed(PathBuf),
    /// An existing one.
    There(Pinned),
}

/// A repository and the commit a run begins from.
#[derive(Debug, Clone)]
pub struct Pinned {
    source: Source,
    base: CommitId,
    base_name: String,
}

/// A repository that can be sent.
#[derive(Debug)]
pub struct Made {
    pinned: Pinned,
    /// Where it was made, if it was made just now.
    fresh: Option<PathBuf>,
    seed: bool,
}

/// Looks at the repository a plan names: what was found and what to look at, or what is wrong.
pub async fn look(
    plan: &PlanFile,
    dir: &Path,
) -> Result<Result<(Found, Vec<Problem>), Problem>, SourceError> {
    let named = match &plan.repository {
        None => return Ok(Ok((Found::Nothing, Vec::new()))),
        Some(plan::Repository::Seed(seed)) => {
            return Ok(look_at_seed(&within(dir, &seed.seed)).map(|found| (found, Vec::new())));
        }
        Some(plan::Repository::Source(named)) => named,
    };
    let path = match local_path(&named.url) {
        Some(path) => within(dir, path),
        None => return Ok(Err(not_local(&named.url))),
    };
    let git = Git::find(ganger_git::Limits::default()).await?;
    let pinned = match pin(&git, &path, named.base.as_deref()).await {
        Ok(pinned) => pinned,
        Err(error) => return wrong(error).map(Err),
    };
    let hazards = pinned.source.hazards(&pinned.base).await?;
    let warning = |hazard: ganger_git::Hazard| {
        Problem::warning(Code::Advice, "repository.url", hazard.to_string())
    };
    let warnings = hazards.into_iter().map(warning).collect();
    Ok(Ok((Found::There(pinned), warnings)))
}

fn look_at_seed(dir: &Path) -> Result<Found, Problem> {
    if dir.is_dir() {
        return Ok(Found::Seed(dir.to_owned()));
    }
    let message = format!("there is no directory {}", dir.display());
    Err(Problem::error(Code::BadValue, "repository.seed", message)
        .with_fix("the path is relative to the plan file: correct it, or make the directory"))
}

/// What is wrong with the plan's words is a problem of the plan; all else is an error.
fn wrong(error: SourceError) -> Result<Problem, SourceError> {
    let place = match &error {
        SourceError::Discover(
            DiscoverError::NotARepository { .. }
            | DiscoverError::Empty { .. }
            | DiscoverError::UnsupportedFormat { .. },
        ) => "repository.url",
        SourceError::Resolve(ResolveError::UnknownBase { .. }) => "repository.base",
        SourceError::Discover(DiscoverError::Git(_))
        | SourceError::Resolve(ResolveError::Git(_))
        | SourceError::Find(_)
        | SourceError::Git(_)
        | SourceError::Seed(_)
        | SourceError::Bundle(_)
        | SourceError::Temporary(_) => return Err(error),
    };
    Ok(Problem::error(Code::BadValue, place, format!("failed to {error}")))
}

/// The path a URL names on this machine; none where it lies elsewhere.
fn local_path(url: &str) -> Option<&str> {
    if let Some(path) = url.strip_prefix("file://") {
        return Some(path);
    }
    // As git reads it: `host:path` has a colon before the first slash.
    let elsewhere = url.split('/').next().is_some_and(|first| first.contains(':'));
    (!elsewhere).then_some(url)
}

fn not_local(url: &str) -> Problem {
    let message =
        format!("`{url}` is not on this machine; fetching from elsewhere is not built yet");
    Problem::error(Code::NotSupportedYet, "repository.url", message)
        .with_fix("clone it and name the clone's path")
}

async fn pin(git: &Git, path: &Path, base: Option<&str>) -> Result<Pinned, SourceError> {
    let source = Source::discover(git, path).await?;
    let base_name = match base {
        Some(name) => name.to_owned(),
        None => source.current_branch().await?.unwrap_or_else(|| "HEAD".to_owned()),
    };
    let base = source.resolve(&base_name).await?;
    Ok(Pinned { source, base, base_name })
}

/// A few digits that are the same for the same key.
pub fn short_name(key: &str) -> String {
    Digest::of(key.as_bytes()).to_string()[..SHORT_DIGITS].to_owned()
}

/// What tells one clone from another: where its history begins, and where it lies.
fn identity(roots: &[CommitId], path: &Path) -> RepositoryId {
    let place = path.to_string_lossy();
    let parts: Vec<&str> = roots.iter().map(CommitId::as_str).chain([place.as_ref()]).collect();
    let text = parts.join("\n");
    let digest = Digest::of(text.as_bytes()).to_string();
    RepositoryId::parse(&digest[..ID_DIGITS]).expect("hex digits are an id")
}

impl Found {
    /// Something for the coordinator's check, which asks only whether there is one.
    pub fn stand_in(&self) -> Option<SubmittedSource> {
        let zeros = || CommitId::parse(&"0".repeat(40)).expect("40 hex digits are a commit's form");
        let (base, base_name) = match self {
            Self::Nothing => return None,
            Self::Missing | Self::Seed(_) => (zeros(), "main".to_owned()),
            Self::There(pinned) => (pinned.base.clone(), pinned.base_name.clone()),
        };
        let id = RepositoryId::parse("checked").expect("letters are an id");
        let repository = Repository { id, shown: String::new(), base, base_name };
        Some(SubmittedSource { repository, bundle: None })
    }

    /// The repository as it can be sent; a seed is committed under the state directory first.
    pub async fn make(&self, place: &(&StateDir, String)) -> Result<Option<Made>, SourceError> {
        match self {
            Self::Nothing | Self::Missing => Ok(None),
            Self::There(pinned) => {
                Ok(Some(Made { pinned: pinned.clone(), fresh: None, seed: false }))
            }
            Self::Seed(dir) => seed(dir, place).await.map(Some),
        }
    }
}

async fn seed(dir: &Path, (state, name): &(&StateDir, String)) -> Result<Made, SourceError> {
    let git = Git::find(ganger_git::Limits::default()).await?;
    state.make().map_err(SourceError::Temporary)?;
    let path = state.repositories().join(name);
    // The same key makes the same repository: a repeated submit finds its own.
    let fresh = !path.exists();
    if fresh {
        Source::seed(&git, dir, &path).await?;
    }
    let pinned = pin(&git, &path, Some("main")).await?;
    Ok(Made { pinned, fresh: fresh.then_some(path), seed: true })
}

impl Made {
    /// Where the repository made of a seed is.
    pub fn seeded(&self) -> Option<PathBuf> {
        self.seed.then(|| self.pinned.source.path().to_owned())
    }

    /// Removes what was made just now.
    pub fn undo(self) {
        if let Some(path) = self.fresh {
            // If it stays, it is an unused directory in our own state.
            let _ = std::fs::remove_dir_all(path);
        }
    }

    /// Sends what the coordinator lacks of the base, and says what was sent.
    pub async fn send(&self, clients: &Clients, max: u64) -> Result<SubmittedSource, Error> {
        let Pinned { source, base, base_name } = &self.pinned;
        let failed = |error: SourceError| Error::from(SubmissionError::from(error));
        let git = |error: ganger_git::Error| failed(error.into());
        let path = source.path().canonicalize().unwrap_or_else(|_| source.path().to_owned());
        let id = identity(&source.roots(base).await.map_err(git)?, &path);
        let recent = source.recent(base, ASKED).await.map_err(git)?;
        let held = held(clients, &id, &recent).await?;
        let bundle = if held.contains(base) {
            None
        } else {
            let dir = tempfile::tempdir().map_err(|error| failed(SourceError::Temporary(error)))?;
            let file = dir.path().join("base.bundle");
            let bundled = source.bundle(&file, base, &held).await;
            match bundled.map_err(|error| failed(error.into()))? {
                Bundled::NothingNew => None,
                Bundled::Written { .. } => Some(send_bundle(clients, &file, max).await?),
            }
        };
        let repository = Repository {
            id,
            shown: path.display().to_string(),
            base: base.clone(),
            base_name: base_name.clone(),
        };
        Ok(SubmittedSource { repository, bundle })
    }
}

async fn send_bundle(clients: &Clients, file: &Path, max: u64) -> Result<ArtifactRef, Error> {
    let artifact = transfer::name(file, max).await?;
    transfer::send(clients, file, &artifact, "sending the repository").await?;
    Ok(artifact)
}

/// Those of the commits that the coordinator has.
async fn held(
    clients: &Clients,
    id: &RepositoryId,
    commits: &[CommitId],
) -> Result<Vec<CommitId>, Error> {
    let request = v1::SourceServiceHaveRequest {
        repository: id.to_string(),
        commits: commits.iter().map(ToString::to_string).collect(),
    };
    match clients.sources().have(request).await {
        Ok(answer) => Ok(read::each_text("held", &answer.into_inner().held)?),
        // It has never heard of the repository.
        Err(status) if transfer::is_absent(&status) => Ok(Vec::new()),
        Err(status) => Err(status.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::limits::Limits;

    use super::*;

    fn plan(repository: &str) -> PlanFile {
        let text = format!(
            "version: 1\nname: p\nmode: autonomous\nrepository: {repository}\nunits:\n  - {{ id: a, kind: command, run: 'true' }}\n"
        );
        ganger_shared::plan::read_all(&text, &Limits::default()).plan.unwrap()
    }

    async fn problem(repository: &str, dir: &Path) -> Problem {
        look(&plan(repository), dir).await.unwrap().unwrap_err()
    }

    /// What it must show 5: a missing repository is told with the thing, the place and the fix.
    #[tokio::test]
    async fn what_is_not_there_is_a_problem_of_the_plan() {
        let dir = tempfile::tempdir().unwrap();
        let missing = problem("{ url: ./gone }", dir.path()).await;
        assert_eq!(missing.path, "repository.url");
        assert!(missing.message.contains("gone") && missing.message.contains("git init"));
        let seed = problem("{ seed: gone }", dir.path()).await;
        assert_eq!(seed.path, "repository.seed");
        assert!(seed.message.contains("gone"));
        let far = problem("{ url: 'git@example.org:a/b.git' }", dir.path()).await;
        assert_eq!((far.path.as_str(), far.code), ("repository.url", Code::NotSupportedYet));
    }

    #[tokio::test]
    async fn a_base_nobody_knows_is_told_at_its_key() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        std::fs::write(dir.path().join("files/a.txt"), "a\n").unwrap();
        let git = Git::find(ganger_git::Limits::default()).await.unwrap();
        let (files, repo) = (dir.path().join("files"), dir.path().join("repo"));
        Source::seed(&git, &files, &repo).await.unwrap();
        let unknown = problem("{ url: ./repo, base: mian }", dir.path()).await;
        assert_eq!(unknown.path, "repository.base");
        assert!(unknown.message.contains("main"), "{}", unknown.message);
        let (found, _) = look(&plan("{ url: ./repo }"), dir.path()).await.unwrap().unwrap();
        assert!(matches!(found, Found::There(Pinned { base_name, .. }) if base_name == "main"));
    }

    #[test]
    fn only_what_lies_here_is_a_path() {
        for here in [".", "../x", "/a/b", "file:///a/b", "a/b:c"] {
            assert!(local_path(here).is_some(), "{here}");
        }
        for elsewhere in ["https://x/y", "git@x:y", "ssh://x/y", "host:path"] {
            assert!(local_path(elsewhere).is_none(), "{elsewhere}");
        }
    }

    #[test]
    fn a_repository_is_known_by_its_beginning_and_its_place() {
        let root = CommitId::parse(&"a".repeat(40)).unwrap();
        let one = identity(std::slice::from_ref(&root), Path::new("/a"));
        assert_eq!(one, identity(std::slice::from_ref(&root), Path::new("/a")));
        assert_ne!(one, identity(&[root], Path::new("/b")));
        assert_eq!(one.as_str().len(), ID_DIGITS);
    }
}

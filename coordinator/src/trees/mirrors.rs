//! One bare mirror per repository, and what is done in it.

use std::path::{Path, PathBuf};

use ganger_coordinator_core::globs;
use ganger_git::{
    BundleError, Bundled, CommitRequest, Error as GitError, Git, InvalidRefName, Merged, Mirror,
    RefError, RefName,
};
use ganger_shared::ids::{AttemptId, CommitId, RepositoryId, RunId, TreeId};
use thiserror::Error;

/// Who makes the commits of the integration branch; fixed, so that their ids follow from the journal.
const AUTHOR_NAME: &str = "ganger";
const AUTHOR_EMAIL: &str = "ganger@localhost";
/// Paths named in a message; the rest is counted.
const SHOWN: usize = 20;

/// What can go wrong in a mirror.
#[derive(Debug, Error)]
pub enum TreesError {
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A bundle is not what it should be.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A ref could not be moved.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// A ref cannot have this name.
    #[error(transparent)]
    Name(#[from] InvalidRefName),
    /// The delivery is not what was reported.
    #[error("{0}")]
    Mismatch(String),
    /// The delivery touches what it may not.
    #[error("outside the unit's files: {0}; widen `files` or change less")]
    Scope(String),
}

/// The mirrors under one directory. Cheap to clone.
#[derive(Clone)]
pub struct Mirrors {
    git: Git,
    root: PathBuf,
    artifacts: crate::artifacts::Artifacts,
}

/// What a delivery must be.
pub struct Expected<'a> {
    /// The commit.
    pub commit: &'a CommitId,
    /// Its parent.
    pub base: &'a CommitId,
    /// Its tree.
    pub tree: &'a TreeId,
    /// What it may touch.
    pub files: &'a [String],
}

/// What became of an intended commit.
pub enum AppliedAs {
    /// The branch stands at it.
    Done(CommitId),
    /// The branch stands elsewhere.
    Elsewhere(Option<CommitId>),
}

impl Mirrors {
    /// Mirrors below `root`; bundles come from `artifacts`.
    pub fn new(git: Git, root: PathBuf, artifacts: crate::artifacts::Artifacts) -> Self {
        Self { git, root, artifacts }
    }

    /// The mirror of a repository, made when it is first needed.
    pub async fn mirror(&self, repository: &RepositoryId) -> Result<Mirror, TreesError> {
        let path = self.path(repository);
        Ok(Mirror::open_or_create(&self.git, &path).await?)
    }

    /// Those of `commits` that the mirror holds; none where there is no mirror.
    pub async fn known(
        &self,
        repository: &RepositoryId,
        commits: &[CommitId],
    ) -> Result<Vec<CommitId>, TreesError> {
        if !self.path(repository).is_dir() {
            return Ok(Vec::new());
        }
        Ok(self.mirror(repository).await?.known(commits).await?)
    }

    fn path(&self, repository: &RepositoryId) -> PathBuf {
        self.root.join(format!("{repository}.git"))
    }

    /// Takes a submitted base in and begins the run's branch at it.
    pub async fn begin(
        &self,
        repository: &RepositoryId,
        run: &RunId,
        (bundle, base): (Option<&Path>, &CommitId),
    ) -> Result<(), TreesError> {
        let mirror = self.mirror(repository).await?;
        if let Some(bundle) = bundle {
            mirror.fetch_bundle(bundle, base).await?;
        }
        if !mirror.has_commit(base).await? {
            return Err(TreesError::Mismatch(format!(
                "the base {base} is neither here nor in what was uploaded"
            )));
        }
        let branch = branch_ref(run)?;
        match mirror.read_ref(&branch).await? {
            Some(_) => Ok(()),
            None => Ok(mirror.update_ref(&branch, base, None).await?),
        }
    }

    /// Takes a delivery's bundle in and verifies that it is what was reported.
    pub async fn take(
        &self,
        repository: &RepositoryId,
        run: &RunId,
        (attempt, bundle): (&AttemptId, &ganger_shared::digest::ArtifactRef),
        expected: &Expected<'_>,
    ) -> Result<(), TreesError> {
        let mirror = self.mirror(repository).await?;
        let path = self.artifacts.file(&bundle.sha256).ok_or_else(|| {
            TreesError::Mismatch(format!("bundle {} was not uploaded", bundle.sha256))
        })?;
        mirror.fetch_bundle(&path, expected.commit).await?;
        let tree = mirror.tree_of(expected.commit).await?;
        if tree != *expected.tree {
            return Err(TreesError::Mismatch(format!(
                "commit {} has tree {tree}, {} was reported",
                expected.commit, expected.tree
            )));
        }
        let parents = mirror.parents_of(expected.commit).await?;
        if parents != [expected.base.clone()] {
            return Err(TreesError::Mismatch(format!(
                "commit {} does not begin at the leased base {}",
                expected.commit, expected.base
            )));
        }
        self.within(&mirror, expected).await?;
        mirror.pin(&attempt_ref(run, attempt)?, expected.commit).await?;
        Ok(())
    }

    async fn within(&self, mirror: &Mirror, expected: &Expected<'_>) -> Result<(), TreesError> {
        let changed = mirror.diff_paths(expected.base, expected.commit).await?;
        let outside: Vec<&str> = changed
            .iter()
            .map(|change| change.path.as_str())
            .filter(|path| !globs::matches(expected.files, path))
            .collect();
        if outside.is_empty() {
            return Ok(());
        }
        let more = outside.len().saturating_sub(SHOWN);
        let mut shown = outside.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
        if more > 0 {
            shown = format!("{shown} and {more} more");
        }
        Err(TreesError::Scope(shown))
    }

    /// The tree that putting `commit` onto `onto` gives, with a commit of it that workers can fetch;
    /// or the files in conflict.
    pub async fn merge(
        &self,
        repository: &RepositoryId,
        (run, attempt): (&RunId, &AttemptId),
        (commit, onto): (&CommitId, &CommitId),
    ) -> Result<Result<(TreeId, CommitId), Vec<String>>, TreesError> {
        let mirror = self.mirror(repository).await?;
        match mirror.merge(onto, commit).await? {
            Merged::Conflict { files } => Ok(Err(files)),
            Merged::Clean { tree } => {
                let message = format!("candidate of {attempt}\n");
                let request = request(&tree, onto, message, 0);
                let candidate = mirror.commit_tree(&request).await?;
                mirror.pin(&candidate_ref(run, attempt)?, &candidate).await?;
                Ok(Ok((tree, candidate)))
            }
        }
    }

    /// Makes the commit these values determine and moves the branch from `parent` onto it.
    pub async fn apply(
        &self,
        repository: &RepositoryId,
        run: &RunId,
        (parent, tree): (&CommitId, &TreeId),
        (message, time_unix): (&str, i64),
    ) -> Result<AppliedAs, TreesError> {
        let mirror = self.mirror(repository).await?;
        let request = request(tree, parent, message.to_owned(), time_unix);
        let commit = mirror.commit_tree(&request).await?;
        let branch = branch_ref(run)?;
        let found = mirror.read_ref(&branch).await?;
        if found.as_ref() == Some(&commit) {
            return Ok(AppliedAs::Done(commit));
        }
        if found.as_ref() != Some(parent) {
            return Ok(AppliedAs::Elsewhere(found));
        }
        match mirror.update_ref(&branch, &commit, Some(parent)).await {
            Ok(()) => Ok(AppliedAs::Done(commit)),
            Err(RefError::Moved { actual, .. }) => Ok(AppliedAs::Elsewhere(actual)),
            Err(error @ RefError::Git(_)) => Err(error.into()),
        }
    }

    /// Writes a bundle of `want` that leaves out what the asker has.
    pub async fn bundle(
        &self,
        repository: &RepositoryId,
        (want, have): (&CommitId, &[CommitId]),
        out: &Path,
    ) -> Result<Bundled, TreesError> {
        let mirror = self.mirror(repository).await?;
        Ok(mirror.make_bundle(out, want, have).await?)
    }
}

fn request(tree: &TreeId, parent: &CommitId, message: String, time_unix: i64) -> CommitRequest {
    CommitRequest {
        tree: tree.clone(),
        parents: vec![parent.clone()],
        message,
        author_name: AUTHOR_NAME.to_owned(),
        author_email: AUTHOR_EMAIL.to_owned(),
        time_unix,
    }
}

/// The integration branch of a run.
pub fn branch_ref(run: &RunId) -> Result<RefName, InvalidRefName> {
    RefName::branch(&format!("ganger/{run}"))
}

fn attempt_ref(run: &RunId, attempt: &AttemptId) -> Result<RefName, InvalidRefName> {
    RefName::parse(&format!("refs/ganger/attempts/{run}/{attempt}"))
}

fn candidate_ref(run: &RunId, attempt: &AttemptId) -> Result<RefName, InvalidRefName> {
    RefName::parse(&format!("refs/ganger/candidates/{run}/{attempt}"))
}

//! Trees and commits of a mirror: built, merged, compared and read without any tree of files.
//!
//! Everything here only adds objects; none of it moves a ref.

use ganger_shared::ids::{CommitId, TreeId};

use super::Mirror;
use crate::command::{Call, Place};
use crate::diff::{self, ChangedPath, Patch};
use crate::error::Error;
use crate::program::Git;

/// A commit to be built; its id follows from these values alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRequest {
    /// What it holds.
    pub tree: TreeId,
    /// What it follows.
    pub parents: Vec<CommitId>,
    /// Its message.
    pub message: String,
    /// The name of its author and committer.
    pub author_name: String,
    /// The mail address of its author and committer.
    pub author_email: String,
    /// Its time, in seconds since 1970, UTC.
    pub time_unix: i64,
}

/// What came of merging two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// They go together.
    Clean {
        /// The merged tree.
        tree: TreeId,
    },
    /// They do not; nothing was kept.
    Conflict {
        /// The files that both changed, sorted.
        files: Vec<String>,
    },
}

/// What a tree can be named by.
#[derive(Debug, Clone, Copy)]
pub enum Treeish<'a> {
    /// The tree of a commit.
    Commit(&'a CommitId),
    /// The tree itself.
    Tree(&'a TreeId),
}

impl Treeish<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Commit(commit) => commit.as_str(),
            Self::Tree(tree) => tree.as_str(),
        }
    }
}

impl<'a> From<&'a CommitId> for Treeish<'a> {
    fn from(commit: &'a CommitId) -> Self {
        Self::Commit(commit)
    }
}

impl<'a> From<&'a TreeId> for Treeish<'a> {
    fn from(tree: &'a TreeId) -> Self {
        Self::Tree(tree)
    }
}

impl Mirror {
    /// The tree of a commit.
    pub async fn tree_of(&self, commit: &CommitId) -> Result<TreeId, Error> {
        tree_of(&self.git, &self.place, commit).await
    }

    /// The commits a commit follows.
    pub async fn parents_of(&self, commit: &CommitId) -> Result<Vec<CommitId>, Error> {
        const OPERATION: &str = "read the parents of a commit";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let answer = call.args(["rev-parse", &format!("{commit}^@")]).run().await?;
        commits(OPERATION, &self.place, &answer.text())
    }

    /// Builds a commit; the same request always gives the same id.
    pub async fn commit_tree(&self, request: &CommitRequest) -> Result<CommitId, Error> {
        commit_tree(&self.git, &self.place, request).await
    }

    /// A commit without files and without parents, for work that starts from nothing.
    pub async fn empty_commit(&self) -> Result<CommitId, Error> {
        const OPERATION: &str = "make an empty tree";
        let call = Call::new(&self.git, OPERATION, &self.place);
        let answer = call.args(["hash-object", "-t", "tree", "-w", "--stdin"]).run().await?;
        let tree = tree(OPERATION, &self.place, &answer.text())?;
        self.commit_tree(&CommitRequest {
            tree,
            parents: Vec::new(),
            message: "empty".to_owned(),
            author_name: "ganger".to_owned(),
            author_email: "ganger@localhost".to_owned(),
            time_unix: 0,
        })
        .await
    }

    /// Merges `theirs` into `ours` against what they have in common.
    pub async fn merge(&self, ours: &CommitId, theirs: &CommitId) -> Result<Merged, Error> {
        const OPERATION: &str = "merge two commits";
        let answer = Call::new(&self.git, OPERATION, &self.place)
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args([ours.as_str(), theirs.as_str()])
            .bulk()
            .run_any()
            .await?;
        let mut parts = answer.parts();
        let merged = tree_in(OPERATION, &self.place, parts.next());
        match answer.code {
            Some(0) => Ok(Merged::Clean { tree: merged? }),
            Some(1) => {
                merged?;
                let names = parts.map(|name| String::from_utf8_lossy(name).into_owned());
                let mut files: Vec<String> = names.collect();
                files.sort();
                files.dedup();
                Ok(Merged::Conflict { files })
            }
            code => {
                let (dir, message) = (self.path().to_owned(), answer.message.clone());
                Err(Error::Failed { operation: OPERATION, dir, code, message })
            }
        }
    }

    /// What differs from `a` to `b`, sorted by path; a rename is a deletion and an addition.
    pub async fn diff_paths<'a>(
        &self,
        a: impl Into<Treeish<'a>>,
        b: impl Into<Treeish<'a>>,
    ) -> Result<Vec<ChangedPath>, Error> {
        let (a, b) = (a.into(), b.into());
        let raw = diff::raw(&self.git, &self.place, a.as_str(), b.as_str()).await?;
        Ok(raw.into_iter().map(|raw| raw.change).collect())
    }

    /// A patch from `a` to `b` for people, of at most `max` bytes.
    pub async fn patch<'a>(
        &self,
        a: impl Into<Treeish<'a>>,
        b: impl Into<Treeish<'a>>,
        max: u64,
    ) -> Result<Patch, Error> {
        let (a, b) = (a.into(), b.into());
        diff::patch(&self.git, &self.place, (a.as_str(), b.as_str()), max).await
    }

    /// The content of a file; none if no file is at that path.
    pub async fn read_file<'a>(
        &self,
        tree: impl Into<Treeish<'a>>,
        path: &str,
    ) -> Result<Option<Vec<u8>>, Error> {
        const OPERATION: &str = "read a file";
        let tree = tree.into();
        let name = format!("{}:{path}", tree.as_str());
        let asked = format!("{name}\n");
        if path.is_empty() || path.contains('\n') || path.split('/').any(is_relative) {
            return Ok(None);
        }
        let call = Call::new(&self.git, OPERATION, &self.place);
        let found = call.args(["cat-file", "--batch-check"]).input(asked).run().await?;
        if found.text().split(' ').nth(1) != Some("blob") {
            return Ok(None);
        }
        let call = Call::new(&self.git, OPERATION, &self.place);
        let answer = call.args(["cat-file", "blob", &name]).run().await?;
        Ok(Some(answer.stdout))
    }

    /// The paths of all files, sorted.
    pub async fn list_files<'a>(&self, tree: impl Into<Treeish<'a>>) -> Result<Vec<String>, Error> {
        const OPERATION: &str = "list the files of a tree";
        let tree = tree.into();
        let call = Call::new(&self.git, OPERATION, &self.place);
        let answer =
            call.args(["ls-tree", "-r", "-z", "--name-only", tree.as_str()]).bulk().run().await?;
        let paths = answer.parts().map(|path| diff::utf8(OPERATION, &self.place, path));
        let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        Ok(paths)
    }

    /// Whether `descendant` is `ancestor` or follows it.
    pub async fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, Error> {
        is_ancestor(&self.git, &self.place, ancestor, descendant).await
    }
}

/// `tree:./path` and `tree:../path` would be read relative to a directory git is not in.
fn is_relative(part: &str) -> bool {
    matches!(part, "" | "." | "..")
}

pub(crate) async fn tree_of(git: &Git, place: &Place, commit: &CommitId) -> Result<TreeId, Error> {
    const OPERATION: &str = "read the tree of a commit";
    let call = Call::new(git, OPERATION, place);
    let answer = call.args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).run().await?;
    tree(OPERATION, place, &answer.text())
}

pub(crate) async fn commit_tree(
    git: &Git,
    place: &Place,
    request: &CommitRequest,
) -> Result<CommitId, Error> {
    const OPERATION: &str = "build a commit";
    let CommitRequest { tree, parents, message, author_name, author_email, time_unix } = request;
    let time = format!("@{time_unix} +0000");
    let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
    let answer = Call::new(git, OPERATION, place)
        .args(["commit-tree", tree.as_str()])
        .args(parents)
        .input(message.as_bytes())
        .env("GIT_AUTHOR_NAME", author_name)
        .env("GIT_AUTHOR_EMAIL", author_email)
        .env("GIT_AUTHOR_DATE", &time)
        .env("GIT_COMMITTER_NAME", author_name)
        .env("GIT_COMMITTER_EMAIL", author_email)
        .env("GIT_COMMITTER_DATE", &time)
        .run()
        .await?;
    let id = answer.text();
    CommitId::parse(&id).map_err(|_| place.unexpected(OPERATION, &answer.stdout))
}

pub(crate) async fn is_ancestor(
    git: &Git,
    place: &Place,
    ancestor: &CommitId,
    descendant: &CommitId,
) -> Result<bool, Error> {
    const OPERATION: &str = "compare two commits";
    let call = Call::new(git, OPERATION, place);
    let args = ["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()];
    let answer = call.args(args).bulk().run_any().await?;
    match answer.code {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        code => {
            let (dir, message) = (place.dir().to_owned(), answer.message);
            Err(Error::Failed { operation: OPERATION, dir, code, message })
        }
    }
}

pub(crate) fn tree(operation: &'static str, place: &Place, text: &str) -> Result<TreeId, Error> {
    TreeId::parse(text).map_err(|_| place.unexpected(operation, text.as_bytes()))
}

fn tree_in(operation: &'static str, place: &Place, part: Option<&[u8]>) -> Result<TreeId, Error> {
    let text = String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
    tree(operation, place, &text)
}

/// One commit a line.
pub(crate) fn commits(
    operation: &'static str,
    place: &Place,
    lines: &str,
) -> Result<Vec<CommitId>, Error> {
    let parsed: Result<Vec<_>, _> = lines.lines().map(CommitId::parse).collect();
    parsed.map_err(|_| place.unexpected(operation, lines.as_bytes()))
}

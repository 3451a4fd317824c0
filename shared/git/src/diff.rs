//! What differs between two trees: as a list of paths for rules, as a patch for people.
//!
//! Renames are never guessed in the list: a rule over paths must see both ends.

use crate::command::{Call, Place};
use crate::error::Error;
use crate::program::Git;

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedPath {
    /// The path from the root of the tree, with `/` between its parts.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// What it was; none if it was not there.
    pub before: Option<FileMode>,
    /// What it is; none if it is not there any more.
    pub after: Option<FileMode>,
}

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content or its executable bit differs.
    Modified,
    /// It is gone.
    Deleted,
    /// It is another kind of thing now: a file, a symbolic link, a submodule.
    Retyped,
}

/// What a path in a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileMode {
    /// A file.
    Regular,
    /// A file with its executable bit.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

/// A patch for people, cut at a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The patch as `git apply` takes it.
    pub bytes: Vec<u8>,
    /// Whether there was more than the bound.
    pub truncated: bool,
}

/// One line of git's raw difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawChange {
    pub(crate) change: ChangedPath,
    /// The object after the change; zeros where there is none.
    pub(crate) object: String,
}

impl FileMode {
    pub(crate) fn parse(mode: &str) -> Option<Self> {
        match mode {
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Symlink),
            "160000" => Some(Self::Submodule),
            // Old repositories hold other permission bits; git itself reads all as plain files.
            _ if mode.starts_with("100") => Some(Self::Regular),
            _ => None,
        }
    }

    fn is_file(self) -> bool {
        matches!(self, Self::Regular | Self::Executable)
    }
}

/// Lists what differs from tree `a` to tree `b`, both given as git names them.
pub(crate) async fn raw(
    git: &Git,
    place: &Place,
    a: &str,
    b: &str,
) -> Result<Vec<RawChange>, Error> {
    const OPERATION: &str = "compare two trees";
    let answer = Call::new(git, OPERATION, place)
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", a, b])
        .bulk()
        .run()
        .await?;
    let mut parts = answer.parts();
    let mut changes = Vec::new();
    while let Some(about) = parts.next() {
        let path = parts.next().ok_or_else(|| place.unexpected(OPERATION, about))?;
        let path = utf8(OPERATION, place, path)?;
        let change = raw_change(about, path).ok_or_else(|| place.unexpected(OPERATION, about))?;
        changes.push(change);
    }
    changes.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    Ok(changes)
}

/// Reads `:100644 100755 <before> <after> M`.
fn raw_change(about: &[u8], path: String) -> Option<RawChange> {
    let about = std::str::from_utf8(about).ok()?.strip_prefix(':')?;
    let mut words = about.split(' ');
    let before = FileMode::parse(words.next()?);
    let after = FileMode::parse(words.next()?);
    let object = words.nth(1)?.to_owned();
    let kind = match (before, after) {
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(before), Some(after)) if before == after => ChangeKind::Modified,
        (Some(before), Some(after)) if before.is_file() && after.is_file() => ChangeKind::Modified,
        (Some(_), Some(_)) => ChangeKind::Retyped,
        (None, None) => return None,
    };
    Some(RawChange { change: ChangedPath { path, kind, before, after }, object })
}

/// Makes a patch from tree `a` to tree `b` of at most `max` bytes.
pub(crate) async fn patch(
    git: &Git,
    place: &Place,
    (a, b): (&str, &str),
    max: u64,
) -> Result<Patch, Error> {
    let answer = Call::new(git, "make a patch", place)
        .args(["diff-tree", "-r", "-p", "--binary", "--full-index", "-M"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", a, b])
        .truncate_at(max)
        .bulk()
        .run()
        .await?;
    Ok(Patch { bytes: answer.stdout, truncated: answer.truncated })
}

/// A path as text, refusing what no rule over paths could be applied to.
pub(crate) fn utf8(operation: &'static str, place: &Place, path: &[u8]) -> Result<String, Error> {
    String::from_utf8(path.to_vec()).map_err(|_| Error::PathNotUtf8 {
        operation,
        dir: place.dir().to_owned(),
        path: String::from_utf8_lossy(path).into_owned(),
    })
}

//! What lies where in a checkout's directory, and the files we write there by hand.
//!
//! A git directory is a handful of small files: writing them costs nothing, where `git init` costs
//! a process for each of a whole pool of checkouts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ganger_shared::ids::CommitId;

use super::PrepareError;
use crate::error::Error;

const OPERATION: &str = "prepare a tree";

/// Settings of a repository of ours: the same answers on every machine.
const HOST_CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tsymlinks = true
\tbare = false
\tignorecase = false
\tlogallrefupdates = false
";

/// The attempt's tree.
pub(super) fn tree(dest: &Path) -> PathBuf {
    dest.join("tree")
}

/// The host-side git directory.
pub(super) fn host(dest: &Path) -> PathBuf {
    dest.join("host.git")
}

/// Creates the directory, refusing one that exists, and gives its real path.
pub(super) fn claim(dest: &Path) -> Result<PathBuf, PrepareError> {
    if let Some(parent) = dest.parent() {
        fs::create_dir_all(parent).map_err(Error::files(OPERATION, parent))?;
    }
    match fs::create_dir(dest) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(PrepareError::DestinationExists { dest: dest.to_owned() });
        }
        Err(error) => return Err(Error::files(OPERATION, dest)(error).into()),
    }
    Ok(dest.canonicalize().map_err(Error::files(OPERATION, dest))?)
}

/// Makes the host-side repository, which reads the mirror's objects and writes its own.
pub(super) fn make_host(dest: &Path, mirror_objects: &Path) -> Result<(), Error> {
    let host = host(dest);
    let tree = tree(dest);
    fs::create_dir(&tree).map_err(Error::files(OPERATION, &tree))?;
    make_git_dir(&host, "ref: refs/heads/ganger-has-no-head\n", HOST_CONFIG)?;
    let mut line = mirror_objects.as_os_str().to_owned();
    line.push("\n");
    write(&host.join("objects/info/alternates"), line.as_encoded_bytes())
}

/// Writes the files that make a directory a git directory.
pub(super) fn make_git_dir(git_dir: &Path, head: &str, config: &str) -> Result<(), Error> {
    for dir in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        let dir = git_dir.join(dir);
        fs::create_dir_all(&dir).map_err(Error::files(OPERATION, &dir))?;
    }
    write(&git_dir.join("config"), config.as_bytes())?;
    write(&git_dir.join("HEAD"), head.as_bytes())
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::files(OPERATION, path))
}

/// Copies an index with its time: git tells by it which files may have changed unseen since.
pub(super) fn copy_index(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |source| Error::files("copy an index", to)(source);
    let written = fs::metadata(from).and_then(|about| about.modified()).map_err(failed)?;
    fs::copy(from, to).map_err(failed)?;
    let copy = fs::OpenOptions::new().write(true).open(to).map_err(failed)?;
    copy.set_modified(written).map_err(failed)
}

/// The base the checkout was finished with; none if it was not.
pub(super) fn read_base(dest: &Path) -> Option<CommitId> {
    CommitId::parse(fs::read_to_string(dest.join("base")).ok()?.trim()).ok()
}

/// Says that the checkout is finished.
pub(super) fn write_base(dest: &Path, base: &CommitId) -> Result<(), Error> {
    let partial = dest.join("base.partial");
    write(&partial, format!("{base}\n").as_bytes())?;
    fs::rename(&partial, dest.join("base")).map_err(Error::files(OPERATION, dest))
}

/// Says that the checkout is half made.
pub(super) fn forget_base(dest: &Path) -> Result<(), Error> {
    fs::remove_file(dest.join("base")).map_err(Error::files(OPERATION, dest))
}

/// The repository that `path` is inside of, if it is: no place for attempts' trees, because a git
/// that finds no repository in a tree goes on to look above it.
pub fn enclosing_repository(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned)
}

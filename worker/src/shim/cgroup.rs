//! One cgroup v2 leaf: made, entered, killed, removed. Where it may lie is known to `isolation`.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::process::LaunchError;

/// A leaf that only the attempt's program and its descendants are in.
pub(super) struct Leaf {
    pub(super) path: PathBuf,
    parent: PathBuf,
}

impl Leaf {
    pub(super) fn make(parent: PathBuf, path: PathBuf) -> Result<Self, LaunchError> {
        fs::create_dir(&path).map_err(|error| refused(&path, &error))?;
        Ok(Self { path, parent })
    }

    /// Runs `start` inside the leaf, so that the program is in it from its first instruction, and
    /// comes back out: `cgroup.kill` must not hit the shim.
    pub(super) fn within<T>(
        &self,
        start: impl FnOnce() -> Result<T, LaunchError>,
    ) -> Result<T, LaunchError> {
        move_self(&self.path).map_err(|error| refused(&self.path, &error))?;
        let started = start();
        move_self(&self.parent).map_err(|error| refused(&self.parent, &error))?;
        started
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // Refused while somebody is in it; the worker's sweep removes it then.
        let _ = fs::remove_dir(&self.path);
    }
}

fn move_self(group: &std::path::Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

fn refused(path: &std::path::Path, error: &io::Error) -> LaunchError {
    LaunchError::new("use a cgroup", format!("{}: {error}", path.display()))
}

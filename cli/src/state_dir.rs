//! The state directory: where the embedded coordinator, its workers and its tokens are at home.
//!
//! Only names of files, and the address a running coordinator left there. The layout is that of any
//! coordinator's data directory, so that `journal verify --data` reads it as well.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// `$XDG_STATE_HOME/ganger`, else `~/.local/state/ganger`.
    pub fn find(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .ok_or(Error::NoHome { wants: "a state directory", variable: "XDG_STATE_HOME" })?;
        Ok(Self { path: base.join("ganger") })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it, for its owner alone.
    pub fn make(&self) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    /// Where a coordinator on this directory says its address.
    pub fn endpoint_file(&self) -> PathBuf {
        self.path.join("endpoint")
    }

    /// The address in the endpoint file, if there is one.
    pub fn endpoint(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.endpoint_file()).ok()?;
        let address = text.lines().next()?.trim();
        (!address.is_empty()).then(|| address.to_owned())
    }

    /// The operator's token.
    pub fn operator_token(&self) -> PathBuf {
        self.path.join("operator.token")
    }

    /// The token workers join with.
    pub fn worker_token(&self) -> PathBuf {
        self.path.join("worker-join.token")
    }

    /// Where repositories made from `seed:` directories are.
    pub fn repositories(&self) -> PathBuf {
        self.path.join("repositories")
    }

    /// The directory of an embedded worker.
    pub fn worker(&self, name: &str) -> PathBuf {
        self.path.join("workers").join(name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<StateDir, Error> {
        StateDir::find(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn it_is_where_the_standard_says() {
        let home = ("HOME", "/home/anna");
        let state = find(&[home, ("XDG_STATE_HOME", "/state")]).unwrap();
        assert_eq!(state.path(), Path::new("/state/ganger"));
        // By the standard, a relative or empty value counts as unset.
        for unset in ["", "relative"] {
            let state = find(&[home, ("XDG_STATE_HOME", unset)]).unwrap();
            assert_eq!(state.path(), Path::new("/home/anna/.local/state/ganger"));
        }
        assert!(matches!(find(&[]), Err(Error::NoHome { .. })));
    }

    #[test]
    fn an_address_is_the_first_line_of_the_endpoint_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir { path: dir.path().join("ganger") };
        assert_eq!(state.endpoint(), None);
        state.make().unwrap();
        std::fs::write(state.endpoint_file(), "http://127.0.0.1:4\n").unwrap();
        assert_eq!(state.endpoint().as_deref(), Some("http://127.0.0.1:4"));
    }
}

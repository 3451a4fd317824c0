//! Which git is run, whether it is new enough, and the limits on every call of it.
//!
//! Not here: how a call is made (`command`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::command::{Call, Place};
use crate::error::Error;

/// The oldest git that has everything used here (`merge-tree --write-tree` is the youngest part).
pub const VERSION_MIN: GitVersion = GitVersion { major: 2, minor: 39, patch: 0 };

/// The bounds on calls of git; reaching one is a named error, never a silent cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may take that touches a few objects.
    pub quick: Duration,
    /// How long a call may take whose work grows with the repository.
    pub bulk: Duration,
    /// How long to wait for another holder of a repository's lock.
    pub lock_wait: Duration,
    /// How many bytes of an answer are read into memory.
    pub answer_max: u64,
    /// The largest bundle written or taken in.
    pub bundle_max: u64,
    /// The largest history that is copied whole into a private clone; beyond it the clone is
    /// shallow (the base commit only).
    pub history_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            quick: Duration::from_mins(1),
            bulk: Duration::from_mins(10),
            lock_wait: Duration::from_mins(1),
            answer_max: 256 << 20,
            bundle_max: 1 << 30,
            history_max: 256 << 20,
        }
    }
}

/// The git program of this machine, found once and handed to everything here.
#[derive(Debug, Clone)]
pub struct Git {
    inner: Arc<Found>,
}

#[derive(Debug)]
struct Found {
    program: PathBuf,
    version: GitVersion,
    limits: Limits,
}

/// Why no usable git was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no program of that name on the search path.
    #[error("find git: no `git` on PATH; install git {VERSION_MIN} or newer")]
    NotFound,
    /// The program is older than what is needed.
    #[error("use {program}: it is git {found}; install git {VERSION_MIN} or newer")]
    TooOld {
        /// The program that was asked.
        program: PathBuf,
        /// Its version.
        found: GitVersion,
    },
    /// The program does not answer as git does.
    #[error(transparent)]
    Git(#[from] Error),
}

impl Git {
    /// Finds git on the search path and checks its version.
    pub async fn find(limits: Limits) -> Result<Self, FindError> {
        let program = std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .map(|dir| dir.join("git"))
            .find(|program| program.is_file())
            .ok_or(FindError::NotFound)?;
        Self::at(program, limits).await
    }

    /// Uses the git program at `program`, checking its version.
    pub async fn at(program: PathBuf, limits: Limits) -> Result<Self, FindError> {
        let version = GitVersion { major: 0, minor: 0, patch: 0 };
        let unchecked = Self { inner: Arc::new(Found { program, version, limits }) };
        let version = unchecked.ask_version().await?;
        let Found { program, limits, .. } =
            Arc::into_inner(unchecked.inner).expect("nobody else has seen this value yet");
        if version < VERSION_MIN {
            return Err(FindError::TooOld { program, found: version });
        }
        Ok(Self { inner: Arc::new(Found { program, version, limits }) })
    }

    /// The version of the program.
    pub fn version(&self) -> GitVersion {
        self.inner.version
    }

    /// The program that is run.
    pub fn program(&self) -> &Path {
        &self.inner.program
    }

    /// The limits on its calls.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    async fn ask_version(&self) -> Result<GitVersion, Error> {
        const OPERATION: &str = "ask git for its version";
        let place = Place::nowhere();
        let answer = Call::new(self, OPERATION, &place).args(["version"]).run().await?;
        GitVersion::parse(&answer.text()).ok_or_else(|| place.unexpected(OPERATION, &answer.stdout))
    }
}

/// A version of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; 0 where git names none.
    pub patch: u32,
}

impl GitVersion {
    /// Reads the answer of `git version`, which vendors lengthen at its end.
    fn parse(answer: &str) -> Option<Self> {
        let version = answer.strip_prefix("git version ")?.split_whitespace().next()?;
        let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
        Some(Self {
            major: numbers.next()??,
            minor: numbers.next()??,
            patch: numbers.next().flatten().unwrap_or(0),
        })
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::GitVersion;

    fn parse(answer: &str) -> Option<(u32, u32, u32)> {
        GitVersion::parse(answer).map(|version| (version.major, version.minor, version.patch))
    }

    #[test]
    fn versions_of_all_vendors_are_read() {
        assert_eq!(parse("git version 2.47.3\n"), Some((2, 47, 3)));
        assert_eq!(parse("git version 2.39.5 (Apple Git-154)"), Some((2, 39, 5)));
        assert_eq!(parse("git version 2.45.windows.1"), Some((2, 45, 0)));
        assert_eq!(parse("git version 2.50.0-rc1"), Some((2, 50, 0)));
        assert_eq!(parse("hg 6"), None);
    }
}

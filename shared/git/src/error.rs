//! What can go wrong in any call of git, whatever it was for.
//!
//! Errors that belong to one operation (a moved ref, a damaged bundle) stand beside that operation
//! and carry this one as a source.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A call of git, or a file operation around it, that did not come to a usable end.
///
/// Reads after "failed to …": the operation comes first.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The git program could not be started.
    #[error("{operation} in {dir}: {program} could not be started ({source})")]
    NotStarted {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it was to work on.
        dir: PathBuf,
        /// The program that was tried.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Git ran longer than its deadline and was ended, together with what it had started.
    #[error(
        "{operation} in {dir}: git was still running after {after:?} and was ended; \
         is the disk slow, or does the repository ask for something?"
    )]
    Deadline {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it worked on.
        dir: PathBuf,
        /// The deadline it had.
        after: Duration,
    },
    /// Git wrote more than is read for this operation.
    #[error("{operation} in {dir}: git wrote more than {max} bytes")]
    OutputTooLarge {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it worked on.
        dir: PathBuf,
        /// How much is read at most.
        max: u64,
    },
    /// Git ended with an error of its own.
    #[error("{operation} in {dir}: git said: {message}")]
    Failed {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it worked on.
        dir: PathBuf,
        /// Its exit code; none if a signal ended it.
        code: Option<i32>,
        /// The last line with text on its standard error.
        message: String,
    },
    /// Git answered something that is not what this operation answers.
    #[error("{operation} in {dir}: git answered {output:?}, which is not understood")]
    Unexpected {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it worked on.
        dir: PathBuf,
        /// The beginning of the answer.
        output: String,
    },
    /// A path is not valid UTF-8, so no rule over paths could be applied to it.
    #[error("{operation} in {dir}: the path {path:?} is not UTF-8; rename it")]
    PathNotUtf8 {
        /// What git was wanted for.
        operation: &'static str,
        /// The repository or tree it is in.
        dir: PathBuf,
        /// The path with its unreadable bytes replaced.
        path: String,
    },
    /// Another process holds the repository's lock.
    #[error(
        "{operation} in {dir}: repo_busy: another operation held the repository for {waited:?}"
    )]
    RepoBusy {
        /// What the lock was wanted for.
        operation: &'static str,
        /// The locked repository.
        dir: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A file or directory around the repository could not be used.
    #[error("{operation} at {path}: {source}")]
    Files {
        /// What was being done.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// Turns an I/O error at `path` into ours.
    pub(crate) fn files(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Files { operation, path, source }
    }

    /// An answer of git that could not be read.
    pub(crate) fn unexpected(operation: &'static str, dir: &Path, output: &[u8]) -> Self {
        let shown = &output[..output.len().min(200)];
        let output = String::from_utf8_lossy(shown).into_owned();
        Self::Unexpected { operation, dir: dir.to_owned(), output }
    }
}

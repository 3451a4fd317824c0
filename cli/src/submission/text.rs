//! The plan file: found, measured before it is read, and read as UTF-8.
//!
//! What stands in it is `shared::plan`'s business.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use ganger_shared::limits;
use thiserror::Error as ThisError;

use crate::exit::Exit;
use crate::output::words::size;

/// A plan's text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanText {
    /// As the user named it.
    pub name: String,
    /// What paths in it are relative to.
    pub dir: PathBuf,
    /// The text.
    pub text: String,
}

/// Why a plan cannot be read.
#[derive(Debug, ThisError)]
pub enum TextError {
    /// There is no file, or none that can be read.
    #[error("read the plan {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not a file.
    #[error("read the plan {}: it is a directory; name the file in it", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
    },
    /// It is larger than allowed.
    #[error(
        "read the plan {}: it has {} ({bytes} bytes), and {} ({max} bytes) are allowed; split it, \
         or ask the operator for a larger plan limit (`ganger coordinator --plan-size`)",
        path.display(), size(*bytes), size(*max)
    )]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        max: u64,
    },
    /// It is not text.
    #[error(
        "read the plan {}: line {line} is not UTF-8 (byte {at} of the file); save the file as UTF-8",
        path.display()
    )]
    NotText {
        /// Which.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The byte, from 0.
        at: usize,
    },
}

impl TextError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. } | Self::Directory { .. } => Exit::Usage,
            Self::TooLarge { .. } | Self::NotText { .. } => Exit::Refused,
        }
    }
}

/// Refuses a plan that cannot be one, before anything is started for it.
pub fn find(path: &Path) -> Result<PathBuf, TextError> {
    let meta = std::fs::metadata(path)
        .map_err(|source| TextError::Unreadable { path: path.to_owned(), source })?;
    if meta.is_dir() {
        return Err(TextError::Directory { path: path.to_owned() });
    }
    fits(path, meta.len(), limits::PLAN_BYTES_CAP)?;
    Ok(path.to_owned())
}

/// Reads the plan, at most one byte more than allowed.
pub fn read(path: &Path, max: u64) -> Result<PlanText, TextError> {
    let failed = |source| TextError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    fits(path, file.metadata().map_err(failed)?.len(), max)?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    // A pipe has no length beforehand.
    fits(path, bytes.len() as u64, max)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        TextError::NotText { path: path.to_owned(), line, at }
    })?;
    let dir = std::path::absolute(path).map_err(failed)?;
    let dir = dir.parent().unwrap_or(Path::new("/")).to_owned();
    Ok(PlanText { name: path.display().to_string(), dir, text })
}

fn fits(path: &Path, bytes: u64, max: u64) -> Result<(), TextError> {
    if bytes <= max {
        return Ok(());
    }
    Err(TextError::TooLarge { path: path.to_owned(), bytes, max })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.yaml");
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    /// P115: a plan above the limit is refused by name, number and way out.
    #[test]
    fn a_plan_that_is_too_large_is_refused_before_it_is_read() {
        let (_dir, path) = written(b"");
        std::fs::File::options().write(true).open(&path).unwrap().set_len(10 << 20).unwrap();
        let refused = read(&path, limits::PLAN_BYTES).unwrap_err();
        let text = refused.to_string();
        for part in ["plan.yaml", "10 MiB", "10485760", "4 MiB", "--plan-size"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        assert_eq!(refused.exit(), Exit::Refused);
    }

    #[test]
    fn text_that_is_none_is_refused_with_its_line() {
        let (_dir, path) = written(b"version: 1\nname: \xff\n");
        let refused = read(&path, 100).unwrap_err();
        assert!(matches!(refused, TextError::NotText { line: 2, at: 17, .. }), "{refused}");
    }

    #[test]
    fn a_missing_plan_is_a_wrong_command_line() {
        let refused = find(Path::new("/nowhere/plan.yaml")).unwrap_err();
        assert_eq!(refused.exit(), Exit::Usage);
        assert!(refused.to_string().contains("/nowhere/plan.yaml"));
    }

    #[test]
    fn paths_in_a_plan_are_relative_to_its_directory() {
        let (dir, path) = written(b"version: 1\n");
        let read = read(&path, 100).unwrap();
        assert_eq!((read.dir.as_path(), read.text.as_str()), (dir.path(), "version: 1\n"));
    }
}

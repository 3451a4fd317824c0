//! What the globs of file claims and scopes match, and whether two of them can meet.
//!
//! A pattern is relative to the root of its repository; `*`, `?` and `[..]` stay within one
//! directory, `**` does not. Whether a delivery kept to its scope is decided with `Globs`, whether
//! two units may run together with `Patterns`. Not here: who holds which claim (`fleet`).

mod automaton;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use automaton::Automaton;

/// The longest pattern taken, in bytes: it bounds what comparing two of them costs.
pub const GLOB_BYTES_MAX: usize = 512;

/// Why a text is not a usable pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidGlob {
    /// Nothing in it.
    #[error("a file pattern must not be empty")]
    Empty,
    /// Longer than `GLOB_BYTES_MAX`.
    #[error("file pattern of {bytes} bytes is longer than {GLOB_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It begins at the root of a file system.
    #[error("file pattern `{0}` is absolute: write it relative to the repository")]
    Absolute(String),
    /// It has a segment `.` or `..`, or an empty one.
    #[error("file pattern `{0}` has a segment `.`, `..` or an empty one, which no path here has")]
    Segment(String),
    /// It ends in `/`, so it matches no file.
    #[error("file pattern `{0}` ends in `/` and so matches no file: write `{0}**`")]
    Directory(String),
    /// It does not parse.
    #[error("file pattern `{glob}` does not parse: {reason}")]
    Syntax {
        /// The pattern.
        glob: String,
        /// What the parser says.
        reason: String,
    },
}

/// Whether the pattern can be used in a claim or scope.
pub fn check(glob: &str) -> Result<(), InvalidGlob> {
    if glob.is_empty() {
        return Err(InvalidGlob::Empty);
    }
    if glob.len() > GLOB_BYTES_MAX {
        return Err(InvalidGlob::TooLong { bytes: glob.len() });
    }
    if glob.starts_with('/') {
        return Err(InvalidGlob::Absolute(glob.to_owned()));
    }
    if let Some(directory) = glob.strip_suffix('/') {
        return Err(if directory.ends_with('/') {
            InvalidGlob::Segment(glob.to_owned())
        } else {
            InvalidGlob::Directory(glob.to_owned())
        });
    }
    if glob.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(InvalidGlob::Segment(glob.to_owned()));
    }
    parse(glob).map(drop)
}

/// Whether any of the patterns matches the path; one that does not parse matches nothing.
pub fn matches(globs: &[String], path: &str) -> bool {
    globs
        .iter()
        .filter_map(|glob| parse(glob).ok())
        .any(|glob| glob.compile_matcher().is_match(path))
}

/// Whether some path may match both: never a wrong no, and a yes where a pattern does not parse.
pub fn overlap(a: &[String], b: &[String]) -> bool {
    Patterns::new(a).overlap(&Patterns::new(b))
}

/// Compiled patterns, for matching many paths.
#[derive(Debug, Clone)]
pub struct Globs(GlobSet);

impl Globs {
    /// Compiles them; refuses the first that does not parse.
    pub fn new(globs: &[String]) -> Result<Self, InvalidGlob> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(parse(glob)?);
        }
        set.build().map(Self).map_err(|error| syntax(&globs.join(" "), &error))
    }

    /// Whether one of them matches.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Compiled patterns, for comparing with many others.
#[derive(Debug, Clone)]
pub struct Patterns(Vec<Option<Automaton>>);

impl Patterns {
    /// Compiles them; one that does not parse overlaps with everything.
    pub fn new(globs: &[String]) -> Self {
        Self(globs.iter().map(|glob| Automaton::new(glob)).collect())
    }

    /// Whether some path may match both.
    pub fn overlap(&self, other: &Self) -> bool {
        self.0.iter().any(|a| {
            other.0.iter().any(|b| match (a, b) {
                (Some(a), Some(b)) => a.meets(b),
                (None, _) | (_, None) => true,
            })
        })
    }
}

fn parse(glob: &str) -> Result<globset::Glob, InvalidGlob> {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| syntax(glob, &error))
}

fn syntax(glob: &str, error: &globset::Error) -> InvalidGlob {
    InvalidGlob::Syntax { glob: glob.to_owned(), reason: error.kind().to_string() }
}

#[cfg(test)]
mod tests;

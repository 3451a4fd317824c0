//! What is wrong with a plan, said so that its author can repair it: the place, the reason, the way out.
//!
//! The reader here and the checker in the coordinator's core speak this one type. Nothing here
//! finds problems.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of problem it is; the text form is snake case and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The text is not YAML or JSON.
    Syntax,
    /// A key the schema does not know.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of another type than the key wants.
    WrongType,
    /// A word that is none of the key's words.
    UnknownWord,
    /// A text or number that has not the form the key wants.
    BadValue,
    /// A key, id or name that is there twice.
    Duplicate,
    /// Keys that exclude each other, or a key that this kind of unit has no use for.
    Conflict,
    /// A name nothing in the plan has.
    UnknownName,
    /// Dependencies that lead back to themselves.
    Cycle,
    /// Larger or more than allowed.
    Limit,
    /// In the schema, but its behaviour is not built yet.
    NotSupportedYet,
    /// Nothing would prove the unit's work.
    NoEvidence,
    /// A check whose command succeeds whatever happens.
    CannotFail,
    /// No executor of that name.
    UnknownAgent,
    /// Allowed, but rarely meant.
    Advice,
}

impl Code {
    /// The snake-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown_key",
            Self::MissingKey => "missing_key",
            Self::WrongType => "wrong_type",
            Self::UnknownWord => "unknown_word",
            Self::BadValue => "bad_value",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::UnknownName => "unknown_name",
            Self::Cycle => "cycle",
            Self::Limit => "limit",
            Self::NotSupportedYet => "not_supported_yet",
            Self::NoEvidence => "no_evidence",
            Self::CannotFail => "cannot_fail",
            Self::UnknownAgent => "unknown_agent",
            Self::Advice => "advice",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the plan is refused for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The plan is refused.
    Error,
    /// The plan is taken; a person should look.
    Warning,
}

/// One thing wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its kind.
    pub code: Code,
    /// Whether the plan is refused for it.
    pub severity: Severity,
    /// The place as a path of keys, like `units[2].checks[0].run`; empty for the whole file.
    pub path: String,
    /// Line in the text that was read, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty where the message says it already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

impl Problem {
    /// A problem the plan is refused for.
    pub fn error(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            path: path.into(),
            line: None,
            column: None,
            message: message.into(),
            fix: String::new(),
        }
    }

    /// A problem the plan is taken with.
    pub fn warning(code: Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, path, message) }
    }

    /// The same problem with a way out.
    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// The same problem at a line and column.
    #[must_use]
    pub fn at(self, place: Option<(u32, u32)>) -> Self {
        Self {
            line: place.map(|(line, _)| line).or(self.line),
            column: place.map(|(_, column)| column).or(self.column),
            ..self
        }
    }

    /// Whether the plan is refused for it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column} ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.message)?;
        if !self.fix.is_empty() {
            write!(f, "; {}", self.fix)?;
        }
        Ok(())
    }
}

//! What is wrong with a message, by the path of the field.

use std::fmt;

use thiserror::Error;

/// A message that cannot be what its type promises.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("malformed {path}: {reason}")]
pub struct Malformed {
    /// The field, from the outermost message inwards, like `hello.live[2].work`.
    pub path: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    /// A message or choice that must be there is not.
    #[error("it is missing")]
    Missing,
    /// An enum was left at its zero value.
    #[error("it is unspecified")]
    Unspecified,
    /// An enum has a value this build does not know: the other side is newer.
    #[error("{0} is no value this build knows")]
    UnknownValue(i32),
    /// A text, number or time has not the form it must have.
    #[error("{0}")]
    Form(String),
    /// A key that is there twice.
    #[error("`{0}` is there twice")]
    Duplicate(String),
}

impl Malformed {
    /// This field is malformed.
    pub fn new(field: impl Into<String>, reason: Reason) -> Self {
        Self { path: field.into(), reason }
    }

    /// The same, seen from the message that has the malformed one in `field`.
    #[must_use]
    pub fn within(self, field: impl fmt::Display) -> Self {
        Self { path: format!("{field}.{}", self.path), reason: self.reason }
    }
}

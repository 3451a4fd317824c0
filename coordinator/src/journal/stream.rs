//! The names of event streams.
//!
//! Not here: which events belong in which stream.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// A stream's name: `run/<id>`, `fleet` or `system`.
///
/// A name holds only ASCII letters, digits, `-`, `_`, `.` and the one slash, so it needs no
/// escaping in a stored line, a key or a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(String);

/// The text is not a stream's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a stream: `run/<id>`, `fleet` or `system`")]
pub struct InvalidStreamName(pub String);

impl StreamName {
    /// Workers, breakers, claims and enrolment.
    pub fn fleet() -> Self {
        Self("fleet".to_owned())
    }

    /// Quarantine, tokens and repairs.
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// The stream of one run.
    pub fn run(id: &str) -> Result<Self, InvalidStreamName> {
        format!("run/{id}").parse()
    }

    /// The name as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamName {
    type Err = InvalidStreamName;

    fn from_str(text: &str) -> Result<Self, InvalidStreamName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let known = match text.strip_prefix("run/") {
            Some(id) => !id.is_empty() && text.len() <= NAME_BYTES_MAX && id.bytes().all(plain),
            None => text == "fleet" || text == "system",
        };
        if known { Ok(Self(text.to_owned())) } else { Err(InvalidStreamName(text.to_owned())) }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_forms_are_names() {
        for good in ["fleet", "system", "run/r-abc", "run/A_1.b"] {
            assert_eq!(good.parse::<StreamName>().map(|name| name.to_string()), Ok(good.into()));
        }
        for bad in ["", "run", "run/", "run/a/b", "run/a b", "run/a\"", "fleet2", "Fleet"] {
            assert_eq!(bad.parse::<StreamName>(), Err(InvalidStreamName(bad.into())));
        }
    }
}

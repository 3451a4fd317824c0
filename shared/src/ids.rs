//! Names and numbers by which the parts know each other.
//!
//! Every id is validated where it enters and is then just a value. None of them is made here from
//! randomness or time: those come in with a command.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest project, unit, task, lane or check name, in bytes (design section 8).
pub const NAME_MAX_BYTES: usize = 63;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a {kind}: {expected}")]
pub struct InvalidId {
    /// What was read.
    pub text: String,
    /// Which kind of id was wanted.
    pub kind: &'static str,
    /// The form it must have.
    pub expected: &'static str,
}

/// A validated text id: newtype over `String`, ordered and serialised as that string.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $expected:literal, $valid:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads the id, refusing any other form.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                if $valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId { text: text.to_owned(), kind: $kind, expected: $expected })
                }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $expected })
            }
        }
    };
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_MAX_BYTES
        && !text.starts_with('-')
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_run(text: &str) -> bool {
    text.strip_prefix("r-").is_some_and(|rest| {
        rest.len() == 26 && rest.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
    })
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_git_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hex(text)
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_graphic())
}

fn is_port(text: &str) -> bool {
    let mut bytes = text.bytes();
    matches!(bytes.next(), Some(b'a'..=b'z'))
        && text.len() <= 64
        && bytes.all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

text_id!(
    /// A group of runs that share fairness, caps and permissions.
    ProjectId, "project name", "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit", is_name
);
text_id!(
    /// A work unit of one plan.
    UnitId, "unit id", "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit", is_name
);
text_id!(
    /// A human grouping of units: a phase, a wave.
    TaskId, "task id", "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit", is_name
);
text_id!(
    /// One of several candidates raced on one unit; `main` where nothing is raced.
    LaneId, "lane", "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit", is_name
);
text_id!(
    /// A check of one unit.
    CheckName, "check name", "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit", is_name
);
text_id!(
    /// A named output of a unit (R005).
    PortName, "port name", "a letter a-z, then up to 63 of a-z, 0-9, `.`, `_` and `-`", is_port
);
text_id!(
    /// One execution of a contract: `r-` and the base32 of a `UUIDv7`, so ids sort by time.
    RunId, "run id", "`r-` followed by 26 of a-z and 2-7", is_run
);
text_id!(
    /// An enrolled worker's lasting identity, kept in its data directory.
    WorkerId, "worker id", "1 to 128 letters, digits, `-`, `_` or `.`", is_token
);
text_id!(
    /// One start of a worker's process.
    InstanceId, "instance id", "1 to 128 letters, digits, `-`, `_` or `.`", is_token
);
text_id!(
    /// A source repository, the same for every clone of it that a project uses.
    RepositoryId, "repository id", "1 to 128 letters, digits, `-`, `_` or `.`", is_token
);
text_id!(
    /// A question put to a person.
    QuestionId, "question id", "1 to 128 letters, digits, `-`, `_` or `.`", is_token
);
text_id!(
    /// The client's own name for one mutating call, so that a repeat is not a second one.
    IdempotencyKey, "idempotency key", "1 to 128 printable ASCII characters without spaces", is_key
);
text_id!(
    /// A git commit, as lowercase hex.
    CommitId, "commit id", "40 or 64 lowercase hex digits", is_git_object
);
text_id!(
    /// A git tree, as lowercase hex.
    TreeId, "tree id", "40 or 64 lowercase hex digits", is_git_object
);

impl RunId {
    /// The id for 16 bytes of a `UUIDv7`.
    pub fn from_uuid_bytes(bytes: &[u8; 16]) -> Self {
        let mut text = data_encoding::BASE32_NOPAD.encode(bytes);
        text.make_ascii_lowercase();
        Self(format!("r-{text}"))
    }
}

impl LaneId {
    /// The only lane of a unit that is not raced.
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

/// The fence of a lease: rises with every grant per (unit, lane), never repeated, never reset.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the next grant.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One try at a unit in one lane; written `unit/lane/n`, `n` counting from 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttemptId {
    /// The unit it tries.
    pub unit: UnitId,
    /// The lane it runs in.
    pub lane: LaneId,
    /// Its number within the lane, from 1.
    pub n: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.unit, self.lane, self.n)
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AttemptId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let wrong = || InvalidId {
            text: text.to_owned(),
            kind: "attempt id",
            expected: "`unit/lane/n`, n from 1",
        };
        let mut parts = text.split('/');
        let (Some(unit), Some(lane), Some(n), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let n: u32 = n.parse().map_err(|_| wrong())?;
        if n == 0 {
            return Err(wrong());
        }
        Ok(Self { unit: UnitId::parse(unit)?, lane: LaneId::parse(lane)?, n })
    }
}

impl TryFrom<String> for AttemptId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<AttemptId> for String {
    fn from(id: AttemptId) -> String {
        id.to_string()
    }
}

/// What a check measures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The delivery of one attempt.
    Attempt(AttemptId),
    /// The tree that accepting this attempt would put on the moved integration branch.
    Merge(AttemptId),
    /// The tree the run is about to hand out as finished.
    Final(TreeId),
}

/// One measuring of one check: leased like an attempt, with its own epoch.
///
/// Written `unit:check/n@subject`; a colon is not allowed in a name, so the form is unambiguous.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckId {
    /// The unit whose plan declares the check.
    pub unit: UnitId,
    /// Its name there.
    pub check: CheckName,
    /// What is measured.
    pub subject: Subject,
    /// The measuring's number, from 1; reruns after a loss count up.
    pub n: u32,
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}@", self.unit, self.check, self.n)?;
        match &self.subject {
            Subject::Attempt(attempt) => write!(f, "attempt:{attempt}"),
            Subject::Merge(attempt) => write!(f, "merge:{attempt}"),
            Subject::Final(tree) => write!(f, "final:{tree}"),
        }
    }
}

impl fmt::Debug for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CheckId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let wrong = || InvalidId {
            text: text.to_owned(),
            kind: "check id",
            expected: "`unit:check/n@subject`",
        };
        let (unit, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (name, rest) = rest.split_once('/').ok_or_else(wrong)?;
        let (n, subject) = rest.split_once('@').ok_or_else(wrong)?;
        let subject = match subject.split_once(':').ok_or_else(wrong)? {
            ("attempt", id) => Subject::Attempt(id.parse()?),
            ("merge", id) => Subject::Merge(id.parse()?),
            ("final", id) => Subject::Final(TreeId::parse(id)?),
            _ => return Err(wrong()),
        };
        let n: u32 = n.parse().map_err(|_| wrong())?;
        if n == 0 {
            return Err(wrong());
        }
        Ok(Self { unit: UnitId::parse(unit)?, check: CheckName::parse(name)?, subject, n })
    }
}

impl TryFrom<String> for CheckId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<CheckId> for String {
    fn from(id: CheckId) -> String {
        id.to_string()
    }
}

/// What a worker may hold a lease on: an attempt, or one measuring of a check.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WorkId {
    /// An attempt at a unit.
    Attempt(AttemptId),
    /// A measuring of a check.
    Check(CheckId),
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempt(id) => id.fmt(f),
            Self::Check(id) => id.fmt(f),
        }
    }
}

impl fmt::Debug for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for WorkId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.contains(':') {
            Ok(Self::Check(text.parse()?))
        } else {
            Ok(Self::Attempt(text.parse()?))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]
    use super::*;

    #[test]
    fn every_written_id_reads_back() {
        let tree = "a".repeat(40);
        for text in [
            "implement/main/1".to_owned(),
            "implement:tests/2@attempt:implement/main/1".to_owned(),
            "implement:tests/1@merge:implement/lane-b/3".to_owned(),
            format!("implement:tests/1@final:{tree}"),
        ] {
            let id: WorkId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<WorkId>(&json).unwrap(), id);
        }
    }

    #[test]
    fn names_outside_the_form_are_refused() {
        for text in ["", "-a", "A", "a_b", "a:b", "a/b", &"a".repeat(64)] {
            assert!(UnitId::parse(text).is_err(), "{text} was taken");
        }
        assert!(UnitId::parse(&"a".repeat(63)).is_ok());
        assert!("u/main/0".parse::<AttemptId>().is_err());
        assert!("u/main".parse::<AttemptId>().is_err());
        assert!(RunId::parse("r-short").is_err());
    }

    #[test]
    fn run_ids_are_base32_of_their_uuid() {
        let id = RunId::from_uuid_bytes(&[0xff; 16]);
        assert_eq!(RunId::parse(id.as_str()).unwrap(), id);
    }
}

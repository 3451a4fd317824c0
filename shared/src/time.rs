//! Points in time and lengths of it, as the journal writes them.
//!
//! Nothing here reads a clock: a `Timestamp` comes in with a command.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, written as RFC 3339 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// Why a text is not a time or a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidTime {
    /// Not RFC 3339.
    #[error("`{0}` is not an RFC 3339 time")]
    Timestamp(String),
    /// Not a duration of the plan file.
    #[error(
        "`{0}` is not a duration: write a whole number and a unit, such as 500ms, 30s, 10m, 4h or 7d"
    )]
    Duration(String),
}

impl Timestamp {
    /// The time for this many milliseconds since the epoch.
    pub fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub fn unix_ms(self) -> i64 {
        self.0
    }

    /// This time, later by `length`; saturates at the end of the representable range.
    #[must_use]
    pub fn plus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_add_unsigned(length.0))
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn since(self, earlier: Self) -> DurationMs {
        DurationMs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self(time.as_millisecond()))
            .map_err(|_| InvalidTime::Timestamp(text.to_owned()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTime;
    fn try_from(text: String) -> Result<Self, InvalidTime> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

/// A length of time in milliseconds; a bare number in the journal, `30m` in a plan file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct DurationMs(pub u64);

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl DurationMs {
    /// This many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000)
    }

    /// This many minutes.
    pub const fn from_mins(mins: u64) -> Self {
        Self(mins * 60_000)
    }

    /// Reads `500ms`, `30s`, `10m`, `4h` or `7d`.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let wrong = || InvalidTime::Duration(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let (_, factor) =
            UNITS.iter().find(|(unit, _)| *unit == &text[digits..]).ok_or_else(wrong)?;
        number.checked_mul(*factor).map(Self).ok_or_else(wrong)
    }

    /// The same length for the standard library.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = UNITS
            .iter()
            .rev()
            .find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor))
            .unwrap_or(&UNITS[1]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]
    use super::*;

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        let time = Timestamp::from_unix_ms(1_700_000_000_123);
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        assert_eq!(Timestamp::from_unix_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn durations_read_back_as_written() {
        for text in ["500ms", "30s", "10m", "4h", "7d", "0s", "1500ms"] {
            assert_eq!(DurationMs::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "10", "m", "1.5h", "-3s", "10 m", "99999999999999999999s", "1w"] {
            assert!(DurationMs::parse(text).is_err(), "{text} was taken");
        }
    }
}

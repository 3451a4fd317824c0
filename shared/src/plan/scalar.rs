//! Lengths of time, sizes and money as a plan writes them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::time::{DurationMs, InvalidTime};

/// A length of time, written `500ms`, `30s`, `10m`, `4h` or `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Length(pub DurationMs);

impl Length {
    /// Reads the written form.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        DurationMs::parse(text).map(Self)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Length {
    type Error = InvalidTime;
    fn try_from(text: String) -> Result<Self, InvalidTime> {
        Self::parse(&text)
    }
}

impl From<Length> for String {
    fn from(length: Length) -> String {
        length.to_string()
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A length of time: a whole number and ms, s, m, h or d, such as `30m`.",
            "pattern": "^[0-9]+(ms|s|m|h|d)$"
        })
    }
}

/// Why a text is not a size or an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidAmount {
    /// Not a size.
    #[error("`{0}` is not a size: write a whole number and B, KiB, MiB or GiB, such as 64MiB")]
    Size(String),
    /// Not an amount of money.
    #[error(
        "`{0}` is not an amount in US dollars: write a number from 0 to 1000000000 with at most six decimals, such as 5.00"
    )]
    Usd(String),
}

const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A number of bytes, written `512B`, `16KiB`, `64MiB` or `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(pub u64);

impl Size {
    /// Reads the written form.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let wrong = || InvalidAmount::Size(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let (_, factor) =
            SIZES.iter().find(|(unit, _)| *unit == &text[digits..]).ok_or_else(wrong)?;
        number.checked_mul(*factor).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = SIZES
            .iter()
            .rev()
            .find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor))
            .unwrap_or(&SIZES[0]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl TryFrom<String> for Size {
    type Error = InvalidAmount;
    fn try_from(text: String) -> Result<Self, InvalidAmount> {
        Self::parse(&text)
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A size: a whole number and B, KiB, MiB or GiB, such as `64MiB`.",
            "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"
        })
    }
}

const MICRO: u64 = 1_000_000;
const USD_MAX: u64 = 1_000_000_000;

/// An amount of US dollars, kept as integer micro-dollars; written `5.00`.
///
/// Serialised as a text, so that no event ever holds a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd {
    /// The amount in millionths of a dollar.
    pub micros: u64,
}

impl Usd {
    /// Reads the written form; NaN, infinity, signs and exponents are not amounts.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let wrong = || InvalidAmount::Usd(text.to_owned());
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let all_digits =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(part) || part.len() > 6 {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
        if whole > USD_MAX {
            return Err(wrong());
        }
        Ok(Self { micros: whole * MICRO + part })
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.micros % MICRO);
        let shown = part.trim_end_matches('0');
        write!(f, "{}.{shown:0<2}", self.micros / MICRO)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UsdVisitor)
    }
}

struct UsdVisitor;

impl de::Visitor<'_> for UsdVisitor {
    type Value = Usd;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount in US dollars, such as 5.00")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Usd, E> {
        Usd::parse(text).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Usd, E> {
        self.visit_str(&whole.to_string())
    }
    fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Usd, E> {
        self.visit_str(&whole.to_string())
    }
    fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Usd, E> {
        // The shortest decimal that reads back as this float is what was written.
        self.visit_str(&amount.to_string())
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "description": "An amount in US dollars with at most six decimals, such as `5.00`.",
            "minimum": 0,
            "maximum": USD_MAX,
            "pattern": "^[0-9]{1,10}([.][0-9]{1,6})?$"
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]
    use super::*;

    #[test]
    fn money_is_exact_to_the_millionth() {
        for (text, micros, shown) in [
            ("5.00", 5_000_000, "5.00"),
            ("5", 5_000_000, "5.00"),
            ("0.1", 100_000, "0.10"),
            ("0.000001", 1, "0.000001"),
            ("1000000000", 1_000_000_000_000_000, "1000000000.00"),
        ] {
            let usd = Usd::parse(text).unwrap();
            assert_eq!((usd.micros, usd.to_string()), (micros, shown.to_owned()));
            assert_eq!(Usd::parse(shown).unwrap(), usd);
        }
    }

    #[test]
    fn money_is_never_a_float_once_it_was_read() {
        let usd: Usd = serde_json::from_str("0.1").unwrap();
        assert_eq!(serde_json::to_string(&usd).unwrap(), "\"0.10\"");
    }

    /// P073: NaN, infinity and negative amounts are refused.
    #[test]
    fn what_is_no_amount_is_refused() {
        for text in
            ["", ".", "-1", "+1", "NaN", "inf", "1e3", "1.", ".5", "1.0000001", "1000000001"]
        {
            assert!(Usd::parse(text).is_err(), "{text} was taken");
        }
    }

    #[test]
    fn sizes_read_back_as_written() {
        for (text, bytes) in
            [("512B", 512), ("16KiB", 16 << 10), ("64MiB", 64 << 20), ("1GiB", 1 << 30)]
        {
            assert_eq!(Size::parse(text).unwrap(), Size(bytes));
            assert_eq!(Size(bytes).to_string(), text);
        }
        for text in ["", "64", "64MB", "MiB", "1.5GiB", "-1B", "99999999999GiB"] {
            assert!(Size::parse(text).is_err(), "{text} was taken");
        }
    }
}

//! Reading one field of a message, so that a refusal names it.
//!
//! For the conversions here, and for services that read a request's own fields: its run, its
//! idempotency key. The message around a field adds its name with `Malformed::within`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use ganger_shared::time::Timestamp;

use crate::malformed::{Malformed, Reason};

/// A domain enum that travels as an enum of the wire.
pub trait Word: Sized {
    /// Reads the number, refusing `unspecified` and what this build does not know.
    fn from_wire(value: i32) -> Result<Self, Reason>;
}

/// A text that must have the form of `T`.
pub fn text<T>(field: &str, text: &str) -> Result<T, Malformed>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error: T::Err| Malformed::new(field, Reason::Form(error.to_string())))
}

/// A text that may be absent.
pub fn optional_text<T>(field: &str, value: Option<&String>) -> Result<Option<T>, Malformed>
where
    T: FromStr,
    T::Err: Display,
{
    value.map(|value| text(field, value)).transpose()
}

/// Texts that each must have the form of `T`.
pub fn each_text<T>(field: &str, values: &[String]) -> Result<Vec<T>, Malformed>
where
    T: FromStr,
    T::Err: Display,
{
    values.iter().enumerate().map(|(at, value)| text(&format!("{field}[{at}]"), value)).collect()
}

/// A text where empty means absent.
pub fn text_or_empty<T>(field: &str, value: &str) -> Result<Option<T>, Malformed>
where
    T: FromStr,
    T::Err: Display,
{
    if value.is_empty() { Ok(None) } else { text(field, value).map(Some) }
}

/// A text that says something, such as a reason.
pub fn said(field: &str, value: String) -> Result<String, Malformed> {
    if value.trim().is_empty() {
        return Err(Malformed::new(field, Reason::Missing));
    }
    Ok(value)
}

/// An enum that must be given.
pub fn word<T: Word>(field: &str, value: i32) -> Result<T, Malformed> {
    T::from_wire(value).map_err(|reason| Malformed::new(field, reason))
}

/// An enum that may be absent.
pub fn optional_word<T: Word>(field: &str, value: Option<i32>) -> Result<Option<T>, Malformed> {
    value.map(|value| word(field, value)).transpose()
}

/// A message that must be there.
pub fn required<W, T>(field: &str, message: Option<W>) -> Result<T, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    present(field, message)?.try_into().map_err(|error: Malformed| error.within(field))
}

/// A message that may be absent.
pub fn optional<W, T>(field: &str, message: Option<W>) -> Result<Option<T>, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    message.map(|message| required(field, Some(message))).transpose()
}

/// Messages that each must be whole.
pub fn each<W, T>(field: &str, messages: Vec<W>) -> Result<Vec<T>, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    messages
        .into_iter()
        .enumerate()
        .map(|(at, message)| {
            message
                .try_into()
                .map_err(|error: Malformed| error.within(format_args!("{field}[{at}]")))
        })
        .collect()
}

/// Messages by name that each must be whole.
pub fn each_by_name<W, T>(
    field: &str,
    messages: BTreeMap<String, W>,
) -> Result<BTreeMap<String, T>, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    messages
        .into_iter()
        .map(|(name, message)| match message.try_into() {
            Ok(value) => Ok((name, value)),
            Err(error) => {
                let error: Malformed = error;
                Err(error.within(format_args!("{field}[{name:?}]")))
            }
        })
        .collect()
}

/// A value that must be there, taken as it is.
pub fn present<W>(field: &str, value: Option<W>) -> Result<W, Malformed> {
    value.ok_or_else(|| Malformed::new(field, Reason::Missing))
}

/// A time that must be there.
pub fn time(field: &str, value: Option<prost_types::Timestamp>) -> Result<Timestamp, Malformed> {
    let prost_types::Timestamp { seconds, nanos } = present(field, value)?;
    u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)
        .and_then(|nanos| seconds.checked_mul(1_000)?.checked_add(i64::from(nanos / 1_000_000)))
        .map(Timestamp::from_unix_ms)
        .ok_or_else(|| {
            Malformed::new(field, Reason::Form(format!("{seconds}s and {nanos}ns is not a time")))
        })
}

/// A time that may be absent.
pub fn optional_time(
    field: &str,
    value: Option<prost_types::Timestamp>,
) -> Result<Option<Timestamp>, Malformed> {
    value.map(|value| time(field, Some(value))).transpose()
}

/// A time as the wire has it.
pub fn to_wire_time(time: Timestamp) -> prost_types::Timestamp {
    let ms = time.unix_ms();
    let nanos = i32::try_from(ms.rem_euclid(1_000) * 1_000_000).expect("below one second");
    prost_types::Timestamp { seconds: ms.div_euclid(1_000), nanos }
}

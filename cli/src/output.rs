//! Standard output and standard error: answers on the one, everything said beside them on the other.
//!
//! Colour only where a person looks and `NO_COLOR` is not set. A closed pipe is an error of its own,
//! because it is no failure. What is said is the commands'.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::Error;

pub mod style;
pub mod table;
pub mod words;

use style::Style;

/// How answers look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON object.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// An object with one key; what is in it keeps its order.
#[derive(Debug)]
pub struct Named<'a, T>(pub &'a str, pub &'a T);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}

/// Where answers go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// How they look.
    pub format: Format,
    /// How text on standard output looks.
    pub style: Style,
    /// Standard error is a terminal: a line may be written over.
    pub terminal: bool,
}

impl Output {
    /// Standard output of this process.
    pub fn of_process(format: Format) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let colour = wanted && io::stdout().is_terminal();
        Self { format, style: Style::new(colour), terminal: io::stderr().is_terminal() }
    }

    /// Writes the one object that is the answer.
    pub fn object<T: Serialize>(self, value: &T) -> Result<(), Error> {
        let text = match self.format {
            Format::Json => serde_json::to_string_pretty(value),
            Format::Jsonl | Format::Table => serde_json::to_string(value),
        };
        line(&text.expect("views have only text keys"))
    }

    /// Writes a list: an object with the list under `name`, a line a row, or the table of `people`.
    pub fn list<T: Serialize>(
        self,
        name: &str,
        rows: &[T],
        people: impl FnOnce(Style) -> String,
    ) -> Result<(), Error> {
        match self.format {
            Format::Json => self.object(&Named(name, &rows)),
            Format::Jsonl => rows.iter().try_for_each(|row| self.object(row)),
            Format::Table => line(people(self.style).trim_end()),
        }
    }

    /// Writes one thing: as JSON, or as `people` puts it.
    pub fn one<T: Serialize>(
        self,
        value: &T,
        people: impl FnOnce(Style) -> String,
    ) -> Result<(), Error> {
        match self.format {
            Format::Json | Format::Jsonl => self.object(value),
            Format::Table => line(people(self.style).trim_end()),
        }
    }
}

/// Writes a line of the answer.
pub fn line(text: &str) -> Result<(), Error> {
    bytes(format!("{text}\n").as_bytes())
}

/// Writes a part of the answer as it is.
pub fn bytes(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Error::ClosedPipe
        } else {
            Error::Output(error)
        }
    })
}

/// Says something beside the answer. Nobody is left to tell when standard error is closed.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says why a command was not carried out.
pub fn complain(error: &Error) {
    let mut lines = error.lines();
    if let Some(first) = lines.first_mut() {
        *first = format!("error: {first}");
    }
    note(&lines.join("\n"));
}

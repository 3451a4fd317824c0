//! What the schema cannot say: the form of ids, lengths and money, and keys people bring from
//! elsewhere.

use std::fmt::Display;
use std::str::FromStr;

use super::walk::shown;
use super::{Length, PortRef, Size, Usd};
use crate::ids::{CheckName, InvalidId, LaneId, PortName, ProjectId, TaskId, UnitId};

/// How a text of one type is checked.
#[derive(Clone, Copy)]
pub struct Form {
    /// Says what is wrong with the text.
    pub check: fn(&str) -> Result<(), String>,
    /// Whether it may stand there as a number.
    pub number_allowed: bool,
}

/// The form of a type, by its name among the schema's definitions.
pub fn of(name: &str) -> Option<Form> {
    let check: fn(&str) -> Result<(), String> = match name {
        // The plan's own name has this form too, so the words must fit both.
        "ProjectId" => {
            |text| id::<ProjectId>(text).map_err(|said| said.replace("a project name", "a name"))
        }
        "UnitId" => id::<UnitId>,
        "TaskId" => id::<TaskId>,
        "LaneId" => id::<LaneId>,
        "CheckName" => id::<CheckName>,
        "PortName" => id::<PortName>,
        "PortRef" => id::<PortRef>,
        "Length" => |text| said(text, Length::parse(text)),
        "Size" => |text| said(text, Size::parse(text)),
        "Usd" => |text| said(text, Usd::parse(text)),
        _ => return None,
    };
    Some(Form { check, number_allowed: name == "Usd" })
}

fn id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<(), String> {
    said(text, T::from_str(text))
}

/// The type's own words about a wrong text, with the text itself fit to be shown.
fn said<T, E: Display>(text: &str, parsed: Result<T, E>) -> Result<(), String> {
    parsed.map(|_| ()).map_err(|error| error.to_string().replace(text, &shown(text)))
}

/// Words other tools use for a key of ours, and where to put what ours has elsewhere.
const ELSEWHERE: [(&str, &str, &str); 14] = [
    ("depends_on", "after", "write `after`"),
    ("dependsOn", "after", "write `after`"),
    ("needs", "after", "write `after`"),
    ("dependencies", "after", "write `after`"),
    ("prompt", "objective", "write `objective`"),
    ("description", "objective", "write `objective`"),
    ("command", "run", "write `run`"),
    ("cmd", "run", "write `run`"),
    ("script", "run", "write `run`"),
    ("steps", "units", "write `units`"),
    ("jobs", "units", "write `units`"),
    ("type", "kind", "write `kind`"),
    ("retries", "retry", "write `retry: { attempts: N }`"),
    // R206: a unit's data contract sits on its ports, not on the agent.
    ("schema", "tier", "put it on a port of the unit: `outputs: [ { port, schema } ]`"),
];

/// What to do about a key that people bring from elsewhere, where ours is known.
pub fn advice(key: &str, known: &[&str]) -> Option<&'static str> {
    ELSEWHERE
        .iter()
        .find(|(theirs, ours, _)| *theirs == key && known.contains(ours))
        .map(|(_, _, advice)| *advice)
}

//! The line of progress: how many units are where, and how long it has taken.

use std::time::Duration;

use ganger_proto::convert::Snapshot;
use ganger_shared::ids::UnitId;
use ganger_shared::time::DurationMs;

use crate::output::words;

/// Units of these states are over well.
const DONE: [&str; 2] = ["accepted", "skipped"];
/// Running units that are named before only their number is.
const NAMED: usize = 4;

/// The line, without its end.
pub fn line(snapshot: &Snapshot, elapsed: Duration) -> String {
    let counts = &snapshot.row.counts;
    let all: u32 = counts.values().sum();
    let done: u32 = DONE.iter().filter_map(|state| counts.get(*state)).sum();
    let mut parts = vec![format!("{done}/{all} units")];
    let others = counts.iter().filter(|(state, _)| !DONE.contains(&state.as_str()));
    let others: Vec<String> = others.map(|(state, count)| format!("{count} {state}")).collect();
    if !others.is_empty() {
        parts.push(others.join(", "));
    }
    if !snapshot.running.is_empty() && snapshot.running.len() <= NAMED {
        let names: Vec<&str> = snapshot.running.iter().map(UnitId::as_str).collect();
        parts.push(names.join(" "));
    }
    parts.push(words::length(DurationMs(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use std::collections::BTreeMap;

    use ganger_shared::ids::{ProjectId, RunId};
    use ganger_shared::time::Timestamp;
    use ganger_shared::view::RunRow;

    use super::*;

    #[test]
    fn it_says_how_many_units_are_where() {
        let counts = [("accepted", 2), ("running", 1), ("pending", 1)];
        let snapshot = Snapshot {
            row: RunRow {
                id: RunId::from_uuid_bytes(&[1; 16]),
                name: "p".into(),
                project: ProjectId::parse("default").unwrap(),
                labels: BTreeMap::new(),
                state: "active".into(),
                reason: None,
                counts: counts.map(|(state, count)| (state.to_owned(), count)).into(),
                submitted_at: Timestamp::from_unix_ms(0),
                ended_at: None,
                sequence: 9,
                trace_id: String::new(),
            },
            running: vec![UnitId::parse("build").unwrap()],
            attention: None,
            blocker: None,
            next_action: None,
            ledger: BTreeMap::new(),
            questions: Vec::new(),
            updated_at: Timestamp::from_unix_ms(0),
        };
        let expected = "2/4 units · 1 pending, 1 running · build · 3.4s";
        assert_eq!(line(&snapshot, Duration::from_millis(3_450)), expected);
    }
}

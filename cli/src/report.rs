//! What is shown of a run: the whole of it for `get run`, and the report at the end of following.
//!
//! Renderings of the views only; nothing is asked for here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ganger_shared::ids::WorkerId;
use ganger_shared::view::{AttemptView, CheckView, RunView, UnitView};

use crate::output::style::Style;
use crate::output::table::{Cell, plain, table};
use crate::output::words;

/// Workers' names by their ids; an unknown one is shown by its id.
pub type Names = BTreeMap<WorkerId, String>;

/// The whole run for people.
pub fn run(run: &RunView, names: &Names, style: Style) -> String {
    let mut text = head(run, style);
    text.push('\n');
    text.push_str(&units(&run.units, names, style));
    for unit in &run.units {
        text.push_str(&trouble(unit, style));
    }
    text.push('\n');
    text.push_str(&foot(run));
    text
}

/// A word with its reason in brackets.
fn with_reason(state: &str, reason: Option<&String>, style: Style) -> String {
    let state = style.state(state);
    reason.map_or_else(|| state.clone(), |reason| format!("{state} ({})", plain(reason)))
}

fn head(run: &RunView, style: Style) -> String {
    let row = &run.row;
    let state = with_reason(&row.state, row.reason.as_ref(), style);
    let mut text = format!("{}  {}  {state}\n", row.id, row.name);
    // The user's own words, line by line, never a paraphrase.
    for line in run.goal.lines() {
        let _ = writeln!(text, "{}", style.faint(&plain(line)));
    }
    text
}

/// The units as a table.
pub fn units(units: &[UnitView], names: &Names, style: Style) -> String {
    let head = ["unit", "state", "integration", "attempts", "worker", "checks", "time"];
    let rows: Vec<Vec<Cell>> = units.iter().map(|unit| unit_row(unit, names)).collect();
    table(&head, &rows, style)
}

fn unit_row(unit: &UnitView, names: &Names) -> Vec<Cell> {
    let mut workers: Vec<String> =
        unit.attempts.iter().map(|attempt| worker(attempt, names)).collect();
    workers.dedup();
    let workers = if workers.is_empty() { "-".to_owned() } else { workers.join(",") };
    vec![
        Cell::text(&unit.id),
        Cell::state(&unit.state),
        Cell::maybe(unit.integration.as_ref()),
        Cell::text(unit.attempts.len()),
        Cell::text(workers),
        Cell::text(
            unit.attempts.last().map_or_else(|| "-".to_owned(), |last| passed(&last.checks)),
        ),
        Cell::text(unit.attempts.last().map_or_else(|| "-".to_owned(), time)),
    ]
}

fn worker(attempt: &AttemptView, names: &Names) -> String {
    names.get(&attempt.worker).cloned().unwrap_or_else(|| attempt.worker.to_string())
}

/// How many of the checks pass.
fn passed(checks: &[CheckView]) -> String {
    if checks.is_empty() {
        return "-".to_owned();
    }
    let pass = checks.iter().filter(|check| check.state == "pass").count();
    format!("{pass}/{}", checks.len())
}

fn time(attempt: &AttemptView) -> String {
    attempt.active_ms.map_or_else(|| "-".to_owned(), words::length)
}

/// Why a unit is not where it should be, with the end of what its programs printed.
fn trouble(unit: &UnitView, style: Style) -> String {
    let mut text = String::new();
    let mut told = |what: &str| {
        let _ = writeln!(text, "{}: {}", unit.id, plain(what));
    };
    if let Some(reason) = &unit.reason {
        told(&format!("{} ({reason})", unit.state));
    }
    if let Some(conflict) = &unit.conflict {
        let conflict = serde_json::to_string(conflict).unwrap_or_default();
        told(&format!("does not fit onto the branch: {conflict}"));
    }
    if let Some(waiting) = &unit.waiting_for {
        told(waiting);
    }
    for check in unit.attempts.last().iter().flat_map(|last| &last.checks) {
        text.push_str(&failed_check(check, style));
    }
    text
}

fn failed_check(check: &CheckView, style: Style) -> String {
    let Some(result) = check.result.as_ref().filter(|_| check.state != "pass") else {
        return String::new();
    };
    let message = result.message.as_deref().unwrap_or_default();
    let mut text = format!("{}: {} {}", check.id, style.state(&check.state), plain(message));
    text.truncate(text.trim_end().len());
    text.push('\n');
    for line in result.evidence.iter().flat_map(|evidence| evidence.log_tail.lines()) {
        let _ = writeln!(text, "    {}", style.faint(&plain(line)));
    }
    text
}

fn foot(run: &RunView) -> String {
    let mut text = String::new();
    let mut told = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    let attempts: usize = run.units.iter().map(|unit| unit.attempts.len()).sum();
    told("units", run.units.len().to_string());
    told("attempts", attempts.to_string());
    if let Some(ended) = run.row.ended_at {
        told("took", words::length(ended.since(run.row.submitted_at)));
    }
    if let Some(repository) = &run.repository {
        told("repository", plain(repository));
    }
    if let (Some(branch), Some(tip)) = (&run.branch, &run.tip) {
        told("branch", format!("{branch} at {}", words::short(tip.as_str())));
    }
    told("trace", run.row.trace_id.clone());
    text
}

/// The attempts as a table.
pub fn attempts<'a>(
    attempts: impl Iterator<Item = &'a AttemptView>,
    names: &Names,
    style: Style,
) -> String {
    let head = ["attempt", "state", "epoch", "worker", "checks", "time", "said"];
    let rows: Vec<Vec<Cell>> = attempts
        .map(|attempt| {
            vec![
                Cell::text(&attempt.id),
                Cell::state(&attempt.state),
                Cell::text(attempt.epoch),
                Cell::text(worker(attempt, names)),
                Cell::text(passed(&attempt.checks)),
                Cell::text(time(attempt)),
                Cell::text(said(attempt)),
            ]
        })
        .collect();
    table(&head, &rows, style)
}

/// The first line of what an attempt says of itself.
fn said(attempt: &AttemptView) -> String {
    let text = match (&attempt.failure, &attempt.delivery) {
        (Some(failure), _) => format!("{}: {}", failure.class, failure.message),
        (None, Some(delivery)) => delivery.summary.clone(),
        (None, None) => String::new(),
    };
    ganger_shared::text::cut_bytes(text.lines().next().unwrap_or_default().to_owned(), 80)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::digest::{ArtifactRef, Digest};
    use ganger_shared::ids::{ProjectId, RunId, UnitId};
    use ganger_shared::time::Timestamp;
    use ganger_shared::view::RunRow;

    use super::*;

    fn unit(state: &str, reason: Option<&str>) -> UnitView {
        UnitView {
            id: UnitId::parse("build").unwrap(),
            task: None,
            kind: "command".into(),
            after: Vec::new(),
            state: state.into(),
            reason: reason.map(str::to_owned),
            integration: None,
            conflict: None,
            commit: None,
            gate: None,
            waiting_for: None,
            sequence: 1,
            losses: 0,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn a_unit_without_an_attempt_is_a_row_of_dashes() {
        let text = units(&[unit("pending", None)], &Names::new(), Style::new(false));
        let expected = "UNIT   STATE    INTEGRATION  ATTEMPTS  WORKER  CHECKS  TIME\n\
                        build  pending  -            0         -       -       -\n";
        assert_eq!(text, expected);
    }

    fn view(goal: &str) -> RunView {
        let digest = Digest::of(b"plan");
        RunView {
            row: RunRow {
                id: RunId::from_uuid_bytes(&[1; 16]),
                name: "p".into(),
                project: ProjectId::parse("default").unwrap(),
                labels: BTreeMap::new(),
                state: "held".into(),
                reason: Some("gate".into()),
                counts: BTreeMap::new(),
                submitted_at: Timestamp::from_unix_ms(0),
                ended_at: None,
                sequence: 9,
                trace_id: "7374008a02340be3dcbda36d582da49f".into(),
            },
            goal: goal.into(),
            contract_hash: digest,
            plan: ArtifactRef { sha256: digest, bytes: 4 },
            revision: 1,
            repository: None,
            repository_id: None,
            base: None,
            branch: None,
            tip: None,
            delivery: "hold".into(),
            ledger: BTreeMap::new(),
            units: vec![unit("pending", None)],
            final_checks: Vec::new(),
        }
    }

    /// R204: the goal stands in the report as the user wrote it. R200: the run's whole id does, too.
    #[test]
    fn the_goal_is_told_word_for_word() {
        let goal = "Make it \"fast\",\n  and keep it – right?";
        let text = run(&view(goal), &Names::new(), Style::new(false));
        assert!(text.contains(goal), "{text}");
        assert!(text.starts_with("r-aeaqcaibaeaqcaibaeaqcaibae  p  held (gate)\n"), "{text}");
        assert!(text.ends_with("trace       7374008a02340be3dcbda36d582da49f\n"), "{text}");
    }

    #[test]
    fn a_reason_is_told_without_its_control_characters() {
        let text = trouble(&unit("failed", Some("cli_crash: \u{1b}[31m")), Style::new(true));
        assert_eq!(text, "build: failed (cli_crash: \\u{1b}[31m)\n");
    }
}

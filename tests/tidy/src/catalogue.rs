//! The table of `docs/features.md` against the tests: nothing is called working that no test names,
//! and no test names what the table does not have. Whether a test proves it is for people to judge.

use std::collections::{BTreeMap, BTreeSet};

use crate::offence::Offence;
use crate::tests_named::{Claim, by_id, is_id};

const PATH: &str = "docs/features.md";
/// The features; the pain cases have gaps in their numbers, the features have none.
const LAST_FEATURE: usize = 244;
const WHAT_CHARS_MAX: usize = 90;

/// How far a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing of it is built.
    NotYet,
    /// A part of it is proven.
    Partly,
    /// All of it is proven on the real path.
    Working,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its line in the page.
    pub line: usize,
    /// Its number.
    pub id: String,
    /// What it says, in a line.
    pub what: String,
    /// How far it is.
    pub status: Status,
    /// The tests it names.
    pub proof: Vec<String>,
}

/// Reads every row `| id | what | status | proof |`; lines of that look which cannot be read are
/// offences.
pub fn read(text: &str) -> (Vec<Row>, Vec<Offence>) {
    let mut rows = Vec::new();
    let mut offences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if !cells.get(1).is_some_and(|id| is_id(id)) {
            continue;
        }
        match row(at + 1, &cells) {
            Ok(row) => rows.push(row),
            Err(what) => offences.push(Offence::at(
                PATH,
                at + 1,
                what,
                "write `| id | what | not yet, partly or working | tests |`",
            )),
        }
    }
    (rows, offences)
}

fn row(line: usize, cells: &[&str]) -> Result<Row, String> {
    let &["", id, what, status, proof, ""] = cells else {
        return Err(format!("{} cells, 4 expected", cells.len().saturating_sub(2)));
    };
    let status = match status {
        "not yet" => Status::NotYet,
        "partly" => Status::Partly,
        "working" => Status::Working,
        other => return Err(format!("unknown status `{other}`")),
    };
    let length = what.chars().count();
    if length == 0 || length > WHAT_CHARS_MAX {
        return Err(format!("says it in {length} characters, 1 to {WHAT_CHARS_MAX} allowed"));
    }
    let proof = proof.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Ok(Row { line, id: id.to_owned(), what: what.to_owned(), status, proof })
}

/// Features that have no row, and numbers that have two.
pub fn incomplete(rows: &[Row]) -> Vec<Offence> {
    let mut seen = BTreeSet::new();
    let twice = rows
        .iter()
        .filter(|row| !seen.insert(row.id.as_str()))
        .map(|row| Offence::at(PATH, row.line, format!("{} has two rows", row.id), "keep one"));
    let mut offences: Vec<Offence> = twice.collect();
    offences.extend(
        (1..=LAST_FEATURE)
            .map(|number| format!("R{number:03}"))
            .filter(|id| !seen.contains(id.as_str()))
            .map(|id| {
                Offence::at(
                    PATH,
                    0,
                    format!("{id} has no row"),
                    "every feature has a row, built or not",
                )
            }),
    );
    offences
}

/// Numbers that a test names and no row has.
pub fn unknown(rows: &[Row], claims: &[Claim]) -> Vec<Offence> {
    let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    claims
        .iter()
        .filter(|claim| !known.contains(claim.id.as_str()))
        .map(|claim| {
            let what = format!("{} is in no row of {PATH}", claim.id);
            Offence::at(&claim.path, claim.line, what, "correct the number, or add the row")
        })
        .collect()
}

/// Rows that are called working, or partly so, without naming a test that names them back.
pub fn unproven(rows: &[Row], claims: &[Claim]) -> Vec<Offence> {
    let tests = by_id(claims);
    rows.iter()
        .filter(|row| row.status != Status::NotYet)
        .flat_map(|row| faults(row, &tests))
        .collect()
}

fn faults(row: &Row, tests: &BTreeMap<&str, Vec<&str>>) -> Vec<Offence> {
    let named = tests.get(row.id.as_str()).cloned().unwrap_or_default();
    if named.is_empty() {
        let what = format!("{} is not proven: no test names it", row.id);
        return vec![Offence::at(PATH, row.line, what, "write the test, or say `not yet`")];
    }
    if row.proof.is_empty() {
        let what = format!("{} shows no proof; its tests are `{}`", row.id, named.join("`, `"));
        return vec![Offence::at(PATH, row.line, what, "put them into the last cell")];
    }
    row.proof
        .iter()
        .filter(|test| !named.contains(&test.as_str()))
        .map(|test| {
            let what = format!("{} shows `{test}`, which does not name it", row.id);
            Offence::at(
                PATH,
                row.line,
                what,
                "name the number in the test's doc, or show another test",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(id: &str, test: &str) -> Claim {
        Claim { id: id.into(), path: "tests/e2e/a.rs".into(), line: 3, test: Some(test.into()) }
    }

    fn whats(offences: Vec<Offence>) -> String {
        offences.into_iter().map(|offence| offence.what).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn rows_are_read_and_what_is_no_row_is_passed_over() {
        let text = "# Features\n\n| id | what | status | proof |\n|---|---|---|---|\n| R001 | a plan | working | `a`, `b` |\n";
        let (rows, offences) = read(text);
        let row = Row {
            line: 5,
            id: "R001".into(),
            what: "a plan".into(),
            status: Status::Working,
            proof: vec!["a".into(), "b".into()],
        };
        assert_eq!((rows, offences), (vec![row], vec![]));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_named() {
        let table = [
            ("| R001 | a | done | |", "unknown status `done`".to_owned()),
            ("| R001 | a | working |", "3 cells, 4 expected".to_owned()),
            ("| R001 |  | not yet | |", "says it in 0 characters, 1 to 90 allowed".to_owned()),
        ];
        for (text, expected) in table {
            assert_eq!(whats(read(text).1), expected);
        }
    }

    #[test]
    fn every_feature_has_exactly_one_row() {
        let row = |number| format!("| R{number:03} | a | not yet | |");
        let all = (1..=LAST_FEATURE).map(row).collect::<Vec<_>>().join("\n");
        assert_eq!(incomplete(&read(&all).0), []);
        let without = all.replace("| R017 ", "| R016 ");
        assert_eq!(whats(incomplete(&read(&without).0)), "R016 has two rows;R017 has no row");
    }

    #[test]
    fn a_test_names_only_numbers_that_exist() {
        let rows = read("| R001 | a | not yet | |").0;
        assert_eq!(unknown(&rows, &[claim("R001", "a")]), []);
        let found = unknown(&rows, &[claim("R999", "a")]);
        assert_eq!(
            found[0].to_string(),
            "tests/e2e/a.rs:3: R999 is in no row of docs/features.md (correct the number, or add the row)"
        );
    }

    #[test]
    fn what_works_is_shown_by_tests_that_say_so() {
        let table = [
            ("| R001 | a | working | `a` |", ""),
            ("| R001 | a | partly | `a` |", ""),
            ("| R002 | a | not yet | |", ""),
            ("| R002 | a | working | `a` |", "R002 is not proven: no test names it"),
            ("| R001 | a | working | |", "R001 shows no proof; its tests are `a`"),
            ("| R001 | a | working | `b` |", "R001 shows `b`, which does not name it"),
        ];
        for (text, expected) in table {
            assert_eq!(whats(unproven(&read(text).0, &[claim("R001", "a")])), expected, "{text}");
        }
    }
}

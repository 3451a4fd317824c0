//! What authors are told: given a plan, then all of these problems, whole and in order.

#![allow(clippy::unwrap_used, reason = "a plan that is refused is the failed test")]

use std::collections::BTreeMap;

use ganger_shared::digest::ArtifactRef;
use ganger_shared::limits::Limits;
use ganger_shared::problem::Problem;

use super::*;

mod format;
mod graphs;
mod proof;
mod sizes;

/// A plan without a tree: nothing in it needs evidence or files.
const HEAD: &str = "version: 1\nname: p\nmode: autonomous\n";

/// A plan over a repository.
const TREE: &str = "version: 1\nname: p\nmode: autonomous\nrepository: { url: . }\n";

fn checked(text: &str) -> Result<Checked, Vec<Problem>> {
    checked_with(text, None, &[])
}

fn checked_with(
    text: &str,
    agents: Option<&[&str]>,
    files: &[&str],
) -> Result<Checked, Vec<Problem>> {
    let attachments: BTreeMap<String, ArtifactRef> =
        files.iter().map(|file| ((*file).to_owned(), ArtifactRef::of(b"{}"))).collect();
    let agents: Option<Vec<String>> =
        agents.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let context = Context {
        agents: agents.as_deref(),
        limits: &Limits::default(),
        attachments: &attachments,
    };
    check_text(text, &context)
}

/// Code, line and column, path, severity, message and fix of every problem or warning.
fn lines(answer: &Result<Checked, Vec<Problem>>) -> Vec<String> {
    let problems = match answer {
        Ok(checked) => &checked.warnings,
        Err(problems) => problems,
    };
    problems.iter().map(|problem| format!("{} {problem}", problem.code)).collect()
}

fn said(text: &str) -> Vec<String> {
    lines(&checked(text))
}

/// Units that only run `make`, with these further keys.
fn units(head: &str, units: &[(&str, &str)]) -> String {
    many(head, units.iter().map(|(id, keys)| format!("id: {id}, kind: command, run: make{keys}")))
}

/// A plan of units with exactly these keys.
fn many(head: &str, units: impl Iterator<Item = String>) -> String {
    let rows: Vec<String> = units.map(|keys| format!("- {{ {keys} }}\n")).collect();
    format!("{head}units:\n{}", rows.concat())
}

/// R001, R002: every fault of a plan comes in one answer, in the order of the text.
#[test]
fn all_problems_come_together() {
    let text = "version: 1
name: p
mode: autonomous
modes: x
repository: { url: . }
tasks: [ { id: one }, { id: one, after: [tow] } ]
units:
  - { id: a, kind: command, run: make, task: two, after: [b, c], files: [ /etc/x ] }
  - { id: b, kind: command, run: make, after: [a], files: [], env: [ GANGER_TOKEN ] }
  - { id: b, kind: command, run: make, files: [ x ], checks: [ { name: c, run: 'make || true' } ] }
  - { id: d, kind: agent, objective: o, agent: { name: scripted, script: s }, gate: { reviews: [b] } }
";
    assert_eq!(
        said(text),
        [
            "unknown_key 4:1 modes: unknown key `modes`; did you mean `mode`?",
            "duplicate 6:29 tasks[1].id: task `one` is there already, at tasks[0].id; rename one of them",
            "unknown_name 6:42 tasks[1].after[0]: no task is called `tow`",
            "no_evidence 8:5 units[0].checks: unit `a` would be accepted without evidence: it has no required check that can fail; add one, write `accept: judge`, or `files: []` if it changes nothing",
            "unknown_name 8:46 units[0].task: no task is called `two`",
            "cycle 8:59 units[0].after[0]: each waits for the one before it: a -> b -> a; remove one of these dependencies",
            "unknown_name 8:62 units[0].after[1]: no unit is called `c`; did you mean `a`?",
            "bad_value 8:75 units[0].files[0]: file pattern `/etc/x` is absolute: write it relative to the repository",
            "bad_value 9:70 units[1].env[0]: `GANGER_TOKEN` is set by the worker itself; remove it",
            "duplicate 10:11 units[2].id: unit `b` is there already, at units[1].id; rename one of them",
            "no_evidence 10:54 units[2].checks: unit `b` would be accepted without evidence: it has no required check that can fail; add one, write `accept: judge`, or `files: []` if it changes nothing",
            "cannot_fail 10:80 units[2].checks[0].run: check c cannot fail: `|| true` turns every failure into a success; let its exit code say whether it passed",
            "no_evidence 11:5 units[3].checks: unit `d` would be accepted without evidence: it has no required check that can fail; add one, write `accept: judge`, or `files: []` if it changes nothing",
            "advice 11:5 units[3].files: warning: unit `d` may write every file, so it never runs beside others; say which with `files: [ … ]`",
            "unknown_name 11:74 units[3].agent.script: file `s` did not come with the plan; write a path relative to the plan file, and see that the file is there",
            "not_supported_yet 11:79 units[3].gate: gates over judgements: not built yet; remove it",
            "conflict 11:97 units[3].gate.reviews[0]: unit `b` is of kind command, and one of kind review is wanted here",
        ]
    );
}

#[test]
fn a_plan_that_is_fine_is_resolved() {
    let text = "version: 1\nname: p\nmode: autonomous\nrepository: { url: . }\ntasks: [ { id: one }, { id: two, after: [one] } ]\nunits:\n- { id: a, task: one, kind: command, run: make, files: [ src ], checks: [ { name: c, run: make test } ] }\n- { id: b, task: two, kind: command, run: make, files: [], retry: {} }\ndelivery: { mode: branch }";
    let checked = checked(text).unwrap();
    assert_eq!(checked.warnings, []);
    assert_eq!(checked.units, checked.plan.resolved_units().units);
    assert_eq!(checked.units[1].after, [checked.units[0].id.clone()]);
    assert_eq!((checked.units[0].retry.clone(), checked.units[1].attempts_max()), (None, 3));
    assert_eq!(checked.tasks, checked.plan.tasks);
}

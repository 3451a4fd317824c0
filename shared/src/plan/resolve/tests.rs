//! Defaults, groupings as dependencies, and what is said about both.

#![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]

use super::*;
use crate::limits::Limits;
use crate::plan::{Agent, Check, Effects, OnDisconnect, read};

fn resolved_of(text: &str) -> Resolved {
    read(text, &Limits::default()).unwrap().0.resolved_units()
}

fn said(resolved: &Resolved) -> Vec<String> {
    resolved.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_unit_takes_the_defaults_it_does_not_override() {
    let text = "version: 1\nname: p\nmode: autonomous\ndefaults: { agent: { name: scripted, script: s }, timeout: 5m, retry: { attempts: 2, delay: 1s } }\nunits:\n- { id: a, kind: agent, objective: o, silence: 1m, retry: { attempts: 7 }, checks: [ { name: c, run: make } ] }";
    let unit = resolved_of(text).units.remove(0);
    assert_eq!(unit.agent, Some(Agent { script: Some("s".into()), ..Agent::named("scripted") }));
    assert_eq!(
        (unit.timeout(), unit.silence()),
        (DurationMs::from_mins(5), DurationMs::from_mins(1))
    );
    assert_eq!((unit.attempts_max(), unit.retry_delay()), (7, DurationMs::from_secs(1)));
    assert_eq!(unit.accept, Some(Accept::Auto));
    assert_eq!(unit.on_disconnect, Some(OnDisconnect::Continue));
    assert_eq!(unit.effects, Some(Effects::Contained));
    assert_eq!(unit.files(), ["**"]);
    let Check { timeout, required, expect_exit, .. } = &unit.checks[0];
    assert_eq!(*timeout, Some(Length(limits::CHECK_TIMEOUT)));
    assert_eq!((*required, *expect_exit), (Some(true), Some(0)));
}

#[test]
fn what_nobody_says_has_the_house_limits() {
    let unit = resolved_of("version: 1\nname: p\nunits: [ { id: a, kind: command, run: make } ]")
        .units
        .remove(0);
    assert_eq!(
        (unit.timeout(), unit.silence()),
        (DurationMs::from_mins(30), DurationMs::from_mins(10))
    );
    assert_eq!((unit.retry.as_ref(), unit.attempts_max()), (None, 1));
    assert_eq!(unit.accept, Some(Accept::Judge));
    assert_eq!(unit.agent, None);
}

/// R066: where a retry is declared, three attempts, five seconds apart, unless it says otherwise.
#[test]
fn a_declared_retry_has_the_house_limits() {
    let text = "version: 1\nname: p\ndefaults: { retry: {} }\nunits: [ { id: a, kind: command, run: make } ]";
    let unit = resolved_of(text).units.remove(0);
    assert_eq!((unit.attempts_max(), unit.retry_delay()), (3, DurationMs::from_secs(5)));
}

/// R022, R023: a task's units come after every unit of the tasks before it, through empty tasks too.
#[test]
fn the_order_of_tasks_becomes_dependencies() {
    let text = "version: 1\nname: p\ntasks: [ { id: one }, { id: empty, after: [one] }, { id: two, after: [empty, one] } ]\nunits:\n- { id: a, kind: command, run: make, task: one }\n- { id: b, kind: command, run: make, task: one, after: [a] }\n- { id: c, kind: command, run: make, task: two, after: [b] }\n- { id: d, kind: command, run: make }";
    let after: Vec<Vec<String>> = resolved_of(text)
        .units
        .iter()
        .map(|unit| unit.after.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(after, [vec![], vec!["a"], vec!["b", "a"], vec![]]);
}

#[test]
fn tasks_in_a_circle_are_left_to_the_checker() {
    let text = "version: 1\nname: p\ntasks: [ { id: one, after: [two] }, { id: two, after: [one, nowhere] } ]\nunits: [ { id: a, kind: command, run: make, task: one } ]";
    assert_eq!(resolved_of(text).units[0].after, []);
}

#[test]
fn files_left_open_in_a_repository_are_warned_of() {
    let text = "version: 1\nname: p\nrepository: { url: . }\nunits: [ { id: a, kind: command, run: make } ]";
    let resolved = resolved_of(text);
    assert_eq!(
        said(&resolved),
        [
            "units[0].files: warning: unit `a` may write every file, so it never runs beside others; say which with `files: [ … ]`"
        ]
    );
    let without = text.replace("repository: { url: . }\n", "");
    assert_eq!(said(&resolved_of(&without)), Vec::<String>::new());
}

#[test]
fn an_agent_may_not_take_longer_than_its_cap() {
    let text = "version: 1\nname: p\ndefaults: { timeout: 3h }\nunits:\n- { id: a, kind: agent, objective: o, agent: claude }\n- { id: b, kind: command, run: make }\n- { id: c, kind: agent, objective: o, agent: claude, timeout: 1d }";
    assert_eq!(
        said(&resolved_of(text)),
        [
            "defaults.timeout: 3h is more than an agent may take (2h); write `2h`",
            "units[2].timeout: 1d is more than an agent may take (2h); write `2h`",
        ]
    );
}

/// R005: one unit must fit an event.
#[test]
fn a_unit_too_large_for_an_event_is_refused() {
    let text = format!(
        "version: 1\nname: p\nunits: [ {{ id: a, kind: command, run: make, objective: {} }} ]",
        "x".repeat(25 << 10)
    );
    let resolved = resolved_of(&text);
    assert_eq!(resolved.problems[0].code, Code::Limit);
    assert!(resolved.problems[0].to_string().contains("24576 are allowed"));
}

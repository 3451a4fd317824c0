//! Rule: free texts have the form that those who use them need: environment names, labels, and
//! words that say something at all (R206).

use std::collections::BTreeMap;

use ganger_shared::plan::{Kind, path};
use ganger_shared::problem::{Code, Problem};

use super::sites::{self, Site};
use super::{Draft, shown};

/// The environment names that are the house's own: a plan must not forge what they say.
const OURS: &str = "GANGER_";

/// Longest key and value of a label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Every text that has not the form it needs.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    let mut found = labels("labels", &plan.labels);
    found.extend(blank("goal", plan.goal.as_deref()));
    for site in sites::all(plan) {
        found.extend(of_unit(&site));
    }
    found
}

fn of_unit(site: &Site<'_>) -> Vec<Problem> {
    let unit = site.unit;
    let mut found = Vec::new();
    for (key, names) in [("env", &unit.env), ("secrets", &unit.secrets)] {
        for (nth, name) in names.iter().enumerate() {
            found.extend(environment(site.item(key, nth), name));
        }
    }
    if let Some(requires) = &unit.requires {
        found.extend(labels(&path::key(&site.key("requires"), "labels"), &requires.labels));
    }
    found.extend(blank(&site.key("objective"), unit.objective.as_deref()));
    if unit.kind == Kind::Command {
        found.extend(blank(&site.key("run"), unit.run.as_deref()));
    }
    found
}

fn environment(place: String, name: &str) -> Option<Problem> {
    let mut bytes = name.bytes();
    let first = matches!(bytes.next(), Some(b'A'..=b'Z' | b'_'));
    if !first || !bytes.all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_')) {
        let message = format!(
            "`{}` is not a name of an environment variable: A-Z, 0-9 and `_`, not beginning with a digit",
            shown(name)
        );
        let fix =
            if name.contains('=') { "write only the name; its value is the worker's" } else { "" };
        return Some(Problem::error(Code::BadValue, place, message).with_fix(fix));
    }
    name.starts_with(OURS).then(|| {
        let message = format!("`{}` is set by the worker itself", shown(name));
        Problem::error(Code::BadValue, place, message).with_fix("remove it")
    })
}

fn labels(at: &str, labels: &BTreeMap<String, String>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (key, value) in labels {
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        if key.is_empty() || key.len() > LABEL_BYTES_MAX || !key.bytes().all(plain) {
            let message = format!(
                "`{}` is not a label: 1 to {LABEL_BYTES_MAX} of letters, digits, `-`, `_`, `.` and `/`",
                shown(key)
            );
            found.push(Problem::error(Code::BadValue, path::key(at, key), message));
        }
        if value.len() > LABEL_BYTES_MAX || value.chars().any(char::is_control) {
            let message = format!(
                "`{}` is not a label's value: up to {LABEL_BYTES_MAX} bytes without control characters",
                shown(value)
            );
            found.push(Problem::error(Code::BadValue, path::key(at, key), message));
        }
    }
    found
}

fn blank(place: &str, text: Option<&str>) -> Option<Problem> {
    text.filter(|text| text.trim().is_empty())
        .map(|_| Problem::error(Code::BadValue, place, "there is nothing in it"))
}

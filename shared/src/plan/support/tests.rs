//! What is refused as not built, and that nothing that is built is.

#![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]

use super::*;
use crate::limits::Limits;
use crate::plan::{read, schema, schema_view};

fn refused(text: &str) -> Vec<String> {
    let plan = read(text, &Limits::default()).unwrap().0;
    let mut paths: Vec<String> =
        unsupported(&plan).into_iter().map(|problem| problem.path).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn a_plan_of_what_is_built_is_not_refused() {
    assert_eq!(refused(include_str!("../../../tests/plans/scripted.yaml")), Vec::<String>::new());
    assert_eq!(refused(include_str!("../../../tests/plans/supported.json")), Vec::<String>::new());
}

#[test]
fn the_default_mode_is_refused_with_the_way_out() {
    let plan = read(
        "version: 1\nname: p\nunits: [ { id: a, kind: command, run: make } ]",
        &Limits::default(),
    );
    let problems = unsupported(&plan.unwrap().0);
    assert_eq!(
        problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "mode: mode `supervised` is the default, and judgement by a person or another agent is not built yet; write `mode: autonomous`"
        ]
    );
    assert_eq!(problems[0].code, Code::NotSupportedYet);
}

#[test]
fn every_row_refuses_what_it_names() {
    let paths = refused(include_str!("../../../tests/plans/whole.yaml"));
    for row in ROWS {
        let used = paths.iter().any(|path| {
            let pattern: String = path.replace(|c: char| c.is_ascii_digit(), "");
            pattern == row.key
        });
        assert!(used, "nothing in whole.yaml is refused for `{}`: {paths:?}", row.key);
    }
    assert!(paths.contains(&"units[4].kind".to_owned()));
}

/// A row for a key that is not in the schema would refuse nothing, and nobody would notice.
#[test]
fn every_row_names_a_key_of_the_schema() {
    let schema = schema();
    for row in ROWS {
        let mut at = &schema;
        for key in row.key.split('.') {
            let (key, every) = key.strip_suffix("[]").map_or((key, false), |key| (key, true));
            let (resolved, _) = schema_view::resolve(&schema, at);
            let direct = schema_view::property(resolved, key);
            let inside = || {
                let variants = schema_view::variants(&schema, resolved)?;
                variants.objects.into_iter().find_map(|form| schema_view::property(form, key))
            };
            at = direct.or_else(inside).unwrap_or_else(|| panic!("no `{key}` of `{}`", row.key));
            at = if every { &at["items"] } else { at };
        }
    }
}

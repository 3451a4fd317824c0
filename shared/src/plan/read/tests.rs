//! What a plan's author is told, and what is taken.

#![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::plan::{Agent, Tier, Usd};
use crate::problem::Severity;

const DESIGN: &str = include_str!("../../../tests/plans/design.yaml");
const WHOLE: &str = include_str!("../../../tests/plans/whole.yaml");
const SCRIPTED: &str = include_str!("../../../tests/plans/scripted.yaml");
const BROKEN: &str = include_str!("../../../tests/plans/broken.yaml");
const JSON: &str = include_str!("../../../tests/plans/supported.json");

fn said(text: &str) -> Vec<String> {
    let problems = read(text, &Limits::default()).map(|_| ()).unwrap_err();
    problems.iter().map(Problem::to_string).collect()
}

fn taken(text: &str) -> PlanFile {
    read(text, &Limits::default()).unwrap().0
}

/// A plan of one unit with `extra` as further lines of the unit.
fn with_unit_lines(extra: &str) -> String {
    format!("version: 1\nname: p\nunits:\n  - id: a\n    kind: command\n    run: make\n{extra}")
}

#[test]
fn the_plan_of_the_design_is_read() {
    let plan = taken(DESIGN);
    assert_eq!(plan.budgets.tokens, Some(2_000_000));
    assert_eq!(plan.budgets.usd, Some(Usd { micros: 5_000_000 }));
    assert_eq!(plan.units[1].agent, Some(Agent { tier: Some(Tier::Top), ..Agent::named("codex") }));
}

/// R001: the whole plan survives being written and read again, as YAML and as JSON.
#[test]
fn a_plan_reads_back_as_written() {
    for text in [DESIGN, WHOLE, SCRIPTED, JSON] {
        let plan = taken(text);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PlanFile>(&json).unwrap(), plan);
        assert_eq!(taken(&json), plan);
        let yaml = serde_saphyr::to_string(&plan).unwrap();
        assert_eq!(taken(&yaml), plan, "{yaml}");
    }
}

/// R002, R003: everything wrong is said in one answer, with line, column and the way out.
#[test]
fn all_problems_come_together_with_line_and_column() {
    assert_eq!(
        said(BROKEN),
        [
            "2:7 name: `Broken` is not a name: 1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit",
            "3:1 modes: unknown key `modes`; did you mean `mode`?",
            "6:11 units[0].kind: `agnet` is none of agent, command, write, review, verify, gate, question, loop, fork, join; did you mean `agent`?",
            "7:16 units[0].objective: wants a text, found a number; write \"5\"",
            "8:5 units[0].agnet: unknown key `agnet`; did you mean `agent`?",
            "9:14 units[0].timeout: `30` is not a duration: write a whole number and a unit, such as 500ms, 30s, 10m, 4h or 7d",
            "11:9 units[0].checks[0].run: key `run` is missing; add `run`: The command, given to `/bin/sh -c` at the top of the tree",
            "11:24 units[0].checks[0].requird: unknown key `requird`; did you mean `required`?",
            "11:48 units[0].checks[0].required: wants true or false, found `yes`; write `true`",
            "11:66 units[0].checks[0].expect_exit: 300 is not within 0 to 255",
            "13:5 units[1].id: key `id` is there twice; remove one of them",
            "15:12 units[1].after: wants a list, found a text; write [first]",
            "16:24 units[1].retry.attempts: wants a whole number, found a text; write it without quotes",
            "17:10 units[1].env: wants a list, found a map",
            "18:23 repository.seed: `seed` does not go with `base`, `url`; keep one of them",
            "19:17 budgets.usd: `.nan` is not an amount in US dollars: write a number from 0 to 1000000000 with at most six decimals, such as 5.00",
            "19:30 budgets.units: -1 is not within 0 to 4294967295",
            "19:42 budgets.active: `4 hours` is not a duration: write a whole number and a unit, such as 500ms, 30s, 10m, 4h or 7d"
        ]
    );
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    assert_eq!(
        said(&with_unit_lines("    agnet: claude\n")),
        ["7:5 units[0].agnet: unknown key `agnet`; did you mean `agent`?"]
    );
    assert_eq!(
        said(&with_unit_lines("    depends_on: []\n")),
        ["7:5 units[0].depends_on: unknown key `depends_on`; write `after`"]
    );
}

/// R206: a schema on the agent is refused, pointing at ports.
#[test]
fn a_schema_on_the_agent_points_at_ports() {
    let text = "version: 1\nname: p\ndefaults:\n  agent: { name: claude, schema: {} }\nunits: [ { id: a, kind: command, run: make } ]\n";
    assert_eq!(
        said(text),
        [
            "4:26 defaults.agent.schema: unknown key `schema`; put it on a port of the unit: `outputs: [ { port, schema } ]`"
        ]
    );
}

#[test]
fn words_that_some_tools_read_as_booleans_are_no_trap() {
    let check = |required: &str| {
        format!("    checks: [ {{ name: c, run: make, required: {required} }} ]\n")
    };
    let flag = "7:47 units[0].checks[0].required";
    assert_eq!(
        said(&with_unit_lines(&check("yes"))),
        [format!("{flag}: wants true or false, found `yes`; write `true`")]
    );
    assert_eq!(
        said(&with_unit_lines(&check("off"))),
        [format!("{flag}: wants true or false, found `off`; write `false`")]
    );
    let plan = taken(
        "version: 1\nname: no\nlabels: { a: no, b: on }\nunits: [ { id: y, kind: command, run: yes } ]",
    );
    assert_eq!(plan.name.as_str(), "no");
    assert_eq!(plan.labels["b"], "on");
    assert_eq!(plan.units[0].run.as_deref(), Some("yes"));
}

#[test]
fn a_number_or_truth_where_a_text_is_wanted_asks_for_quotes() {
    let text = "version: 1\nname: p\nlabels: { release: 1.10 }\nunits: [ { id: 7, kind: command, run: true } ]";
    assert_eq!(
        said(text),
        [
            "3:20 labels.release: wants a text, found a number; write \"1.10\"",
            "4:16 units[0].id: wants a text, found a number; write \"7\"",
            "4:39 units[0].run: wants a text, found a truth value; write \"true\"",
        ]
    );
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    assert_eq!(
        said(&with_unit_lines("    env: [A]\n    env: [B]\n")),
        ["8:5 units[0].env: key `env` is there twice; remove one of them"]
    );
}

/// P073: what is not a finite amount of money is refused when read.
#[test]
fn money_is_finite_and_not_negative() {
    for amount in [".nan", ".inf", "-.inf", "-1", "1e3", "0.0000001", "NaN", "1_0"] {
        let text = format!(
            "version: 1\nname: p\nbudgets: {{ usd: {amount} }}\nunits: [ {{ id: a, kind: command, run: make }} ]"
        );
        let problems = said(&text);
        assert!(problems[0].contains("is not an amount in US dollars"), "{amount}: {problems:?}");
    }
}

#[test]
fn keys_that_exclude_each_other_are_said_so() {
    let text = "version: 1\nname: p\nrepository: { url: ., seed: d }\nunits: [ { id: a, kind: command, run: make } ]";
    assert_eq!(
        said(text),
        ["3:23 repository.seed: `seed` does not go with `base`, `url`; keep one of them"]
    );
}

/// R206: a unit without its one objective, command or agent is refused.
#[test]
fn a_unit_has_what_its_kind_needs() {
    let text = "version: 1\nname: p\nunits:\n- { id: a, kind: agent }\n- { id: b, kind: command, of: a }\n- { id: c, kind: loop, loop: { body: [a] } }\n- { id: d, kind: agent, objective: o, agent: scripted }";
    assert_eq!(
        said(text),
        [
            "4:3 units[0].objective: unit `a` is of kind agent and needs `objective`",
            "4:3 units[0].agent: unit `a` has no agent; add `agent`, or `defaults: { agent: … }`",
            "5:3 units[1].run: unit `b` is of kind command and needs `run`",
            "5:31 units[1].of: a unit of kind command has no use for `of`; remove it",
            "6:24 units[2].loop: exactly one of `until` and `condition` must be there",
            "7:46 units[3].agent: agent `scripted` needs a `script`; write `agent: { name: scripted, script: FILE }`",
        ]
    );
}

/// P073's cousin: nesting is refused before it costs anything.
#[test]
fn a_hundred_thousand_brackets_are_refused_at_once() {
    let text = "[".repeat(100_000);
    assert_eq!(said(&text), ["1:65 the plan is nested more than 64 deep"]);
    let text = "- ".repeat(100_000);
    assert_eq!(said(&text).len(), 1);
}

#[test]
fn aliases_that_multiply_are_refused_by_a_budget() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let uses = vec![format!("*a{}", level - 1); 10].join(",");
        writeln!(text, "a{level}: &a{level} [{uses}]").unwrap();
    }
    let problems = said(&text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("too many values"), "{problems:?}");
}

#[test]
fn anchors_and_merges_are_followed() {
    let plan = taken(
        "version: 1\nname: p\nunits:\n- &a { id: a, kind: command, run: make, env: [A] }\n- { <<: *a, id: b, env: [B] }",
    );
    assert_eq!(plan.units[1].run.as_deref(), Some("make"));
    assert_eq!(plan.units[1].env, ["B"]);
}

#[test]
fn a_plan_that_is_too_large_is_refused_by_its_size() {
    let text = format!("version: 1 # {}", "x".repeat(10 << 20));
    assert_eq!(
        said(&text),
        [
            "the plan has 10485773 bytes, and 4194304 are allowed; split the plan, or ask the operator for a larger plan limit"
        ]
    );
}

#[test]
fn more_units_than_allowed_are_refused_by_number() {
    let limits = Limits { units_max: 1, ..Limits::default() };
    let text = "version: 1\nname: p\nunits:\n- { id: a, kind: command, run: make }\n- { id: b, kind: command, run: make }";
    let problems = read(text, &limits).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "3:1 units: 2 units, and 1 are allowed; split the plan, or ask the operator for more"
    );
}

#[test]
fn what_is_no_plan_at_all_is_said_in_a_line() {
    for (text, expected) in [
        ("", "1:1 the plan is empty; see `examples/` for a plan"),
        ("hello", "1:1 wants a map, found a text"),
        ("a: 1\n---\nb: 2", "2:1 a plan is one document; split it at `---`"),
        ("units: !x []", "1:11 tags have no meaning in a plan; remove the tag"),
        ("[a, b]: c", "1:1 a key must be a word"),
    ] {
        assert_eq!(said(text), [expected], "{text}");
    }
    assert!(said("units: [").first().unwrap().contains("this is not YAML"));
}

#[test]
fn a_missing_key_says_what_it_is_for() {
    assert_eq!(
        said("version: 2\nunits: []"),
        [
            "1:1 name: key `name` is missing; add `name`: A short name for people",
            "1:10 version: 2 is not within 1 to 1",
            "2:8 units: wants at least 1, found 0",
        ]
    );
}

#[test]
fn a_thousand_problems_are_cut_with_a_word_about_it() {
    let text = (0..1000).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join("\n");
    let problems = said(&text);
    assert_eq!(problems.len(), 101);
    assert!(problems.contains(&"1:1 more than 100 problems; the rest is not shown".to_owned()));
}

#[test]
fn a_text_of_the_plan_cannot_drive_the_terminal() {
    let problems =
        said("version: 1\nname: \"\\e[31mred\"\nunits: [ { id: a, kind: command, run: x } ]");
    assert!(!problems[0].contains('\u{1b}'), "{problems:?}");
}

/// What later checkers know only by path gets its line from here.
#[test]
fn a_path_is_found_in_the_text_or_what_it_lies_in() {
    let (_, spans) = read(
        &with_unit_lines("    checks:\n      - name: c\n        run: make\n"),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(spans.at("units[0].checks[0].run"), Some((9, 14)));
    assert_eq!(spans.at("units[0].checks[0].timeout"), Some((8, 9)));
    assert_eq!(spans.at("units[0].files"), Some((4, 5)));
    assert_eq!(spans.at("goal"), Some((1, 1)));
    assert_eq!(spans.at("labels[\"a.b\"]"), Some((1, 1)));
    let placed = spans.placed(vec![Problem::error(Code::NoEvidence, "units[0].checks", "m")]);
    assert_eq!((placed[0].line, placed[0].column), (Some(7), Some(5)));
}

#[test]
fn what_is_left_of_a_broken_plan_can_be_checked_further() {
    let reading = read_all(&with_unit_lines("    agnet: claude\n"), &Limits::default());
    assert_eq!(reading.plan.as_ref().unwrap().units.len(), 1);
    assert!(!reading.intact("units[0]"));
    assert!(reading.intact("units[1]"));
    assert!(reading.problems.iter().all(|problem| problem.severity == Severity::Error));
}

fn key() -> impl Strategy<Value = String> {
    let schema = crate::plan::schema();
    let mut keys = vec!["nonsense".to_owned(), "<<".to_owned()];
    for def in schema["$defs"].as_object().into_iter().flat_map(serde_json::Map::values) {
        keys.extend(crate::plan::schema_view::keys(def).iter().map(|key| (*key).to_owned()));
    }
    keys.extend(crate::plan::schema_view::keys(&schema).iter().map(|key| (*key).to_owned()));
    proptest::sample::select(keys)
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        "[a-z0-9.-]{0,8}".prop_map(serde_json::Value::from),
        proptest::sample::select(vec!["30m", "agent", "command", "hold", "1MiB", "a.b", "5.00"])
            .prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::hash_map(key(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in "\\PC{0,300}") {
        let _ = read(&text, &Limits::default());
    }

    #[test]
    fn no_broken_plan_makes_reading_panic(
        at in 0..WHOLE.len(), cut in 0..40_usize, put in "[ -~\n\t]{0,6}"
    ) {
        prop_assume!(WHOLE.is_char_boundary(at));
        let end = (at + cut).min(WHOLE.len());
        let text = format!("{}{put}{}", &WHOLE[..at], &WHOLE[end..]);
        if let Err(problems) = read(&text, &Limits::default()) {
            prop_assert!(problems.iter().any(Problem::is_error));
        }
    }

    /// The schema allows nothing the types refuse: no problem is without a place.
    #[test]
    fn what_the_schema_takes_the_types_take(value in json()) {
        let text = value.to_string();
        if let Err(problems) = read(&text, &Limits::default()) {
            for problem in problems {
                let types_own = problem.code == Code::BadValue && problem.path.is_empty();
                prop_assert!(!types_own, "{}", problem);
            }
        }
    }
}

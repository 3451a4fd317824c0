//! Words, patterns, the frozen digest, and texts that are no plan.

use proptest::prelude::*;

use super::*;

#[test]
fn words_have_the_form_their_users_need() {
    let env =
        "is not a name of an environment variable: A-Z, 0-9 and `_`, not beginning with a digit";
    let text = "version: 1
name: p
mode: autonomous
goal: ' '
labels: { 'a b': x, team: \"a\\tb\" }
units:
- { id: a, kind: command, run: ' ', env: [ HOME, _X1, path, 1A, 'A=b', GANGER_RUN ] }
- { id: b, kind: agent, objective: '', agent: { name: scripted, script: s } }
";
    assert_eq!(
        lines(&checked_with(text, None, &["s"])),
        [
            "bad_value 4:7 goal: there is nothing in it".to_owned(),
            "bad_value 5:18 labels[\"a b\"]: `a b` is not a label: 1 to 63 of letters, digits, `-`, `_`, `.` and `/`".to_owned(),
            "bad_value 5:27 labels.team: `a\\tb` is not a label's value: up to 63 bytes without control characters".to_owned(),
            "bad_value 7:32 units[0].run: there is nothing in it".to_owned(),
            format!("bad_value 7:55 units[0].env[2]: `path` {env}"),
            format!("bad_value 7:61 units[0].env[3]: `1A` {env}"),
            format!("bad_value 7:65 units[0].env[4]: `A=b` {env}; write only the name; its value is the worker's"),
            "bad_value 7:72 units[0].env[5]: `GANGER_RUN` is set by the worker itself; remove it".to_owned(),
            "bad_value 8:36 units[1].objective: there is nothing in it".to_owned(),
        ]
    );
}

#[test]
fn patterns_that_match_nothing_here_are_refused() {
    let keys = ", files: [ '', /abs, a/../b, 'a[', dir/, \"\\e[31m/../x\" ], checks: [ { name: c, run: make, pinned: [ ../x ] } ]";
    let found = said(&units(TREE, &[("a", keys)]));
    let paths: Vec<&str> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "bad_value 6:47 units[0].files[0]",
            "bad_value 6:51 units[0].files[1]",
            "bad_value 6:57 units[0].files[2]",
            "bad_value 6:65 units[0].files[3]",
            "bad_value 6:71 units[0].files[4]",
            "bad_value 6:77 units[0].files[5]",
            "bad_value 6:136 units[0].checks[0].pinned[0]",
        ]
    );
    assert!(found.iter().all(|line| !line.contains('\u{1b}')), "{found:?}");
}

/// R206: a schema belongs to a port and not to the agent.
#[test]
fn a_schema_on_the_agent_points_at_ports() {
    let text = format!(
        "{HEAD}units:\n- {{ id: a, kind: agent, objective: o, agent: {{ name: scripted, script: s, schema: {{}} }} }}\n"
    );
    assert_eq!(
        lines(&checked_with(&text, None, &["s"])),
        [
            "unknown_key 5:75 units[0].agent.schema: unknown key `schema`; put it on a port of the unit: `outputs: [ { port, schema } ]`"
        ]
    );
}

const FROZEN: &str = "version: 1
name: p
goal: Prove \"it\".
mode: autonomous
repository: { url: . }
budgets: { units: 8, active: 1h }
contract: { language: en, invariants: [ stays ] }
units:
- { id: b, kind: command, run: make, files: [x], checks: [ { name: t, run: make test } ] }
- { id: a, kind: command, run: make, files: [] }
delivery: { mode: branch }
";

/// The digest is named in verdicts and journals for ever: this text and this number may not change.
#[test]
fn the_frozen_text_and_its_digest_stay() {
    let checked = checked(FROZEN).unwrap();
    assert_eq!(
        contract::text(&checked.plan, &checked.units),
        r#"{"budgets":{"active":"1h","units":8},"contract":{"invariants":["stays"],"language":"en"},"delivery":"branch","goal":"Prove \"it\".","mode":"autonomous","units":{"a":{"accept":"auto","checks":[]},"b":{"accept":"auto","checks":[{"expect_exit":0,"name":"t","required":true,"run":"make test","timeout":"10m"}]}}}"#
    );
    assert_eq!(
        checked.contract_hash.to_string(),
        "f7d9964e4d929b9b95fa41660f693966ac3bd1c9e2c002f480adf8f899fafe49"
    );
}

#[test]
fn the_digest_changes_with_what_is_owed_and_only_then() {
    let of = |text: &str| checked(text).unwrap().contract_hash;
    let same = of(FROZEN);
    for (from, to) in [
        ("name: p", "name: q"),
        (
            "kind: command, run: make, files: []",
            "kind: command, run: other, files: [], timeout: 5m",
        ),
        ("run: make test }", "run: make test, timeout: 10m }"),
        ("mode: autonomous\n", "mode: autonomous\npriority: 0\n"),
    ] {
        assert!(FROZEN.contains(from), "{from}");
        assert_eq!(of(&FROZEN.replace(from, to)), same, "{to}");
    }
    for (from, to) in [
        ("Prove", "prove"),
        ("stays", "goes"),
        ("units: 8", "units: 9"),
        ("mode: branch", "mode: hold"),
        ("run: make test", "run: make check"),
        ("id: a", "id: c"),
    ] {
        assert!(FROZEN.contains(from), "{from}");
        assert_ne!(of(&FROZEN.replace(from, to)), same, "{to}");
    }
}

/// Pieces that make a plan, or nearly.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(HEAD.to_owned()),
        Just(TREE.to_owned()),
        Just("units:\n".to_owned()),
        Just("- { id: a, kind: command, run: make }\n".to_owned()),
        Just("- { id: a, kind: agent, objective: o, agent: x, after: [a, b], files: ['['] }\n".to_owned()),
        Just("tasks: [ { id: t, after: [t] } ]\n".to_owned()),
        Just("insert: [ { trigger: { is: failed }, unit: { id: a, kind: fork, fork: { from: a.b } } } ]\n".to_owned()),
        "[ -~\n]{0,20}",
        ".{0,10}",
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever comes in, an answer comes out: a plan without errors, or at least one error.
    #[test]
    fn no_text_is_without_an_answer(text in pieces()) {
        match checked(&text) {
            Ok(checked) => prop_assert!(!checked.warnings.iter().any(Problem::is_error)),
            Err(problems) => prop_assert!(problems.iter().any(Problem::is_error)),
        }
    }
}

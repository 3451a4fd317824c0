//! Evidence, trees and agents: what is refused because nothing would prove or run it.

use super::*;

const NO_EVIDENCE: &str = "would be accepted without evidence: it has no required check that can fail; add one, write `accept: judge`, or `files: []` if it changes nothing";

/// R107: what nobody judges must be proven by something that can fail.
#[test]
fn what_policy_accepts_needs_a_check_that_can_fail() {
    let check = |keys: &str| format!(", files: [x], checks: [ {{ name: c, run: {keys} }} ]");
    for (keys, refused) in [
        (", files: [x]".to_owned(), true),
        (check("make, required: false"), true),
        (check("make"), false),
        (check("'true', expect_exit: 1"), false),
        (", files: []".to_owned(), false),
    ] {
        let expected: Vec<String> = refused
            .then(|| {
                let column = if keys.contains("checks") { 50 } else { 3 };
                format!("no_evidence 6:{column} units[0].checks: unit `a` {NO_EVIDENCE}")
            })
            .into_iter()
            .collect();
        assert_eq!(said(&units(TREE, &[("a", &keys)])), expected, "{keys}");
    }
    // A judge looks at it, and that is not built yet.
    let judged = said(&units(TREE, &[("a", ", files: [x], accept: judge")]));
    assert_eq!(judged.len(), 1);
    assert!(judged[0].starts_with("not_supported_yet 6:58 units[0].accept"), "{judged:?}");
}

/// R107: a check that cannot fail is refused in every mode.
#[test]
fn a_check_that_cannot_fail_is_refused_in_every_mode() {
    for mode in ["supervised", "autonomous"] {
        let head = TREE.replace("autonomous", mode);
        let checks = ", files: [x], checks: [ { name: t, run: make test }, { name: e, run: 'make test || echo FAIL' } ]";
        let found: Vec<String> = said(&units(&head, &[("a", checks)]))
            .into_iter()
            .filter(|line| !line.starts_with("not_supported_yet"))
            .collect();
        assert_eq!(
            found,
            [
                "cannot_fail 6:105 units[0].checks[1].run: check e cannot fail: `|| echo FAIL` turns every failure into a success; let its exit code say whether it passed"
            ]
        );
    }
}

#[test]
fn an_unreadable_check_is_not_also_missing() {
    let checks = ", files: [x], checks: [ { name: t, run: make test, timeout: soon } ]";
    let found = said(&units(TREE, &[("a", checks)]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("bad_value 6:96 units[0].checks[0].timeout"), "{found:?}");
}

#[test]
fn what_needs_a_tree_is_refused_without_one() {
    let text = units(HEAD, &[("a", ", checks: [ { name: c, run: make } ]")])
        + "delivery: { mode: branch }\n";
    assert_eq!(
        said(&text),
        [
            "conflict 5:38 units[0].checks: checks need a repository; add `repository`, or remove them",
            "conflict 6:19 delivery.mode: there is no repository to deliver from; add `repository`, or write `hold`",
        ]
    );
}

/// P047: an executor nobody knows is refused when submitted, wherever it is named.
#[test]
fn an_unknown_agent_is_refused() {
    let text = format!(
        "{HEAD}defaults: {{ agent: {{ name: scriptd, script: s }} }}\nunits:\n- {{ id: a, kind: agent, objective: o, agent: nobody }}\n- {{ id: b, kind: agent, objective: o, agent: claude }}\n"
    );
    assert_eq!(
        lines(&checked_with(&text, Some(&["mine"]), &["s"])),
        [
            "unknown_agent 4:13 defaults.agent: no agent is called `scriptd`; did you mean `scripted`?",
            "unknown_agent 6:46 units[0].agent: no agent is called `nobody`; known: mine, scripted",
            "not_supported_yet 7:46 units[1].agent: agent `claude` has no executor yet; use scripted",
        ]
    );
}

#[test]
fn an_agent_that_is_not_attached_now_is_a_warning() {
    let agent = "- { id: a, kind: agent, objective: o, agent: { name: scripted, script: s } }\n";
    let text = format!("{HEAD}units:\n{agent}");
    assert_eq!(lines(&checked_with(&text, None, &["s"])), Vec::<String>::new());
    assert_eq!(lines(&checked_with(&text, Some(&["scripted"]), &["s"])), Vec::<String>::new());
    let answer = checked_with(&text, Some(&[]), &["s"]);
    assert_eq!(
        lines(&answer),
        [
            "advice 5:39 units[0].agent: warning: no live worker offers agent `scripted` now; start one that does, or its units wait"
        ]
    );
    assert!(answer.is_ok());
}

/// R003: all files that did not come are said together.
#[test]
fn every_missing_file_is_said_at_once() {
    let agent = |id: &str, script: &str| {
        format!(
            "- {{ id: {id}, kind: agent, objective: o, agent: {{ name: scripted, script: {script} }} }}\n"
        )
    };
    let text =
        format!("{HEAD}units:\n{}{}{}", agent("a", "one"), agent("b", "here"), agent("c", "two"));
    let missing = "did not come with the plan; write a path relative to the plan file, and see that the file is there";
    assert_eq!(
        lines(&checked_with(&text, None, &["here"])),
        [
            format!("unknown_name 5:72 units[0].agent.script: file `one` {missing}"),
            format!("unknown_name 7:72 units[2].agent.script: file `two` {missing}"),
        ]
    );
    let plan = checked_with(&text, None, &["one", "here", "two"]).unwrap().plan;
    let named: Vec<&str> = attachments::named(&plan).into_iter().map(|(_, file)| file).collect();
    assert_eq!(named, ["one", "here", "two"]);
}

#[test]
fn units_that_share_files_without_an_order_are_warned_of() {
    let proven = |files: &str| format!(", files: [{files}], checks: [ {{ name: c, run: make }} ]");
    let (all, one, other) = (proven("'src/**'"), proven("src/a"), proven("doc/a"));
    let after = format!("{all}, after: [a]");
    let text = units(TREE, &[("a", &all), ("b", &after), ("c", &one), ("d", &other)]);
    let answer = checked(&text);
    assert_eq!(
        lines(&answer),
        [
            "advice 8:38 units[2].files: warning: unit `c` may write files of `a`, `b`, so they run one after another; narrow `files`, or say which is first with `after`"
        ]
    );
    assert!(answer.is_ok());
}

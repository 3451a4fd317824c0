//! Which commands can never fail, and that nothing else is accused.

#![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]
#![allow(clippy::disallowed_methods, reason = "real checks are read in place")]

use proptest::prelude::*;

use super::*;

/// R107: tails and forms that make a check succeed whatever happens.
#[test]
fn a_command_that_cannot_fail_is_found() {
    for run in [
        "",
        "   # nothing",
        "echo done",
        "true",
        ":",
        "exit 0",
        "cargo test || true",
        "cargo test ||true",
        "cargo test || :",
        "cargo test || exit 0",
        "cargo test || echo FAIL",
        "make; echo $?",
        "make || echo \"FAIL $?\"",
        "cargo test ; true",
        "cargo test; exit 0",
        "cargo test\necho done",
        "cargo test && echo PASS || echo FAIL",
        "grep -q x f && { echo yes; exit 0; } || { echo no; exit 0; }",
        "cargo test | tail -5",
        "cargo test 2>&1 | tail -n 20",
        "cargo test | cat",
        "cargo test | head",
        "cargo test | wc -l",
        "cargo test | tee out.log",
        "cargo test |& sed 's/^/  /'",
        "(cargo test || true)",
        "{ cargo test; echo done; }",
        "sh -c 'cargo test || true'",
        "set -e; cargo test || true",
        "set -e; set +e; cargo test; true",
        "for f in *.md; do grep -q x $f || echo missing $f; done",
        "if cargo test; then echo ok; else echo bad; fi",
        "cargo test &",
        "! false",
        "cargo test || echo '&& false'",
        "cargo test || echo \"a || b\" # || false",
        "cat <<E\nfalse\nE\necho ok",
        "x=1",
    ] {
        assert!(cannot_fail(run).is_some(), "`{run}` was not found");
    }
}

/// R107: a command that can fail is left alone, and so is what is not understood.
#[test]
fn a_command_that_can_fail_is_not_accused() {
    for run in [
        "cargo test",
        "cargo test && echo PASS",
        "false",
        "exit 1",
        "exit",
        "cargo test || exit 1",
        "cargo test || { echo FAIL; exit 1; }",
        "cargo test || { echo FAIL; false; }",
        "cargo test || exit 1; true",
        "set -e; cargo test; true",
        "set -eu\ncargo test\necho done",
        "set -o pipefail; cargo test | tail -5",
        "set -euo pipefail; cargo test | tee log",
        "cargo test | grep -q ok",
        "cargo test | tail -5 missing.log",
        "echo '|| true'; cargo test",
        "cargo test # || true",
        "grep -q '|| true' file",
        "grep -q \"a; true\" file",
        "! true",
        "! grep -q x f",
        "(cargo test)",
        "(cargo test || exit 1)",
        "sh -c 'cargo test'",
        "bash -c \"$CHECK || true\" extra",
        "echo done > /root/out",
        "if cargo test; then echo ok; else exit 1; fi",
        "for f in *.md; do grep -q x $f; done",
        "while ! ready; do exit 1; done",
        "[[ -f a || -f b ]]",
        "case x in a) true;; esac",
        "test -f \"$(ls | tail -1)\"",
        "echo ${x:?must be set}",
        "x=$(cargo test)",
        "sort -c list",
        "cargo test | sort -c",
        "trap 'exit 1' EXIT; true",
        "cargo test || (",
        "echo 'open",
        "wc -l < missing",
    ] {
        assert_eq!(cannot_fail(run), None, "`{run}` was accused");
    }
}

#[test]
fn the_reason_names_the_part_that_hides_the_failure() {
    let said = |run: &str| cannot_fail(run).unwrap().to_string();
    assert_eq!(said("a || echo FAIL"), "`|| echo FAIL` turns every failure into a success");
    assert_eq!(
        said("a | tail -5"),
        "its status is that of `tail -5` at the end of the pipeline, which always succeeds"
    );
    assert_eq!(said("a; true"), "its status is that of `true` at the end, which always succeeds");
    assert_eq!(said("echo hi"), "`echo hi` always succeeds");
    assert_eq!(said(" "), "it is empty");
}

proptest! {
    /// What is accused is accused by what `/bin/sh` does, so no text may upset the reader.
    #[test]
    fn no_text_makes_it_panic(run in "[ -~\n|&;(){}'\"$`<>#\\\\]{0,80}") {
        let _ = cannot_fail(&run);
    }

    /// R107: adding `|| true` to a command that is understood leaves no way to fail.
    #[test]
    fn an_or_else_true_always_hides_the_failure(words in "[a-z]{1,8}( [a-z.-]{1,8}){0,4}") {
        prop_assume!(crate::plan::shell::parse(&words).is_some());
        let first = words.split(' ').next().unwrap_or_default();
        prop_assume!(!["exec", "trap", "exit", "set", "case", "for", "if", "while", "until", "then",
            "do", "done", "fi", "else", "elif", "esac", "select", "function", "coproc", "sh",
            "bash", "dash", "time", "command"].contains(&first));
        let hidden = format!("{words} || true");
        prop_assert!(cannot_fail(&hidden).is_some(), "{} was not found", hidden);
    }
}

/// R107: of the real checks of the wave plans exactly these can never fail.
#[test]
fn the_real_checks_that_cannot_fail_are_named_and_no_others() {
    let index =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/inputs/silver/wave-plans.index.json");
    let Ok(text) = std::fs::read_to_string(index) else {
        eprintln!("skipped: {index} is not there");
        return;
    };
    let plans: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    let mut all = 0;
    for plan in &plans {
        let file = plan["file"].as_str().unwrap();
        for (n, check) in plan["automated_checks"].as_array().unwrap().iter().enumerate() {
            all += 1;
            if cannot_fail(check.as_str().unwrap()).is_some() {
                found.push(format!("{} {n}", file.split("__").last().unwrap_or(file)));
            }
        }
    }
    assert_eq!(all, 75, "the index changed");
    assert_eq!(
        found,
        [
            "13-01-PLAN.md 0",
            "13-02-PLAN.md 0",
            "13-02-PLAN.md 1",
            "044-01-PLAN.md 0",
            "044-01-PLAN.md 1",
            "044-01-PLAN.md 2",
            "044-01-PLAN.md 3",
            "044-01-PLAN.md 4",
            "044-01-PLAN.md 5",
            "044-01-PLAN.md 6",
            "044-01-PLAN.md 7",
            "044-01-PLAN.md 8",
            "044-03-PLAN.md 0",
            "044-03-PLAN.md 1",
            "044-03-PLAN.md 2",
            "044-03-PLAN.md 3",
            "044-04-PLAN.md 0",
            "044-04-PLAN.md 1",
            "044-04-PLAN.md 2",
            "044-04-PLAN.md 3",
            "044-04-PLAN.md 4",
            "25-02-PLAN.md 0",
            "260405-8gd-PLAN.md 0",
            "260405-8gd-PLAN.md 1"
        ]
    );
}

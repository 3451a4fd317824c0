//! Limits: of units, budgets, times, counts and bytes.

use super::*;

/// R011: the ceiling of units counts what is planned, and the answer says what to do.
#[test]
fn more_units_than_the_budget_are_refused() {
    let plan = |budget: &str, count| {
        let rows = (0..count).map(|n| format!("id: u{n}, kind: command, run: make"));
        many(&format!("{HEAD}{budget}"), rows)
    };
    let refused = "split the plan or set budgets.units";
    for (budget, count, expected) in [
        ("", 64, vec![]),
        ("", 65, vec![format!("limit 4:1 units: 65 units planned, at most 64; {refused}")]),
        ("budgets: { units: 65 }\n", 65, vec![]),
        (
            "budgets: { units: 2 }\n",
            3,
            vec![format!("limit 5:1 units: 3 units planned, at most 2; {refused}")],
        ),
        (
            "budgets: { units: 513 }\n",
            3,
            vec![
                "limit 4:19 budgets.units: 513 units, at most 512; ask for less, or the operator for more"
                    .to_owned(),
            ],
        ),
        (
            "",
            513,
            vec![
                "limit 4:1 units: 513 units, and 512 are allowed; split the plan, or ask the operator for more"
                    .to_owned(),
            ],
        ),
    ] {
        assert_eq!(said(&plan(budget, count)), expected, "{budget} {count}");
    }
}

/// P073: a budget that limits nothing, or everything, is refused; so is what is no number.
#[test]
fn a_budget_of_nothing_is_refused() {
    let budgets = |text: &str| units(&format!("{HEAD}budgets: {{ {text} }}\n"), &[("a", "")]);
    let nothing = "a budget of nothing lets nothing run; write more than 0, or leave it out";
    for (key, zero) in [("units", "0"), ("attempts", "0"), ("active", "0s")] {
        assert_eq!(
            said(&budgets(&format!("{key}: {zero}"))),
            [format!("bad_value 4:{} budgets.{key}: {nothing}", 14 + key.len())]
        );
    }
    let found = said(&budgets("usd: 0, tokens: 50_000_001, calls: { total: 0 }"));
    for expected in [
        format!("bad_value 4:17 budgets.usd: {nothing}"),
        "limit 4:28 budgets.tokens: 50000001 tokens, at most 50000000".to_owned(),
        format!("bad_value 4:56 budgets.calls.total: {nothing}"),
    ] {
        assert!(found.contains(&expected), "{expected} in {found:?}");
    }
    for amount in [".nan", "-1", ".inf"] {
        let found = said(&budgets(&format!("usd: {amount}")));
        assert!(found[0].contains("is not an amount in US dollars"), "{found:?}");
    }
}

#[test]
fn times_have_both_ends() {
    let nothing = "no time at all: nothing can be done in it; write a length such as `30m`";
    let text = "version: 1
name: p
mode: autonomous
repository: { url: . }
defaults: { retry: { delay: 2d }, silence: 0s }
units:
- { id: a, kind: command, run: make, files: [], timeout: 0s, retry: { delay: 0s } }
- { id: b, kind: command, run: make, files: [], timeout: 25h, checks: [ { name: c, run: make, timeout: 0ms } ] }
- { id: c, kind: command, run: make, files: [], retry: { attempts: 21 } }
- { id: d, kind: agent, objective: o, files: [], agent: { name: scripted, script: s }, timeout: 3h }
- { id: e, kind: command, run: make, files: [], priority: 101 }
";
    assert_eq!(
        lines(&checked_with(text, None, &["s"])),
        [
            "limit 5:29 defaults.retry.delay: 2d is too long, at most 1d".to_owned(),
            format!("bad_value 5:44 defaults.silence: {nothing}"),
            format!("bad_value 7:58 units[0].timeout: {nothing}"),
            "limit 8:58 units[1].timeout: 25h is too long, at most 1d".to_owned(),
            format!("bad_value 8:104 units[1].checks[0].timeout: {nothing}"),
            "bad_value 9:68 units[2].retry.attempts: 21 is not within 1 to 20".to_owned(),
            "limit 10:97 units[3].timeout: 3h is more than an agent may take (2h); write `2h`"
                .to_owned(),
            "bad_value 11:59 units[4].priority: 101 is not within -100 to 100".to_owned(),
        ]
    );
}

/// R005: what becomes one event fits into one.
#[test]
fn texts_and_lists_have_an_end() {
    let long = "x".repeat(25 << 10);
    let checks: Vec<String> = (0..33).map(|n| format!("{{ name: c{n}, run: make }}, ")).collect();
    let checks = checks.concat();
    let text = format!(
        "version: 1\nname: p\nmode: autonomous\nrepository: {{ url: . }}\ngoal: {long}\ntasks: [ {{ id: t, title: {long} }} ]\nunits:\n- {{ id: a, kind: command, run: {long}, files: [] }}\n- {{ id: b, kind: command, run: make, files: [], checks: [ {checks} ] }}\n"
    );
    let fix = "put long texts into files of the repository";
    assert_eq!(
        said(&text),
        [
            format!("limit 1:1 goal, labels, contract and names of files: 25613 bytes, at most 24576; {fix}"),
            format!("limit 6:10 tasks[0]: task `t`: 25621 bytes, at most 24576; {fix}"),
            format!("limit 8:3 units[0]: unit `a` has 25783 bytes, and 24576 are allowed; {fix}"),
            "limit 9:49 units[1].checks: 33 checks, at most 32; let one command measure several facts, or split the unit".to_owned(),
        ]
    );
}

/// Two large tasks in a row ask for more dependencies than may be made.
#[test]
fn an_order_of_tasks_that_explodes_is_refused() {
    let tasks = "tasks: [ { id: one }, { id: two, after: [one] } ]\n";
    let row = |n| {
        let task = if n % 2 == 0 { "one" } else { "two" };
        format!("id: u{n}, kind: command, run: x, task: {task}")
    };
    let text = many(&format!("{HEAD}budgets: {{ units: 3000 }}\n{tasks}"), (0..3000).map(row));
    let limits = Limits { units_max: 100_000, ..Limits::default() };
    let context = Context { agents: None, limits: &limits, attachments: &BTreeMap::new() };
    assert_eq!(
        lines(&check_text(&text, &context)),
        [
            "limit 5:1 tasks: the order of tasks stands for too many dependencies, at most 1000000; put a unit between the tasks that all of the later ones come after"
        ]
    );
}

#[test]
fn an_answer_has_an_end() {
    let row = |n| format!("id: u{n}, kind: command, run: x, after: [a, b, c, d, e]");
    let text = many(HEAD, (0..60).map(row));
    let problems = checked(&text).unwrap_err();
    assert_eq!(problems.len(), PROBLEMS_MAX + 1);
    assert_eq!(problems.last().unwrap().message, "more than 200 problems; the rest is not shown");
}

/// A plan as large as one may be, full of names that lead nowhere and everywhere, is answered.
#[test]
fn the_largest_plans_are_answered() {
    let names: Vec<String> = (0..400).map(|n| format!("nowhere{n}")).collect();
    let all: Vec<String> = (0..512).map(|n| format!("u{n}")).collect();
    for after in [names.join(", "), all.join(", ")] {
        let row = |n| format!("id: u{n}, kind: command, run: x, after: [{after}]");
        let text = many(&format!("{HEAD}budgets: {{ units: 512 }}\n"), (0..512).map(row));
        assert!(checked(&text).is_err());
    }
}

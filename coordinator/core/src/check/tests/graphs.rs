//! Circles, names and order: tables, then random graphs against a plain search.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::check::cycles::CYCLES_MAX;
use ganger_shared::problem::Code;

/// P045, R002: a circle is refused with its whole path, each once.
#[test]
fn a_circle_is_refused_with_its_whole_path() {
    let text = units(HEAD, &[("a", ", after: [c]"), ("b", ", after: [a]"), ("c", ", after: [b]")]);
    assert_eq!(
        said(&text),
        [
            "cycle 5:46 units[0].after[0]: each waits for the one before it: a -> b -> c -> a; remove one of these dependencies"
        ]
    );
    let text = units(
        HEAD,
        &[
            ("a", ", after: [a]"),
            ("b", ", after: [c, d]"),
            ("c", ", after: [b]"),
            ("d", ", after: [c]"),
        ],
    );
    assert_eq!(
        said(&text),
        [
            "cycle 5:46 units[0].after[0]: each waits for the one before it: a -> a; remove one of these dependencies",
            "cycle 6:46 units[1].after[0]: each waits for the one before it: b -> c -> b; remove one of these dependencies",
            "cycle 6:49 units[1].after[1]: each waits for the one before it: b -> c -> d -> b; remove one of these dependencies",
        ]
    );
}

/// P045: the order of tasks counts as much as that of units, through empty tasks too.
#[test]
fn a_circle_through_tasks_is_found() {
    let tasks = "tasks: [ { id: one }, { id: gap, after: [one] }, { id: two, after: [gap] } ]\n";
    let text = units(
        &format!("{HEAD}{tasks}"),
        &[("a", ", task: one, after: [b]"), ("b", ", task: two"), ("c", ", task: one")],
    );
    assert_eq!(
        said(&text),
        [
            "cycle 6:57 units[0].after[0]: each waits for the one before it: a -> task one -> task gap -> task two -> b -> a; remove one of these dependencies"
        ]
    );
    let tasks = "tasks: [ { id: one, after: [two] }, { id: two, after: [one] } ]\n";
    let text = units(&format!("{HEAD}{tasks}"), &[("a", ", task: one"), ("b", ", task: two")]);
    assert_eq!(
        said(&text),
        [
            "cycle 4:29 tasks[0].after[0]: each waits for the one before it: task one -> task two -> task one; remove one of these dependencies"
        ]
    );
}

/// A subject comes before its review, but a gate is no order: the usual pair is no circle.
#[test]
fn a_review_that_its_subject_comes_after_is_a_circle() {
    let review = "- { id: r, kind: review, of: a, agent: { name: scripted, script: s } }\n";
    let pair = |keys| units(HEAD, &[("a", keys)]) + review;
    let cycles = |text: &str| {
        let answer = checked_with(text, None, &["s"]);
        lines(&answer).into_iter().filter(|line| line.starts_with("cycle")).collect::<Vec<_>>()
    };
    assert_eq!(cycles(&pair(", gate: { reviews: [r] }")), Vec::<String>::new());
    assert_eq!(
        cycles(&pair(", after: [r]")),
        [
            "cycle 5:46 units[0].after[0]: each waits for the one before it: a -> r -> a; remove one of these dependencies"
        ]
    );
}

#[test]
fn no_more_than_a_few_circles_are_shown() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let keys: Vec<String> = names
        .iter()
        .map(|own| {
            let others: Vec<&str> = names.iter().copied().filter(|name| name != own).collect();
            format!(", after: [{}]", others.join(", "))
        })
        .collect();
    let rows: Vec<(&str, &str)> =
        names.iter().copied().zip(keys.iter().map(String::as_str)).collect();
    let problems = checked(&units(HEAD, &rows)).unwrap_err();
    assert_eq!(problems.len(), CYCLES_MAX + 1);
    let more = &problems.iter().find(|problem| problem.path == "units").unwrap().message;
    assert_eq!(more, "more than 10 circles; the rest is not shown");
}

/// A chain as long as a plan may be costs neither the stack nor much time.
#[test]
fn a_very_long_circle_is_cut() {
    let text = many(
        &format!("{HEAD}budgets: {{ units: 512 }}\n"),
        (0..512).map(|n| format!("id: u{n}, kind: command, run: x, after: [u{}]", (n + 511) % 512)),
    );
    let problems = checked(&text).unwrap_err();
    assert_eq!(problems.len(), 1);
    let message = &problems[0].message;
    assert!(message.contains("u0 -> u1 -> u2"), "{message}");
    assert!(message.ends_with("u63 -> … (448 more) -> u0"), "{message}");
}

/// R002, P047: names that lead nowhere.
#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let text = "version: 1
name: p
mode: autonomous
tasks: [ { id: build, gate: { reviews: [nobody] } } ]
units:
- { id: implement, kind: command, run: make, task: biuld, after: [implment, other] }
- { id: fix, kind: command, run: make, fixes: implementt, replaces: none, inputs: [ { port: a, from: implement.sumary } ], outputs: [ { port: x }, { port: x } ] }
insert: [ { trigger: { unit: implemetn, is: failed }, unit: { id: fix, kind: command, run: make } } ]
";
    let unknown: Vec<String> = said(text)
        .into_iter()
        .filter(|line| line.starts_with("unknown_name") || line.starts_with("duplicate"))
        .collect();
    assert_eq!(
        unknown,
        [
            "unknown_name 4:41 tasks[0].gate.reviews[0]: no unit is called `nobody`",
            "unknown_name 6:52 units[0].task: no task is called `biuld`; did you mean `build`?",
            "unknown_name 6:67 units[0].after[0]: no unit is called `implment`; did you mean `implement`?",
            "unknown_name 6:77 units[0].after[1]: no unit is called `other`",
            "unknown_name 7:47 units[1].fixes: no unit is called `implementt`; did you mean `implement`?",
            "unknown_name 7:69 units[1].replaces: no unit is called `none`",
            "unknown_name 7:102 units[1].inputs[0].from: unit `implement` has no output `sumary`",
            "duplicate 7:156 units[1].outputs[1].port: output `x` is there already, at units[1].outputs[0].port; rename one of them",
            "unknown_name 8:30 insert[0].trigger.unit: no unit is called `implemetn`; did you mean `implement`?",
            "duplicate 8:67 insert[0].unit.id: unit `fix` is there already, at units[1].id; rename one of them",
        ]
    );
}

/// A broken list of tasks says nothing about the names in it.
#[test]
fn a_fault_hides_what_only_follows_from_it() {
    let head = format!("{HEAD}tasks: [ {{ id: one, titel: x }}, {{ id: Two }} ]\n");
    assert_eq!(
        said(&units(&head, &[("a", ", task: one")])),
        [
            "unknown_key 4:21 tasks[0].titel: unknown key `titel`; did you mean `title`?",
            "bad_value 4:39 tasks[1].id: `Two` is not a task id: 1 to 63 of a-z, 0-9 and `-`, beginning with a letter or digit",
        ]
    );
}

fn plan_of(edges: &BTreeMap<usize, BTreeSet<usize>>, count: usize) -> String {
    let row = |later: usize| {
        let after: Vec<String> =
            edges.get(&later).into_iter().flatten().map(|earlier| format!("u{earlier}")).collect();
        format!("id: u{later}, kind: command, run: make, after: [{}]", after.join(", "))
    };
    many(HEAD, (0..count).map(row))
}

/// Edges as (later, earlier) by rank in a shuffled order of 12 units.
fn edges() -> impl Strategy<Value = (Vec<usize>, Vec<(usize, usize)>)> {
    (
        Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
        proptest::collection::vec((0..12_usize, 0..12_usize), 0..30),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// R002: an order without circles is taken, whatever order the text has.
    #[test]
    fn every_acyclic_graph_is_taken((order, pairs) in edges()) {
        let mut after: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (a, b) in pairs.into_iter().filter(|(a, b)| a < b) {
            after.entry(order[b]).or_default().insert(order[a]);
        }
        prop_assert_eq!(said(&plan_of(&after, order.len())), Vec::<String>::new());
    }

    /// P045: with edges back, what is reported is a real circle each time, and each only once.
    #[test]
    fn every_reported_circle_is_real((order, pairs) in edges(), from in 0..11_usize) {
        let mut after: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (a, b) in &pairs {
            after.entry(order[*b]).or_default().insert(order[*a]);
        }
        after.entry(order[from]).or_default().insert(order[from + 1]);
        after.entry(order[from + 1]).or_default().insert(order[from]);
        let problems = checked(&plan_of(&after, order.len())).unwrap_err();
        prop_assert!(problems.iter().all(|problem| problem.code == Code::Cycle));
        let mut seen = BTreeSet::new();
        for problem in problems.iter().filter(|problem| problem.path != "units") {
            let (_, path) = problem.message.split_once(": ").unwrap();
            let way: Vec<usize> =
                path.split(" -> ").map(|name| name[1..].parse().unwrap()).collect();
            let distinct: BTreeSet<usize> = way.iter().copied().collect();
            prop_assert_eq!(way.first(), way.last());
            prop_assert_eq!(distinct.len(), way.len() - 1, "no node twice: {}", path);
            for step in way.windows(2) {
                prop_assert!(after[&step[1]].contains(&step[0]), "{} in {}", step[1], path);
            }
            prop_assert!(seen.insert(way), "twice: {}", path);
        }
        prop_assert!(!seen.is_empty());
    }
}

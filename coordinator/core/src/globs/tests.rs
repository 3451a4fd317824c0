//! What must hold of claims and scopes as patterns.
#![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]

use proptest::prelude::*;

use super::*;

fn globs(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn meet(a: &str, b: &str) -> bool {
    overlap(&globs(&[a]), &globs(&[b]))
}

#[test]
fn patterns_of_different_files_do_not_overlap() {
    for (a, b) in [
        ("src/a.rs", "src/b.rs"),
        ("src/*", "src/a/b.rs"),
        ("src/**", "docs/**"),
        ("**/*.rs", "**/*.md"),
        ("a/**/b", "a/xb"),
        ("src/[a-c]*", "src/[d-f]*"),
        ("{src,lib}/x", "docs/x"),
        ("*/x", "a/b/x"),
        ("a?c", "a/c"),
        ("[/]", "/"),
    ] {
        assert!(!meet(a, b), "{a} and {b}");
        assert!(!meet(b, a), "{b} and {a}");
    }
}

#[test]
fn patterns_with_a_file_in_common_overlap() {
    for (a, b) in [
        ("src/a.rs", "src/a.rs"),
        ("**", "a/b"),
        ("src/**", "**/*.rs"),
        ("a/**/b", "a/b"),
        ("a/**/b", "a/x/y/b"),
        ("src/*.rs", "src/m*"),
        ("{src,lib}/*", "lib/x"),
        ("[!a]", "b"),
        ("[]a]", "]"),
        ("[a-]", "-"),
        ("\\*", "*"),
        ("x{a,{b,c}}", "xc"),
    ] {
        assert!(meet(a, b), "{a} and {b}");
        assert!(meet(b, a), "{b} and {a}");
    }
}

#[test]
fn what_cannot_be_read_overlaps_with_everything() {
    for broken in ["a[", "a{b", "[z-a]", "a\\"] {
        assert!(meet(broken, "docs/x"), "{broken}");
        assert!(!matches(&globs(&[broken]), "docs/x"), "{broken}");
    }
    assert!(!overlap(&[], &globs(&["**"])));
}

#[test]
fn unusable_patterns_are_named() {
    let text = |glob: &str| glob.to_owned();
    assert_eq!(check(""), Err(InvalidGlob::Empty));
    assert_eq!(check("/etc/*"), Err(InvalidGlob::Absolute(text("/etc/*"))));
    assert_eq!(check("a/../b"), Err(InvalidGlob::Segment(text("a/../b"))));
    assert_eq!(check("./a"), Err(InvalidGlob::Segment(text("./a"))));
    assert_eq!(check("a//b"), Err(InvalidGlob::Segment(text("a//b"))));
    assert_eq!(check("src/"), Err(InvalidGlob::Directory(text("src/"))));
    assert_eq!(check(&"a".repeat(513)), Err(InvalidGlob::TooLong { bytes: 513 }));
    assert!(matches!(check("a[b"), Err(InvalidGlob::Syntax { .. })));
    for good in ["**", "src/**/*.rs", "a..b", "...", "{a,b}/c"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
}

#[test]
fn stars_stay_within_a_directory_and_doubled_ones_do_not() {
    let compiled = Globs::new(&globs(&["src/*.rs", "docs/**"])).unwrap();
    for (path, matched) in
        [("src/a.rs", true), ("src/a/b.rs", false), ("docs/a/b", true), ("docs", false)]
    {
        assert_eq!(compiled.matches(path), matched, "{path}");
        assert_eq!(matches(&globs(&["src/*.rs", "docs/**"]), path), matched, "{path}");
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => "[ab./]",
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        1 => Just("**".to_owned()),
        2 => Just("/**/".to_owned()),
        1 => Just("**/".to_owned()),
        1 => Just("/**".to_owned()),
        1 => "\\[[!^]?[ab\\]-][ab-]{0,3}\\]",
        1 => Just("[[:alpha:]]".to_owned()),
        1 => "\\{[ab*]{0,2}(,[ab/?]{0,2}){0,2}\\}",
        1 => "\\{\\*\\*/[ab],[ab]/\\*\\*\\}",
        1 => "\\\\[ab*]",
    ]
}

fn glob() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// Invariant 6: two claims that share a file are never taken for disjoint.
    #[test]
    fn a_path_that_matches_both_proves_an_overlap(
        a in glob(), b in glob(), path in "[ab.*/]{1,6}"
    ) {
        let (a, b) = (vec![a], vec![b]);
        if matches(&a, &path) && matches(&b, &path) {
            prop_assert!(overlap(&a, &b), "{a:?} {b:?} {path}");
        }
        if matches(&a, &path) {
            let literal: String = path.chars().flat_map(|c| match c {
                '*' => vec!['\\', '*'],
                c => vec![c],
            }).collect();
            prop_assert!(overlap(&a, &[literal]), "{a:?} {path}");
        }
    }
}

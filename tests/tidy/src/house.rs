//! All rules over this tree. Each test shows every place that breaks its rule, not only the first.

use std::env;
use std::process::Command;

use crate::offence::{Offence, demand_none};
use crate::source::Source;
use crate::tests_named::{Claim, claims, misplaced};
use crate::tree::Tree;
use crate::{catalogue, changelog, lints, manifests, processes, prose, rooms, shape};

fn over_sources(rule: impl Fn(&Source) -> Vec<Offence>) -> Vec<Offence> {
    Tree::here().sources().iter().flat_map(rule).collect()
}

fn all_claims() -> Vec<Claim> {
    Tree::here().sources().iter().flat_map(claims).collect()
}

fn page(path: &str) -> String {
    Tree::here()
        .text(path)
        .unwrap_or_else(|| panic!("{path} belongs to the house and is not there"))
}

fn dependencies() -> Vec<rooms::Dependency> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(Tree::here().root)
        .output()
        .expect("cargo runs these tests, so it can be run");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed: {complaint}");
    rooms::read(&String::from_utf8_lossy(&output.stdout))
}

#[test]
fn no_file_is_longer_than_the_ceiling() {
    let files = Tree::here().with_ending(&[".rs", ".proto", ".sh", ".ci/run"]);
    let long = files.iter().flat_map(|(path, text)| shape::long_files(path, text));
    demand_none("file length", long.collect());
}

#[test]
fn no_function_is_longer_than_the_ceiling() {
    demand_none("function length", over_sources(shape::long_functions));
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    demand_none("module doc", over_sources(shape::missing_module_docs));
}

#[test]
fn no_module_is_named_by_its_folder() {
    let files = Tree::here().files;
    demand_none("no mod.rs", files.iter().flat_map(|path| shape::mod_files(path)).collect());
}

#[test]
fn promised_work_names_its_issue() {
    let numbered = |source: &Source| {
        let comments = source.comments.clone().into_iter();
        shape::loose_ends(&source.path, comments.map(|comment| (comment.line, comment.text)))
    };
    let mut loose = over_sources(numbered);
    let others = Tree::here().with_ending(&[".proto", ".sh", ".toml", ".yaml", ".yml", ".ci/run"]);
    loose.extend(others.iter().flat_map(|(path, text)| {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim().to_owned()));
        shape::loose_ends(path, lines)
    }));
    demand_none("promised work", loose);
}

#[test]
fn rooms_know_only_whom_they_may_know() {
    demand_none("arrows", rooms::wrong_arrows(&dependencies()));
}

#[test]
fn pure_rooms_cannot_reach_the_world() {
    demand_none("purity", rooms::impure(&dependencies()));
}

#[test]
fn processes_are_started_in_their_rooms_only() {
    demand_none("processes", over_sources(processes::strangers));
}

#[test]
fn every_dependency_has_its_reason() {
    let found = manifests::unexplained(&page("Cargo.toml"), &page("docs/dependencies.md"));
    demand_none("dependencies", found);
}

#[test]
fn every_member_takes_the_lints_of_the_house() {
    let found = Tree::here().with_ending(&["Cargo.toml"]);
    let found = found.iter().flat_map(|(path, text)| manifests::without_lints(path, text));
    demand_none("lints", found.collect());
}

#[test]
fn nested_lint_settings_repeat_the_roots() {
    let root = page("clippy.toml");
    let nested = Tree::here().with_ending(&["/clippy.toml"]);
    let lost = nested.iter().flat_map(|(path, text)| lints::lost(path, text, &root));
    demand_none("lint settings", lost.collect());
}

#[test]
fn pages_name_only_what_is_there() {
    let tree = Tree::here();
    let pages = tree.with_ending(&[".md"]);
    // The changelog may name what was there once.
    let pages = pages.iter().filter(|(path, _)| path != "CHANGELOG.md");
    let dead =
        pages.flat_map(|(path, text)| prose::dead_paths(path, text, &|path| tree.holds(path)));
    demand_none("paths in pages", dead.collect());
}

#[test]
fn the_changelog_keeps_its_form() {
    demand_none("changelog", changelog::malformed(&page("CHANGELOG.md")));
}

#[test]
fn the_table_of_features_is_whole() {
    let (rows, mut offences) = catalogue::read(&page("docs/features.md"));
    offences.extend(catalogue::incomplete(&rows));
    demand_none("features", offences);
}

#[test]
fn tests_name_only_numbers_of_the_table() {
    let (rows, _) = catalogue::read(&page("docs/features.md"));
    let claims = all_claims();
    let mut offences = catalogue::unknown(&rows, &claims);
    offences.extend(misplaced(&claims));
    demand_none("numbers in tests", offences);
}

#[test]
fn what_is_called_working_is_named_by_a_test() {
    let (rows, _) = catalogue::read(&page("docs/features.md"));
    demand_none("proofs", catalogue::unproven(&rows, &all_claims()));
}

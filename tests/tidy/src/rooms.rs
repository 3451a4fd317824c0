//! The arrows between rooms, read from Cargo's own account of the workspace.
//!
//! A new package or a new arrow fails here on purpose: both are argued first, in `docs/decisions`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::offence::Offence;

/// Which of our packages each of our packages may be built with.
const ARROWS: [(&str, &[&str]); 10] = [
    ("ganger-shared", &[]),
    ("ganger-git", &["ganger-shared"]),
    ("ganger-log", &["ganger-shared"]),
    ("ganger-telemetry", &["ganger-shared"]),
    ("ganger-proto", &["ganger-shared"]),
    ("ganger-coordinator-core", &["ganger-shared"]),
    ("ganger-worker-core", &["ganger-shared"]),
    (
        "ganger-coordinator",
        &[
            "ganger-coordinator-core",
            "ganger-git",
            "ganger-log",
            "ganger-proto",
            "ganger-shared",
            "ganger-telemetry",
        ],
    ),
    (
        "ganger-worker",
        &[
            "ganger-git",
            "ganger-log",
            "ganger-proto",
            "ganger-shared",
            "ganger-telemetry",
            "ganger-worker-core",
        ],
    ),
    (
        "ganger",
        &[
            "ganger-coordinator",
            "ganger-git",
            "ganger-log",
            "ganger-proto",
            "ganger-shared",
            "ganger-telemetry",
            "ganger-worker",
        ],
    ),
];

/// The rooms where nothing can go wrong: no runtime, no socket, no disk, no chance.
const PURE: [&str; 3] = ["ganger-shared", "ganger-coordinator-core", "ganger-worker-core"];

/// Crates that bring one of these into a room.
const IMPURE: [&str; 24] = [
    "async-trait",
    "axum",
    "fastrand",
    "futures",
    "getrandom",
    "h2",
    "hyper",
    "libc",
    "mio",
    "nix",
    "opentelemetry",
    "parking_lot",
    "prost",
    "ractor",
    "rand",
    "reqwest",
    "rustix",
    "sled",
    "socket2",
    "tempfile",
    "tokio",
    "tonic",
    "tower",
    "tracing",
];

const ARROW_FIX: &str =
    "remove it, or argue the arrow in docs/decisions and add it to the table here";
const PURE_FIX: &str = "what needs it belongs to the room that hosts this one";

/// One line of a manifest: a package and what it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The package that asks.
    pub from: String,
    /// Its manifest, relative to the root of the tree.
    pub manifest: String,
    /// The package it asks for.
    pub to: String,
    /// Only its tests ask.
    pub tests_only: bool,
}

/// The dependencies of all our packages, from the answer of
/// `cargo metadata --no-deps --format-version 1`.
///
/// # Panics
/// When the answer does not have the form Cargo promises.
pub fn read(metadata: &str) -> Vec<Dependency> {
    let answer: Value = serde_json::from_str(metadata).expect("cargo metadata answers in JSON");
    let root = text(&answer, "workspace_root");
    let packages = answer["packages"].as_array().expect("cargo metadata lists packages");
    packages.iter().flat_map(|package| of_package(package, &root)).collect()
}

fn of_package(package: &Value, root: &str) -> Vec<Dependency> {
    let manifest = text(package, "manifest_path");
    let manifest = manifest.trim_start_matches(root).trim_start_matches('/').to_owned();
    let asked = package["dependencies"].as_array().expect("a package lists its dependencies");
    asked
        .iter()
        .map(|dependency| Dependency {
            from: text(package, "name"),
            manifest: manifest.clone(),
            to: text(dependency, "name"),
            tests_only: dependency["kind"] == "dev",
        })
        .collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("cargo metadata gives {key} as text")).to_owned()
}

/// Arrows between our packages that the table does not have.
///
/// Packages below `tests/` may know everything, and only tests may know them.
pub fn wrong_arrows(dependencies: &[Dependency]) -> Vec<Offence> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    dependencies
        .iter()
        .filter(|dependency| is_ours(&dependency.to) && !is_test_room(&dependency.manifest))
        .filter(|Dependency { from, to, tests_only, .. }| {
            let allowed = arrows.get(from.as_str()).copied().unwrap_or_default();
            let by_tests = *tests_only && to == "ganger-harness" && !PURE.contains(&from.as_str());
            !allowed.contains(&to.as_str()) && !by_tests
        })
        .map(|Dependency { from, manifest, to, .. }| {
            Offence::at(manifest, 0, format!("{from} knows {to}"), ARROW_FIX)
        })
        .collect()
}

/// Dependencies that let a pure room read a clock, a disk, a socket or chance.
pub fn impure(dependencies: &[Dependency]) -> Vec<Offence> {
    dependencies
        .iter()
        .filter(|dependency| PURE.contains(&dependency.from.as_str()))
        .filter(|dependency| brings_the_world(dependency))
        .map(|Dependency { from, manifest, to, .. }| {
            Offence::at(manifest, 0, format!("{from} is pure and asks for {to}"), PURE_FIX)
        })
        .collect()
}

/// Ids are parsed in shared, so it may know their crate; the cores may not even do that.
fn brings_the_world(dependency: &Dependency) -> bool {
    let family = ["tokio-", "tonic-", "opentelemetry", "futures-", "rand_", "tracing-"];
    let to = dependency.to.as_str();
    IMPURE.contains(&to)
        || family.iter().any(|prefix| to.starts_with(prefix))
        || (dependency.from != "ganger-shared" && ["uuid", "jiff"].contains(&to))
}

fn is_ours(package: &str) -> bool {
    package == "ganger" || package.starts_with("ganger-")
}

fn is_test_room(manifest: &str) -> bool {
    manifest.starts_with("tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(from: &str, to: &str, tests_only: bool) -> Dependency {
        let manifest =
            if from == "ganger-harness" { "tests/harness/Cargo.toml" } else { "x/Cargo.toml" };
        Dependency { from: from.into(), manifest: manifest.into(), to: to.into(), tests_only }
    }

    #[test]
    fn a_package_knows_only_whom_the_table_lets_it_know() {
        let table = [
            ("ganger-coordinator", "ganger-coordinator-core", false, 0),
            ("ganger-coordinator", "ganger-worker", false, 1),
            ("ganger-coordinator", "ganger-worker-core", true, 1),
            ("ganger-worker", "ganger-coordinator", true, 1),
            ("ganger-coordinator-core", "ganger-shared", false, 0),
            ("ganger-coordinator-core", "ganger-proto", false, 1),
            ("ganger-coordinator-core", "ganger-harness", true, 1),
            ("ganger-proto", "ganger-git", false, 1),
            ("ganger-shared", "ganger-log", false, 1),
            ("ganger", "ganger-coordinator", false, 0),
            ("ganger", "ganger-worker-core", false, 1),
            ("ganger", "ganger-harness", true, 0),
            ("ganger", "ganger-harness", false, 1),
            ("ganger-unheard-of", "ganger-shared", false, 1),
            ("ganger-harness", "ganger-coordinator", false, 0),
            ("ganger-log", "serde", false, 0),
        ];
        for (from, to, tests_only, expected) in table {
            let found = wrong_arrows(&[asks(from, to, tests_only)]);
            assert_eq!(found.len(), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn a_pure_room_cannot_reach_the_world() {
        let table = [
            ("ganger-coordinator-core", "tokio", 1),
            ("ganger-coordinator-core", "tokio-util", 1),
            ("ganger-coordinator-core", "serde", 0),
            ("ganger-worker-core", "jiff", 1),
            ("ganger-worker-core", "proptest", 0),
            ("ganger-shared", "uuid", 0),
            ("ganger-shared", "nix", 1),
            ("ganger-coordinator", "tokio", 0),
        ];
        for (from, to, expected) in table {
            assert_eq!(impure(&[asks(from, to, false)]).len(), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn cargo_is_read_as_it_answers() {
        let answer = r#"{"workspace_root":"/w","packages":[{"name":"a","manifest_path":"/w/a/Cargo.toml",
            "dependencies":[{"name":"b","kind":null},{"name":"c","kind":"dev"}]}]}"#;
        let of = |to: &str, tests_only| Dependency {
            from: "a".into(),
            manifest: "a/Cargo.toml".into(),
            to: to.into(),
            tests_only,
        };
        assert_eq!(read(answer), [of("b", false), of("c", true)]);
    }
}

//! What the workspace depends on is written down with its reason. Versions are Cargo's business.

use std::collections::BTreeSet;

use crate::offence::Offence;

const MANIFEST: &str = "Cargo.toml";
const REASONS: &str = "docs/dependencies.md";

/// Dependencies of the root manifest without a line in the page of reasons, and lines without a
/// dependency.
pub fn unexplained(manifest: &str, reasons: &str) -> Vec<Offence> {
    let asked = asked_for(manifest);
    let explained = explained(reasons);
    let missing = asked.difference(&explained).map(|name| {
        let fix = "add `| `crate` | why | rejected alternative |` to docs/dependencies.md";
        Offence::at(MANIFEST, 0, format!("nothing says why `{name}` is there"), fix)
    });
    let left_over = explained.difference(&asked).map(|name| {
        Offence::at(REASONS, 0, format!("`{name}` is explained and not used"), "remove its line")
    });
    missing.chain(left_over).collect()
}

/// The crates under `[workspace.dependencies]` that are not our own.
fn asked_for(manifest: &str) -> BTreeSet<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().to_owned())
        .filter(|name| !name.starts_with('#') && !name.starts_with("ganger-"))
        .collect()
}

/// The crates named in backticks in the first column of the page's tables.
fn explained(reasons: &str) -> BTreeSet<String> {
    reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split(" |").next())
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

/// Manifests of members that do not take the workspace's lints.
pub fn without_lints(path: &str, manifest: &str) -> Vec<Offence> {
    let takes_them =
        manifest.contains("[workspace]") || manifest.contains("[lints]\nworkspace = true");
    let fix = "add `[lints]` with `workspace = true`";
    (!takes_them).then(|| Offence::at(path, 0, "has lints of its own", fix)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dependency_has_its_reason_and_every_reason_its_dependency() {
        let manifest = "[workspace.dependencies]\nganger-log = { path = \"x\" }\n\n# why\nserde = \"1\"\nsled = { version = \"1\" }\n\n[profile.dev]\ndebug = 1\n";
        let table = [
            ("| `serde` | a | b |\n| `sled` | a | b |", ""),
            ("| `serde`, `sled` | a | b |", ""),
            ("| `serde` | a | b |", "nothing says why `sled` is there"),
            ("| `serde`, `sled`, `rand` | a | b |", "`rand` is explained and not used"),
        ];
        for (reasons, expected) in table {
            let found: Vec<String> =
                unexplained(manifest, reasons).into_iter().map(|offence| offence.what).collect();
            assert_eq!(found.join(";"), expected, "{reasons}");
        }
    }

    #[test]
    fn every_member_takes_the_lints_of_the_house() {
        assert_eq!(without_lints("a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"), []);
        assert_eq!(without_lints("Cargo.toml", "[workspace]\nmembers = []\n"), []);
        assert_eq!(without_lints("a/Cargo.toml", "[package]\nname = \"a\"\n").len(), 1);
    }
}

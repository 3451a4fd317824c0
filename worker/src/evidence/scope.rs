//! Whether every change of a tree was allowed: the file set of the unit, and links that lead out.

use ganger_git::{OutsideLink, Snapshot};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::spec::Body;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Paths named in a failure; the patch shows them all.
const NAMED_MAX: usize = 20;

/// A set of globs as plans write them: `*` stays within a directory, `**` does not.
pub fn globs(patterns: &[String]) -> Result<GlobSet, Failure> {
    let wrong = |pattern: &str, error: &globset::Error| {
        let message = format!("`{pattern}` is no glob: {}", error.kind());
        Failure::new(FailureClass::ConfigError, message)
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| wrong(pattern, &error))?);
    }
    set.build().map_err(|error| wrong(&patterns.join(", "), &error))
}

/// What the changes break of the unit's file set, if they do (R040).
pub(super) fn violation(body: &Body, snapshot: &Snapshot) -> Result<Option<Failure>, Failure> {
    let files = match body {
        Body::Command { files, .. } => files,
        Body::Agent(task) => &task.files,
        Body::Check(_) => return Ok(None),
    };
    let allowed = globs(files)?;
    let outside: Vec<&str> = snapshot
        .changed
        .iter()
        .map(|change| change.path.as_str())
        .filter(|path| !allowed.is_match(path))
        .collect();
    if !outside.is_empty() {
        return Ok(Some(outside_files(&outside, files)));
    }
    if !snapshot.outside_links.is_empty() {
        return Ok(Some(outside_links(&snapshot.outside_links)));
    }
    Ok(None)
}

fn outside_files(paths: &[&str], files: &[String]) -> Failure {
    let allowed = if files.is_empty() {
        "the unit may change nothing".to_owned()
    } else {
        format!("the unit may change {}", files.join(", "))
    };
    let message = format!(
        "changed outside its files: {}; {allowed}. Leave those as they were, or widen `files`",
        named(paths)
    );
    Failure::new(FailureClass::ScopeViolation, message)
}

fn outside_links(links: &[OutsideLink]) -> Failure {
    let links: Vec<String> =
        links.iter().map(|link| format!("{} -> {}", link.path, link.target)).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let message = format!(
        "symbolic links may lead out of the tree: {}. Point them at a path inside, without `..` \
         after a name",
        named(&links)
    );
    Failure::new(FailureClass::ScopeViolation, message)
}

fn named(paths: &[&str]) -> String {
    let shown = paths[..paths.len().min(NAMED_MAX)].join(", ");
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use ganger_git::{ChangeKind, ChangedPath, FileMode, OwnGit};
    use ganger_shared::ids::TreeId;

    fn changed(paths: &[&str]) -> Snapshot {
        let change = |path: &&str| ChangedPath {
            path: (*path).to_owned(),
            kind: ChangeKind::Added,
            before: None,
            after: Some(FileMode::Regular),
        };
        Snapshot {
            tree: TreeId::parse(&"a".repeat(40)).unwrap(),
            changed: paths.iter().map(change).collect(),
            outside_links: vec![],
            own_git: OwnGit::Intact,
        }
    }

    fn command(files: &[&str]) -> Body {
        let files = files.iter().map(|glob| (*glob).to_owned()).collect();
        Body::Command { run: "true".to_owned(), files }
    }

    fn check(files: &[&str], paths: &[&str]) -> Option<String> {
        let found = violation(&command(files), &changed(paths)).unwrap();
        found.map(|failure| failure.message)
    }

    /// R040: every changed path must be in the unit's files.
    #[test]
    fn a_change_outside_the_files_is_a_violation_that_names_it() {
        assert_eq!(check(&["src/**"], &["src/a/b.rs"]), None);
        assert_eq!(check(&["**"], &[".env", "a/b"]), None);
        assert_eq!(check(&["*.md"], &["a.md"]), None);
        let message = check(&["*.md"], &["docs/a.md", "b.md"]).unwrap();
        assert!(message.starts_with("changed outside its files: docs/a.md; "), "{message}");
        assert!(check(&[], &["a"]).unwrap().contains("may change nothing"));
        assert_eq!(check(&[], &[]), None);
    }

    #[test]
    fn many_paths_are_counted_not_listed() {
        let paths: Vec<String> = (0..25).map(|n| format!("f{n:02}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let message = check(&[], &paths).unwrap();
        assert!(message.contains("f19 and 5 more"), "{message}");
        assert!(!message.contains("f20"), "{message}");
    }

    #[test]
    fn a_glob_that_is_none_is_the_plans_fault() {
        let failure = violation(&command(&["a{"]), &changed(&["a"])).unwrap_err();
        assert_eq!(failure.class, FailureClass::ConfigError);
    }
}

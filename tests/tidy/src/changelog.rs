//! The form of the changelog. What it says is for people to judge.

use crate::offence::Offence;

const PATH: &str = "CHANGELOG.md";
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Lines that break the form: a title, `## [Unreleased]` first, then versions with their dates,
/// each with known kinds of change, each of these with entries `- area: what`.
pub fn malformed(text: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        offences.push(Offence::at(PATH, 1, "has another title", "begin with `# Changelog`"));
    }
    let mut releases = text.lines().filter(|line| line.starts_with("## "));
    if releases.next() != Some("## [Unreleased]") {
        let fix = "put `## [Unreleased]` above all versions";
        offences.push(Offence::at(PATH, 0, "does not begin with what is unreleased", fix));
    }
    let body = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("## "));
    offences.extend(body.filter_map(|(at, line)| {
        let fix = fault(line)?;
        Some(Offence::at(PATH, at + 1, line, fix))
    }));
    offences
}

/// What to do about one line below the first release, if anything.
fn fault(line: &str) -> Option<&'static str> {
    if let Some(release) = line.strip_prefix("## ") {
        return (!is_release(release)).then_some("write `## [1.2.3] - 2026-01-31`");
    }
    if let Some(kind) = line.strip_prefix("### ") {
        return (!KINDS.contains(&kind)).then_some("use one of the six kinds of Keep a Changelog");
    }
    if let Some(entry) = line.strip_prefix("- ") {
        return (!is_entry(entry)).then_some("write `- area: what`");
    }
    let continues = line.is_empty() || line.starts_with("  ");
    (!continues).then_some("write entries only; an entry's further lines are indented by two")
}

fn is_release(release: &str) -> bool {
    let Some((version, date)) = release.split_once(" - ") else { return release == "[Unreleased]" };
    let inside = version.strip_prefix('[').and_then(|version| version.strip_suffix(']'));
    let numbers = |text: &str, mark: char, lengths: &[usize]| {
        let parts: Vec<&str> = text.split(mark).collect();
        parts.len() == lengths.len()
            && parts.iter().zip(lengths).all(|(part, length)| {
                let right_length = *length == 0 || part.len() == *length;
                !part.is_empty() && right_length && part.bytes().all(|byte| byte.is_ascii_digit())
            })
    };
    inside.is_some_and(|version| numbers(version, '.', &[0, 0, 0]))
        && numbers(date, '-', &[4, 2, 2])
}

fn is_entry(entry: &str) -> bool {
    let Some((area, what)) = entry.split_once(": ") else { return false };
    let is_area =
        |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "-/".contains(char);
    !area.is_empty() && area.chars().all(is_area) && !what.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "# Changelog\n\nSome words.\n\n## [Unreleased]\n\n### Added\n\n";

    #[test]
    fn a_changelog_in_form_passes_whole() {
        let text = format!(
            "{TOP}- core: the run,\n  in two lines.\n\n## [0.1.0] - 2026-01-31\n\n### Fixed\n\n- shared/git: a lock.\n"
        );
        assert_eq!(malformed(&text), []);
    }

    #[test]
    fn each_fault_is_named_at_its_line() {
        let table = [
            (format!("{TOP}- no area at all\n"), 9),
            (format!("{TOP}- Core: capital\n"), 9),
            (format!("{TOP}- core: \n"), 9),
            (format!("{TOP}loose words\n"), 9),
            (format!("{TOP}### News\n"), 9),
            (format!("{TOP}## [1.2] - 2026-01-31\n"), 9),
            (format!("{TOP}## [1.2.3] - 31.1.2026\n"), 9),
            (format!("{TOP}## 1.2.3\n"), 9),
            ("# News\n\n## [Unreleased]\n".to_owned(), 1),
            ("# Changelog\n\n## [1.2.3] - 2026-01-31\n".to_owned(), 0),
        ];
        for (text, line) in table {
            let lines: Vec<usize> = malformed(&text).iter().map(|offence| offence.line).collect();
            assert_eq!(lines, [line], "{text}");
        }
    }
}

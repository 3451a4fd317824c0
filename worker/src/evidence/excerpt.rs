//! The end of an attempt's words, short enough for a line of a table (R180).

use ganger_shared::limits;

/// Lines of an excerpt.
const LINES: usize = 3;
/// Characters of each line.
const LINE_CHARS: usize = 120;

/// The last three lines with text, each cut to 120 characters.
pub(super) fn of(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let cut: Vec<String> =
        last.iter().map(|line| line.chars().take(LINE_CHARS).collect()).collect();
    cut.join("\n").chars().take(limits::EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R180: three lines of 120 characters.
    #[test]
    fn an_excerpt_is_three_short_lines() {
        assert_eq!(of("a\nb\n\nc\nd\n"), "b\nc\nd");
        let long = "é".repeat(500);
        assert_eq!(of(&long), "é".repeat(120));
        assert_eq!(of(""), "");
    }
}

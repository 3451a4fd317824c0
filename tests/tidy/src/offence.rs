//! One broken rule at one place, and how a list of them is shown. Nothing here knows the rules.

use std::fmt;

/// Something at `path:line` that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    /// The file, relative to the root of the tree.
    pub path: String,
    /// The line, counted from 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub fix: &'static str,
}

impl Offence {
    /// An offence at one line.
    pub fn at(path: &str, line: usize, what: impl Into<String>, fix: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), fix }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {} ({})", self.path, self.what, self.fix),
            line => write!(out, "{}:{line}: {} ({})", self.path, self.what, self.fix),
        }
    }
}

/// Ends the test with every offence on its own line, or does nothing when there is none.
///
/// # Panics
/// When there is an offence: that is how a test says so.
pub fn demand_none(rule: &str, mut offences: Vec<Offence>) {
    offences.sort();
    let lines: Vec<String> = offences.iter().map(ToString::to_string).collect();
    assert!(offences.is_empty(), "{rule}: {} broken\n{}", lines.len(), lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offence_reads_as_place_fault_and_fix() {
        let at_line = Offence::at("a/b.rs", 7, "too long", "split it");
        let whole = Offence::at("a/b.rs", 0, "no module doc", "begin with `//!`");
        assert_eq!(at_line.to_string(), "a/b.rs:7: too long (split it)");
        assert_eq!(whole.to_string(), "a/b.rs: no module doc (begin with `//!`)");
    }

    #[test]
    #[should_panic(expected = "size: 2 broken\na.rs:1: x (y)\nb.rs:2: x (y)")]
    fn all_offences_are_shown_in_order_not_only_the_first() {
        let both = vec![Offence::at("b.rs", 2, "x", "y"), Offence::at("a.rs", 1, "x", "y")];
        demand_none("size", both);
    }
}

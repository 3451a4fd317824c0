//! Colour of words: states and what is less important.
//!
//! Nothing is coloured unless a person looks.

/// Whether and how words are coloured.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    colour: bool,
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const FAINT: &str = "2";

impl Style {
    /// Coloured or plain.
    pub fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// The word for a state, in the colour of what it means.
    pub fn state(self, word: &str) -> String {
        let code = match word {
            "completed" | "accepted" | "delivered" | "pass" | "live" | "done" => GREEN,
            "failed" | "aborted" | "fail" | "lost" | "conflict" | "rejected" => RED,
            "held" | "budget_limited" | "blocked" | "paused" | "suspect" | "stopping"
            | "cancelled" | "draining" | "not_measured" => YELLOW,
            "running" | "active" | "leased" | "preparing" => CYAN,
            _ => return word.to_owned(),
        };
        self.paint(code, word)
    }

    /// What matters less.
    pub fn faint(self, text: &str) -> String {
        self.paint(FAINT, text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_plain_unless_a_person_looks() {
        assert_eq!(Style::new(false).state("completed"), "completed");
        assert_eq!(Style::new(true).state("failed"), "\u{1b}[31mfailed\u{1b}[0m");
        assert_eq!(Style::new(true).state("pending"), "pending");
    }
}

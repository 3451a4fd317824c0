//! The last words of an output, short enough for an evidence record.

use std::collections::VecDeque;

/// The most lines of a tail.
pub const TAIL_LINES_MAX: usize = 5;

/// The most characters of a tail.
pub const TAIL_CHARS_MAX: usize = 500;

/// Enough bytes for every character of a tail, and line ends around them.
const BYTES_KEPT: usize = TAIL_CHARS_MAX * 4 + TAIL_LINES_MAX * 2 + 64;

/// The last 5 lines of `bytes`, and of these the last 500 characters; no character is split.
pub fn log_tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n");
    let surplus = last.chars().count().saturating_sub(TAIL_CHARS_MAX);
    last.chars().skip(surplus).collect()
}

/// Remembers just enough of a stream for its `log_tail`.
#[derive(Debug, Default)]
pub(super) struct Tail {
    kept: VecDeque<u8>,
    clipped: bool,
}

impl Tail {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let fresh = &bytes[bytes.len().saturating_sub(BYTES_KEPT)..];
        self.clipped |= fresh.len() < bytes.len();
        self.kept.extend(fresh);
        let surplus = self.kept.len().saturating_sub(BYTES_KEPT);
        self.clipped |= surplus > 0;
        self.kept.drain(..surplus);
    }

    pub(super) fn text(&mut self) -> String {
        if self.clipped {
            // What was clipped may have begun a character; its rest is not an invalid one.
            let rest = self.kept.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.kept.drain(..rest);
            self.clipped = false;
        }
        log_tail(self.kept.make_contiguous())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    /// R108: at most five lines and five hundred characters.
    #[test]
    fn a_tail_is_the_last_five_lines() {
        assert_eq!(log_tail(b"1\n2\n3\n4\n5\n6\n7\n"), "3\n4\n5\n6\n7");
        assert_eq!(log_tail(b""), "");
        assert_eq!(log_tail(b"only\n\n"), "only");
    }

    /// P105: cut by characters, never by bytes.
    #[test]
    fn a_tail_counts_characters_and_splits_none() {
        let text = "🙂".repeat(600);
        assert_eq!(log_tail(text.as_bytes()), "🙂".repeat(500));
        let mut tail = Tail::default();
        text.as_bytes().chunks(7).for_each(|chunk| tail.take(chunk));
        assert_eq!(tail.text(), "🙂".repeat(500));
    }

    #[test]
    fn a_stream_in_pieces_has_the_tail_of_the_whole() {
        let text = "one é\ntwo 🙂\n\nthree\n".repeat(90);
        for size in 1..40 {
            let mut tail = Tail::default();
            text.as_bytes().chunks(size).for_each(|chunk| tail.take(chunk));
            assert_eq!(tail.text(), log_tail(text.as_bytes()));
        }
    }
}

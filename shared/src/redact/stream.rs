//! Redacts an output that comes in pieces, in bounded memory.
//!
//! As much of the end is held back as the longest secret takes, so no secret is cut by the pieces.

use super::Redactor;

/// Redacts piece by piece as the whole would be redacted.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    held: Vec<u8>,
    /// How many bytes at the beginning of `held` are done and only serve as what stood before.
    done: usize,
    margin: usize,
}

impl RedactStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let margin = redactor.longest();
        Self { redactor, held: Vec::new(), done: 0, margin }
    }

    /// Takes a piece and appends what is certain by now to `out`.
    pub fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(piece);
        // Only now and then, or every small piece would move the whole margin.
        if self.held.len() > self.done + 2 * self.margin {
            self.move_on(self.held.len() - self.margin, out);
        }
    }

    /// Appends the rest.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.move_on(self.held.len(), out);
    }

    fn move_on(&mut self, end: usize, out: &mut Vec<u8>) {
        self.done = self.redactor.scan(&self.held, self.done, end, out);
        let before = self.done.saturating_sub(super::shapes::LOOKS_BACK);
        self.held.drain(..before);
        self.done -= before;
    }
}

//! Cutting a stream of bytes into lines in bounded memory. Pure: no streams, no files.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What is missing at the end of a line that was too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// How many bytes, the line end not counted.
    pub bytes: u64,
    /// SHA-256 of exactly these bytes, in hex.
    pub sha256: String,
}

/// A line's text and what is missing of it.
type Text = (String, Option<Cut>);

/// Collects bytes until a line is whole.
#[derive(Debug)]
pub struct LineCutter {
    limit: usize,
    kept: Vec<u8>,
    cut: Option<(u64, Sha256)>,
}

impl LineCutter {
    /// Lines longer than `limit` bytes will be cut.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new(), cut: None }
    }

    /// Takes bytes up to the next line end: that line and the bytes after it, or `None` if all
    /// of them were taken and the line is not whole yet.
    pub fn take<'b>(&mut self, bytes: &'b [u8]) -> Option<(Text, &'b [u8])> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.grow(bytes);
            return None;
        };
        self.grow(&bytes[..end]);
        Some((self.line(), &bytes[end + 1..]))
    }

    /// The last line, if the stream did not end with a line end.
    pub fn finish(&mut self) -> Option<Text> {
        (!self.kept.is_empty() || self.cut.is_some()).then(|| self.line())
    }

    fn grow(&mut self, bytes: &[u8]) {
        if let Some((count, digest)) = &mut self.cut {
            *count += bytes.len() as u64;
            digest.update(bytes);
            return;
        }
        let room = self.limit - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            let whole = whole_characters(&self.kept);
            let mut digest = Sha256::new();
            digest.update(&self.kept[whole..]);
            digest.update(&bytes[room..]);
            self.cut = Some(((self.kept.len() - whole + bytes.len() - room) as u64, digest));
            self.kept.truncate(whole);
        }
    }

    fn line(&mut self) -> Text {
        let cut = self
            .cut
            .take()
            .map(|(bytes, digest)| Cut { bytes, sha256: hex::encode(digest.finalize()) });
        if cut.is_none() && self.kept.last() == Some(&b'\r') {
            self.kept.pop();
        }
        let text = String::from_utf8_lossy(&self.kept).into_owned();
        self.kept.clear();
        // One huge line must not keep its memory for the rest of the stream.
        self.kept.shrink_to(4 << 10);
        (text, cut)
    }
}

/// The length without a character that has only begun at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    let begun = bytes[start..].iter().rposition(|byte| *byte >= 0xC0).map(|at| start + at);
    match begun {
        Some(at) => match std::str::from_utf8(&bytes[at..]) {
            Err(error) if error.error_len().is_none() => at,
            Ok(_) | Err(_) => bytes.len(),
        },
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn cut_in_pieces(limit: usize, pieces: &[&[u8]]) -> Vec<Text> {
        let mut cutter = LineCutter::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some((line, after)) = cutter.take(rest) {
                lines.push(line);
                rest = after;
            }
        }
        lines.extend(cutter.finish());
        lines
    }

    /// P104: a character split between two reads is whole again, at every position.
    #[test]
    fn every_split_of_a_character_is_lossless() {
        let text = "é🙂\né🙂".as_bytes();
        let whole = vec![("é🙂".to_owned(), None), ("é🙂".to_owned(), None)];
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(cut_in_pieces(100, &pieces), whole);
            }
        }
    }

    /// P104: bytes that are no text are replaced, and the next line is as it should be.
    #[test]
    fn invalid_bytes_are_replaced() {
        let lines = cut_in_pieces(100, &[b"a\xFFb\nnext\r\n"]);
        assert_eq!(lines, vec![("a\u{FFFD}b".to_owned(), None), ("next".to_owned(), None)]);
    }

    /// P103, P105: cut at a character, and what was cut is accounted for byte by byte.
    #[test]
    fn a_long_line_is_cut_between_characters() {
        for limit in 0..12 {
            let text = "é🙂é🙂".as_bytes();
            for size in 1..=text.len() {
                let pieces: Vec<&[u8]> = text.chunks(size).collect();
                let (kept, cut) = cut_in_pieces(limit, &pieces).remove(0);
                let cut = cut.unwrap();
                assert!(text.starts_with(kept.as_bytes()) && kept.len() <= limit);
                assert!(limit - kept.len() < 4, "no more is cut than one character needs");
                assert_eq!(cut.bytes, (text.len() - kept.len()) as u64);
                assert_eq!(cut.sha256, hex::encode(Sha256::digest(&text[kept.len()..])));
            }
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole() {
        assert_eq!(cut_in_pieces(3, &[b"abc\nabcd\n"])[0], ("abc".to_owned(), None));
    }
}

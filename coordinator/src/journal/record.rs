//! One stored line: its bytes, and the hash over them.
//!
//! An event is written as exactly
//!
//! ```text
//! {"hash":"<64 hex>","prev_hash":"<64 hex>","stream":"<name>","seq":<n>,"body":<JSON>}
//! ```
//!
//! `hash` is the SHA-256 of the line's bytes from `"prev_hash"` (byte 76 counted from one) to the
//! end, as written; `prev_hash` is the hash of the stream's event before, 64 zeros for the first.
//! So `tail -c +76 | head -c -1 | sha256sum` of an exported line is its hash, and checking never
//! writes a line anew. One more kind of line, `{"store_id":…,"generation":…}`, names the store and
//! begins a generation; it is in no stream.
//!
//! Not here: what a body means, and the order of lines.

use std::fmt::Write;

use ganger_shared::digest::Digest;
use serde::{Deserialize, Serialize};

const HASH_AT: usize = r#"{"hash":""#.len();
const HASHED_FROM: usize = HASH_AT + 64 + r#"","#.len();

/// What the first event of a stream names as its predecessor.
pub(super) const GENESIS: [u8; 32] = [0; 32];

/// One line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Event(Record<'a>),
    Store(StoreMark<'a>),
}

/// An event as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub hash: Digest,
    pub prev_hash: Digest,
    pub stream: &'a str,
    pub seq: u64,
    pub body: &'a str,
    hashed: &'a str,
}

/// The line that names the store and begins a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreMark<'a> {
    pub store_id: &'a str,
    pub generation: u64,
}

impl Record<'_> {
    /// Says whether the hash is the hash of the bytes.
    pub fn hash_is_true(&self) -> bool {
        Digest::of(self.hashed.as_bytes()) == self.hash
    }
}

/// Writes an event's line and returns it with its hash.
pub(super) fn write(stream: &str, seq: u64, prev_hash: Digest, body: &str) -> (String, Digest) {
    let mut line = String::with_capacity(HASHED_FROM + 128 + stream.len() + body.len());
    line.push_str(r#"{"hash":""#);
    line.push_str(&"0".repeat(64));
    line.push_str(r#"","#);
    write!(line, r#""prev_hash":"{prev_hash}","stream":"{stream}","seq":{seq},"body":{body}}}"#)
        .expect("a String takes every write");
    let hash = Digest::of(&line.as_bytes()[HASHED_FROM..]);
    line.replace_range(HASH_AT..HASH_AT + 64, &hash.to_string());
    (line, hash)
}

/// Reads a line; none if it was not written by this module.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    if line.starts_with(r#"{"store_id""#) {
        return serde_json::from_str(line).ok().map(Line::Store);
    }
    let hashed = line.get(HASHED_FROM..)?;
    let rest = line.strip_prefix(r#"{"hash":""#)?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let rest = rest.strip_prefix(r#"","prev_hash":""#)?;
    let (prev_hash, rest) = rest.split_at_checked(64)?;
    let (stream, rest) = rest.strip_prefix(r#"","stream":""#)?.split_once('"')?;
    let (seq, rest) = rest.strip_prefix(r#","seq":"#)?.split_once(',')?;
    let body = rest.strip_prefix(r#""body":"#)?.strip_suffix('}')?;
    Some(Line::Event(Record {
        hash: hash.parse().ok()?,
        prev_hash: prev_hash.parse().ok()?,
        stream,
        seq: seq.parse().ok()?,
        body,
        hashed,
    }))
}

/// The hash an anchor at this line carries; none if it is no line of ours.
pub(super) fn anchor_hash(line: &str) -> Option<Digest> {
    match parse(line)? {
        Line::Event(record) => Some(record.hash),
        Line::Store(_) => Some(Digest::of(line.as_bytes())),
    }
}

impl StoreMark<'_> {
    /// The line that begins this generation.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("a text and a number are always JSON")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use super::*;

    #[test]
    fn a_line_reads_back_and_its_hash_covers_the_bytes_after_it() {
        let prev = Digest::of(b"before");
        let (line, hash) = write("run/r-1", 7, prev, r#"{"a":[1,"}"]}"#);
        let Some(Line::Event(record)) = parse(&line) else { panic!("no event: {line}") };
        assert_eq!((record.hash, record.prev_hash, record.seq), (hash, prev, 7));
        assert_eq!((record.stream, record.body), ("run/r-1", r#"{"a":[1,"}"]}"#));
        assert!(record.hash_is_true());
        assert_eq!(Digest::of(&line.as_bytes()[75..]), hash);
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
    }

    #[test]
    fn any_changed_byte_after_the_hash_makes_it_false() {
        let (line, _) = write("fleet", 1, Digest::from_bytes(GENESIS), r#"{"a":1}"#);
        for at in HASHED_FROM..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            let untrue = match parse(&changed) {
                Some(Line::Event(record)) => !record.hash_is_true(),
                Some(Line::Store(_)) | None => true,
            };
            assert!(untrue, "byte {at}");
        }
    }

    #[test]
    fn a_store_line_reads_back() {
        let mark = StoreMark { store_id: "s-1", generation: 3 };
        assert_eq!(parse(&mark.write()), Some(Line::Store(mark)));
    }
}

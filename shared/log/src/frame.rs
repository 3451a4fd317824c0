//! One frame as one line: writing it, reading it back, and recognising the start of one.
//!
//! Not here: files and batches.

use std::io::Write;

use crate::error::Damage;

/// The CRC's eight digits and the space after them.
const CRC_PREFIX: usize = 9;

/// What stands before a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub log_seq: u64,
    /// The frame's place in its batch, from 0.
    pub index: u32,
    /// The number of frames in its batch.
    pub count: u32,
    /// Where the payload starts in the line.
    pub payload_at: usize,
}

/// Appends one line to `out`.
pub(crate) fn encode(out: &mut Vec<u8>, (log_seq, index, count): (u64, u32, u32), payload: &str) {
    let start = out.len();
    write!(out, "00000000 {log_seq} {index}/{count} {} ", payload.len())
        .expect("a Vec takes every write");
    out.extend_from_slice(payload.as_bytes());
    let crc = crc32fast::hash(&out[start + CRC_PREFIX..]);
    out[start..start + CRC_PREFIX - 1].copy_from_slice(format!("{crc:08x}").as_bytes());
    out.push(b'\n');
}

/// Reads one line, given without its newline.
pub(crate) fn parse(line: &[u8]) -> Result<Header, Damage> {
    let (written, rest) = line.split_at_checked(CRC_PREFIX).ok_or(Damage::Crc)?;
    if crc_of(written) != Some(crc32fast::hash(rest)) {
        return Err(Damage::Crc);
    }
    header(rest).ok_or(Damage::Malformed)
}

/// Reads the eight digits and the space exactly as they are written: a flipped bit that turns a
/// digit into a capital one is damage, too.
fn crc_of(written: &[u8]) -> Option<u32> {
    let (b' ', digits) = written.split_last()? else { return None };
    digits.iter().try_fold(0u32, |crc, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(crc << 4 | u32::from(digit))
    })
}

fn header(rest: &[u8]) -> Option<Header> {
    let mut at = 0;
    let log_seq = number(rest, &mut at, b' ')?;
    let index = number(rest, &mut at, b'/')?;
    let count = number(rest, &mut at, b' ')?;
    let bytes = number(rest, &mut at, b' ')?;
    let payload = &rest[at..];
    let (index, count) = (u32::try_from(index).ok()?, u32::try_from(count).ok()?);
    let whole = payload.len() as u64 == bytes && std::str::from_utf8(payload).is_ok();
    (whole && index < count).then_some(Header {
        log_seq,
        index,
        count,
        payload_at: CRC_PREFIX + at,
    })
}

/// Reads digits up to `end` and leaves `at` behind it.
fn number(bytes: &[u8], at: &mut usize, end: u8) -> Option<u64> {
    let digits = &bytes[*at..];
    let len = digits.iter().take(21).position(|&byte| byte == end)?;
    *at += len + 1;
    digits[..len].iter().try_fold(0u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Says whether `bytes` can be the beginning of the frame `log_seq`, number `index` of its batch,
/// cut off anywhere before its newline.
pub(crate) fn is_cut_off(bytes: &[u8], log_seq: u64, index: u32) -> bool {
    let crc_len = bytes.len().min(CRC_PREFIX - 1);
    if !bytes[..crc_len].iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    let Some(rest) = bytes.get(crc_len..).filter(|rest| !rest.is_empty()) else { return true };
    let expected = format!(" {log_seq} {index}/");
    let known = rest.len().min(expected.len());
    if rest[..known] != expected.as_bytes()[..known] {
        return false;
    }
    let mut at = 0;
    let rest = &rest[known..];
    if number(rest, &mut at, b' ').is_none() {
        return rest.iter().all(u8::is_ascii_digit);
    }
    let after_count = at;
    let Some(length) = number(rest, &mut at, b' ') else {
        return rest[after_count..].iter().all(u8::is_ascii_digit);
    };
    let there = (rest.len() - at) as u64;
    // With the whole payload there the checksum can tell; a longer line has lost its newline.
    there < length || (there == length && parse(bytes).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use super::*;

    fn line(payload: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, (7, 1, 3), payload);
        out
    }

    #[test]
    fn a_frame_reads_back_as_written() {
        let bytes = line(r#"{"a":"ü 1"}"#);
        assert_eq!(bytes.last(), Some(&b'\n'));
        let header = parse(&bytes[..bytes.len() - 1]).unwrap();
        assert_eq!((header.log_seq, header.index, header.count), (7, 1, 3));
        assert_eq!(&bytes[header.payload_at..bytes.len() - 1], r#"{"a":"ü 1"}"#.as_bytes());
    }

    #[test]
    fn every_prefix_is_recognised_and_every_flip_refused() {
        let bytes = line("payload with spaces");
        let body = &bytes[..bytes.len() - 1];
        for cut in 0..bytes.len() {
            assert!(is_cut_off(&bytes[..cut], 7, 1), "prefix of {cut} bytes");
        }
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut flipped = body.to_vec();
                flipped[at] ^= 1 << bit;
                assert!(parse(&flipped).is_err(), "byte {at}, bit {bit}");
            }
        }
        assert!(!is_cut_off(&[body, b"\x0b"].concat(), 7, 1), "a lost newline is no cut");
        assert!(!is_cut_off(&bytes[..20], 8, 1), "another frame's beginning");
    }
}

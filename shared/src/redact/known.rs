//! Looks for values that are known, in the forms that programs write them in.
//!
//! What is searched for is the value and its base64 and hex forms; each byte of these may stand in
//! the text as itself, URL-encoded or JSON-escaped, so mixtures are found too.

use data_encoding::{BASE64, HEXLOWER};

use super::Found;

/// Shorter pieces of base64 are found in ordinary words.
const BASE64_CORE_MIN: usize = 7;
/// Each byte may be written as `\u0041`; base64 may be broken by `\r\n` written as four.
const FORM_BYTES_MAX: usize = 6;

/// Values by name.
#[derive(Clone)]
pub(super) struct Known {
    names: Vec<String>,
    needles: Vec<Needle>,
    /// Bytes that some needle may begin with, so that most of a text costs one look.
    begins: [bool; 256],
}

#[derive(Clone)]
struct Needle {
    name: usize,
    bytes: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// Either case.
    Hex,
    /// Either alphabet, broken into lines or not.
    Base64,
}

impl Default for Known {
    fn default() -> Self {
        Self { names: Vec::new(), needles: Vec::new(), begins: [false; 256] }
    }
}

impl Known {
    pub(super) fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        let name = {
            self.names.push(name.to_owned());
            self.names.len() - 1
        };
        let mut needles = vec![Needle { name, bytes: value.into(), form: Form::Plain }];
        let hex = HEXLOWER.encode(value.as_bytes()).into_bytes();
        needles.push(Needle { name, bytes: hex, form: Form::Hex });
        for bytes in base64_cores(value.as_bytes()) {
            needles.push(Needle { name, bytes, form: Form::Base64 });
        }
        for needle in &needles {
            for first in needle.form.spellings(needle.bytes[0]) {
                self.begins[usize::from(first)] = true;
            }
        }
        // Both begin an encoding of any byte.
        self.begins[usize::from(b'%')] = true;
        self.begins[usize::from(b'\\')] = true;
        self.needles.extend(needles);
    }

    pub(super) fn longest(&self) -> usize {
        let longest = self.needles.iter().map(|needle| needle.bytes.len()).max().unwrap_or(0);
        longest * FORM_BYTES_MAX
    }

    /// Whether a value may begin with this byte.
    pub(super) fn may_begin(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    /// The longest secret at the beginning of `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<Found<'_>> {
        if !self.may_begin(*text.first()?) {
            return None;
        }
        let found = self.needles.iter().filter_map(|needle| Some((needle.at(text)?, needle.name)));
        let (len, name) = found.max_by_key(|(len, _)| *len)?;
        Some(Found { name: &self.names[name], kept: 0, len })
    }
}

impl Needle {
    /// How many bytes of the beginning of `text` this needle takes.
    ///
    /// A value may hold `%41` or `\n` literally, so both readings are tried.
    fn at(&self, text: &[u8]) -> Option<usize> {
        self.read(text, Form::literal_first).or_else(|| self.read(text, Form::encoded_first))
    }

    fn read(&self, text: &[u8], byte: impl Fn(Form, &[u8], u8) -> Option<usize>) -> Option<usize> {
        let mut at = 0;
        for (number, wanted) in self.bytes.iter().enumerate() {
            if number > 0 && self.form == Form::Base64 {
                at += line_break(&text[at..]);
            }
            at += byte(self.form, &text[at..], *wanted)?;
        }
        Some(at)
    }
}

impl Form {
    fn same(self, found: u8, wanted: u8) -> bool {
        match self {
            Self::Plain => found == wanted,
            Self::Hex => found.eq_ignore_ascii_case(&wanted),
            Self::Base64 => standard(found) == standard(wanted),
        }
    }

    /// Every way the byte may stand in a text unencoded.
    fn spellings(self, byte: u8) -> Vec<u8> {
        (0..=u8::MAX).filter(|found| self.literal(&[*found], byte).is_some()).collect()
    }

    /// How many bytes of `text` write the wanted byte.
    fn literal_first(self, text: &[u8], wanted: u8) -> Option<usize> {
        self.literal(text, wanted).or_else(|| self.encoded(text, wanted))
    }

    fn encoded_first(self, text: &[u8], wanted: u8) -> Option<usize> {
        self.encoded(text, wanted).or_else(|| self.literal(text, wanted))
    }

    fn literal(self, text: &[u8], wanted: u8) -> Option<usize> {
        let first = *text.first()?;
        (self.same(first, wanted) || (first == b'+' && wanted == b' ')).then_some(1)
    }

    fn encoded(self, text: &[u8], wanted: u8) -> Option<usize> {
        let (byte, len) = match text.first()? {
            b'%' => (hex_byte(text.get(1..3)?)?, 3),
            b'\\' => escaped(text)?,
            _ => return None,
        };
        self.same(byte, wanted).then_some(len)
    }
}

fn standard(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    }
}

fn escaped(text: &[u8]) -> Option<(u8, usize)> {
    let byte = match text.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'u' => {
            let code = text.get(2..6)?;
            return (code[..2] == *b"00").then(|| hex_byte(&code[2..])).flatten().map(|b| (b, 6));
        }
        other if other.is_ascii_punctuation() => *other,
        _ => return None,
    };
    Some((byte, 2))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = value(*digits.first()?)? * 16 + value(*digits.get(1)?)?;
    u8::try_from(byte).ok()
}

/// The length of a line end at the beginning of `text`, written out or escaped.
fn line_break(text: &[u8]) -> usize {
    [&b"\r\n"[..], b"\n", b"\\r\\n", b"\\n"]
        .iter()
        .find(|ending| text.starts_with(ending))
        .map_or(0, |ending| ending.len())
}

/// What base64 makes of `value` at each of the three alignments, without the characters that hold
/// bits of its neighbours too.
fn base64_cores(value: &[u8]) -> Vec<Vec<u8>> {
    let cores = (0..3).map(|offset| {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(value);
        let encoded = BASE64.encode(&bytes).into_bytes();
        let (first, last) = ((offset * 8).div_ceil(6), (bytes.len() * 8) / 6);
        encoded[first..last].to_vec()
    });
    // At the end of a text the last bits stand in a character of their own.
    let whole = BASE64.encode(value).trim_end_matches('=').as_bytes().to_vec();
    std::iter::once(whole).chain(cores).filter(|core| core.len() >= BASE64_CORE_MIN).collect()
}

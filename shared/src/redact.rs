//! Takes secrets out of text before it is kept or sent: known values by name, and the shapes of
//! well-known tokens (P114, R164).
//!
//! Pure: which values are secret comes in, what is safe to write goes out. A known value is found
//! as it is, URL-encoded, JSON-escaped, as hex and inside base64 at any alignment. Redact *before*
//! cutting: a cut may leave half a value, which nothing can recognise. What is not here: where
//! secrets come from, and who must redact (everybody who writes, and every exporter again).

use std::fmt;

use thiserror::Error;

mod known;
mod shapes;
mod stream;

pub use stream::RedactStream;

use known::Known;

/// Shorter values cannot be told from ordinary text, so they are refused as secrets.
pub const SECRET_BYTES_MIN: usize = 6;
/// The longest value that is looked for.
pub const SECRET_BYTES_MAX: usize = 16 << 10;
/// The most values one redactor knows.
pub const SECRETS_MAX: usize = 256;

/// Why a value cannot be kept out of texts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SecretError {
    /// Every other word would be redacted.
    #[error("guard the secret {name}: it has fewer than {SECRET_BYTES_MIN} bytes")]
    TooShort {
        /// Its name.
        name: String,
    },
    /// Looking for it would cost too much.
    #[error("guard the secret {name}: it has more than {SECRET_BYTES_MAX} bytes")]
    TooLong {
        /// Its name.
        name: String,
    },
    /// One more than can be looked for.
    #[error("guard the secret {name}: there are {SECRETS_MAX} already")]
    TooMany {
        /// Its name.
        name: String,
    },
}

/// Knows secrets and replaces them by `[REDACTED:name]`.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Known,
}

/// The names only: the values are what must not be printed.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("names", &self.known.names()).finish()
    }
}

/// A secret found in a text.
struct Found<'n> {
    /// What it is called.
    name: &'n str,
    /// How many bytes of the text before the secret stay.
    kept: usize,
    /// How many bytes it takes, those that stay included.
    len: usize,
}

impl Redactor {
    /// A redactor that knows no value yet, only shapes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for this value from now on, under this name.
    pub fn guard(&mut self, name: &str, value: &str) -> Result<(), SecretError> {
        let name = || name.to_owned();
        if value.len() < SECRET_BYTES_MIN {
            return Err(SecretError::TooShort { name: name() });
        }
        if value.len() > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong { name: name() });
        }
        if self.known.len() >= SECRETS_MAX {
            return Err(SecretError::TooMany { name: name() });
        }
        self.known.add(&name(), value);
        Ok(())
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        let bytes = self.bytes(text.as_bytes());
        // Only whole characters are ever replaced, so nothing is lost here.
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// The bytes without secrets.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        self.scan(bytes, 0, bytes.len(), &mut out);
        out
    }

    /// A redactor for an output that comes in pieces.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.clone())
    }

    /// Redacts what begins from `at` to `end`; gives how far that went, which may be a little
    /// further.
    fn scan(&self, bytes: &[u8], mut at: usize, end: usize, out: &mut Vec<u8>) -> usize {
        let ordinary =
            |byte: &u8| *byte != b'[' && !self.known.may_begin(*byte) && !shapes::may_begin(*byte);
        while at < end {
            let plain = bytes[at..end].iter().take_while(|byte| ordinary(byte)).count();
            out.extend_from_slice(&bytes[at..at + plain]);
            at += plain;
            if at == end {
                break;
            }
            if let Some(mark) = self.mark(&bytes[at..]) {
                out.extend_from_slice(&bytes[at..at + mark]);
                at += mark;
            } else if let Some(found) = self.find(bytes, at) {
                out.extend_from_slice(&bytes[at..at + found.kept]);
                out.extend_from_slice(b"[REDACTED:");
                out.extend_from_slice(found.name.as_bytes());
                out.push(b']');
                at += found.len;
            } else {
                out.push(bytes[at]);
                at += 1;
            }
        }
        at
    }

    fn find(&self, bytes: &[u8], at: usize) -> Option<Found<'_>> {
        self.known.find(&bytes[at..]).or_else(|| shapes::find(bytes, at))
    }

    /// The length of a mark of ours at the beginning. Only our own names: a stranger's
    /// `[REDACTED:…]` could hide anything.
    fn mark(&self, bytes: &[u8]) -> Option<usize> {
        const OPEN: &[u8] = b"[REDACTED:";
        let rest = bytes.strip_prefix(OPEN)?;
        let len = rest.iter().take(128).position(|byte| *byte == b']')?;
        let name = std::str::from_utf8(&rest[..len]).ok()?;
        let ours = shapes::NAMES.contains(&name) || self.known.names().contains(&name);
        ours.then_some(OPEN.len() + len + 1)
    }

    /// No secret takes more bytes than this.
    fn longest(&self) -> usize {
        shapes::LONGEST.max(self.known.longest())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
    use proptest::prelude::*;

    const VALUE: &str = "p@ss/wörd+\"1\"\n!";

    fn redactor(name: &str, value: &str) -> Redactor {
        let mut redactor = Redactor::new();
        redactor.guard(name, value).unwrap();
        redactor
    }

    fn percent(value: &str) -> String {
        value.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"))
    }

    /// P114: the value is gone in every form it may be written in.
    #[test]
    fn a_known_value_is_redacted_in_every_form() {
        let redactor = redactor("DB", VALUE);
        let json = serde_json::to_string(VALUE).unwrap();
        for form in [
            VALUE.to_owned(),
            json.trim_matches('"').to_owned(),
            percent(VALUE),
            percent(VALUE).to_lowercase(),
            HEXLOWER.encode(VALUE.as_bytes()),
            BASE64.encode(VALUE.as_bytes()).trim_end_matches('=').to_owned(),
            BASE64URL_NOPAD.encode(VALUE.as_bytes()),
        ] {
            let text = redactor.text(&format!("before {form} after"));
            assert_eq!(text, "before [REDACTED:DB] after", "{form}");
        }
    }

    /// P114: `user:value` in a basic authorization hides the value at another alignment.
    #[test]
    fn a_value_inside_a_longer_base64_text_is_redacted() {
        let redactor = redactor("DB", VALUE);
        for before in ["", "a", "ab", "abc"] {
            let encoded = BASE64.encode(format!("{before}{VALUE}:tail").as_bytes());
            let text = redactor.text(&encoded);
            assert!(text.contains("[REDACTED:DB]"), "{before}: {text}");
            let core = &encoded[6..18];
            assert!(!text.contains(core), "{before}: {text}");
        }
    }

    #[test]
    fn wrapped_base64_is_redacted() {
        let value = "0123456789".repeat(12);
        let encoded = BASE64.encode(value.as_bytes());
        let wrapped = format!("{}\n{}\n{}", &encoded[..76], &encoded[76..152], &encoded[152..]);
        assert_eq!(redactor("LONG", &value).text(&wrapped), "[REDACTED:LONG]");
    }

    #[test]
    fn values_that_cannot_be_guarded_are_refused_by_name() {
        let mut redactor = Redactor::new();
        let name = || "A".to_owned();
        assert_eq!(redactor.guard("A", "short"), Err(SecretError::TooShort { name: name() }));
        let long = "x".repeat(SECRET_BYTES_MAX + 1);
        assert_eq!(redactor.guard("A", &long), Err(SecretError::TooLong { name: name() }));
        for _ in 0..SECRETS_MAX {
            redactor.guard("B", "long enough").unwrap();
        }
        assert_eq!(redactor.guard("A", "long enough"), Err(SecretError::TooMany { name: name() }));
    }

    #[test]
    fn a_redactor_never_prints_its_values() {
        let shown = format!("{:?}", redactor("TOKEN", "very-secret"));
        assert_eq!(shown, "Redactor { names: [\"TOKEN\"] }");
    }

    #[test]
    fn a_mark_of_a_stranger_hides_nothing() {
        let redactor = redactor("A", "very-secret");
        assert_eq!(redactor.text("[REDACTED:very-secret]"), "[REDACTED:[REDACTED:A]]");
        assert_eq!(redactor.text("[REDACTED:A]"), "[REDACTED:A]");
    }

    proptest! {
        /// P114: wherever the value stands, whatever stands around it, it is gone.
        #[test]
        fn no_value_survives(
            value in "[ -~]{6,24}",
            before in "[^\\[]{0,20}",
            after in ".{0,20}",
        ) {
            prop_assume!(!value.contains("REDACT"));
            let redactor = redactor("S", &value);
            for form in [value.clone(), percent(&value)] {
                let once = redactor.text(&format!("{before}{form}{after}"));
                let left = once.replace("[REDACTED:S]", "");
                prop_assert!(!left.contains(&form) || left.len() < before.len() + form.len() + after.len());
                prop_assert!(once.contains("[REDACTED:"));
                prop_assert_eq!(redactor.text(&once), once.clone());
            }
        }

        /// P105: any bytes are taken, text stays text.
        #[test]
        fn anything_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let redactor = redactor("S", "sécret value");
            let _any = redactor.bytes(&bytes);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert!(!redactor.text(&text).contains("sécret value"));
        }

        /// An output in pieces is redacted as the whole would be.
        #[test]
        fn pieces_are_redacted_as_the_whole(
            parts in proptest::collection::vec(prop_oneof![
                Just("very-secret".to_owned()),
                Just("dmVyeS1zZWNyZXQ".to_owned()),
                Just("ghp_0123456789abcdefghijABCDEFGHIJ0123456789".to_owned()),
                Just("password=hunter2x ".to_owned()),
                "[a-z =\n]{0,30}",
            ], 0..30),
            size in 1_usize..50,
        ) {
            let redactor = redactor("S", "very-secret");
            let whole = parts.concat();
            let mut stream = redactor.stream();
            let mut out = Vec::new();
            for piece in whole.as_bytes().chunks(size) {
                stream.take(piece, &mut out);
            }
            stream.finish(&mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), redactor.text(&whole));
        }
    }
}

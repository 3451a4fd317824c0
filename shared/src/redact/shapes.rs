//! The shapes of well-known secrets, found without knowing any value.
//!
//! A shape errs on the side of taking too much: a redacted word costs a look at the source, a
//! leaked key costs the key. What is told apart with care is what our own output is full of:
//! counts of tokens, types in source code, calls.

use super::Found;

/// Every name used here.
pub(super) const NAMES: [&str; 15] = [
    "github-token",
    "gitlab-token",
    "slack-token",
    "api-key",
    "google-key",
    "registry-token",
    "aws-key",
    "jwt",
    "bearer",
    "authorization",
    "private-key",
    "url-password",
    "password",
    "secret",
    "token",
];

/// No shape takes more bytes than this.
pub(super) const LONGEST: usize = KEY_BYTES_MAX;
/// No shape looks further back than this to know what it sees.
pub(super) const LOOKS_BACK: usize = 80;

/// The largest private key block.
const KEY_BYTES_MAX: usize = 16 << 10;
/// The longest token; web tokens with many claims are the longest.
const TOKEN_BYTES_MAX: usize = 8 << 10;
/// The longest value that something is set to.
const ASSIGNED_BYTES_MAX: usize = 1 << 10;

/// A prefix that vendors gave their tokens so that they can be found.
struct Prefix {
    text: &'static str,
    /// How many more characters it takes.
    rest_min: usize,
    /// Whether it is only one if no letter or digit stands before.
    starts_word: bool,
    name: &'static str,
}

const fn sure(text: &'static str, rest_min: usize, name: &'static str) -> Prefix {
    Prefix { text, rest_min, starts_word: false, name }
}

const fn at_word(text: &'static str, rest_min: usize, name: &'static str) -> Prefix {
    Prefix { text, rest_min, starts_word: true, name }
}

const PREFIXES: [Prefix; 21] = [
    sure("ghp_", 30, "github-token"),
    sure("gho_", 30, "github-token"),
    sure("ghu_", 30, "github-token"),
    sure("ghs_", 30, "github-token"),
    sure("ghr_", 30, "github-token"),
    sure("github_pat_", 30, "github-token"),
    sure("glpat-", 16, "gitlab-token"),
    sure("xoxa-", 10, "slack-token"),
    sure("xoxb-", 10, "slack-token"),
    sure("xoxe-", 10, "slack-token"),
    sure("xoxp-", 10, "slack-token"),
    sure("xoxr-", 10, "slack-token"),
    sure("xoxs-", 10, "slack-token"),
    sure("xapp-", 10, "slack-token"),
    sure("sk_live_", 16, "api-key"),
    sure("rk_live_", 16, "api-key"),
    at_word("sk-", 20, "api-key"),
    sure("AIza", 30, "google-key"),
    at_word("hf_", 30, "registry-token"),
    at_word("npm_", 30, "registry-token"),
    at_word("pypi-", 50, "registry-token"),
];

/// Bytes that a shape may begin with.
const BEGINS: [bool; 256] = {
    let mut begins = [false; 256];
    let firsts = b"gxsrAhnpebB-:=";
    let mut at = 0;
    while at < firsts.len() {
        begins[firsts[at] as usize] = true;
        at += 1;
    }
    begins
};

/// Second bytes of what begins with a letter or a dash.
const GOES_ON: [bool; 256] = {
    let mut goes_on = [false; 256];
    let seconds = b"hilokaIKSRGNfpyeE-";
    let mut at = 0;
    while at < seconds.len() {
        goes_on[seconds[at] as usize] = true;
        at += 1;
    }
    goes_on
};

/// Whether a shape may begin with this byte: most of a text costs one such look.
pub(super) fn may_begin(byte: u8) -> bool {
    BEGINS[usize::from(byte)]
}

/// The secret that begins at `at`, if the text there has the shape of one.
pub(super) fn find(text: &[u8], at: usize) -> Option<Found<'static>> {
    let (first, second) = (text[at], text.get(at + 1).copied().unwrap_or_default());
    let sign = matches!(first, b':' | b'=');
    if !may_begin(first) || !(sign || GOES_ON[usize::from(second)]) {
        return None;
    }
    let (before, rest) = text.split_at(at);
    let before = &before[before.len().saturating_sub(LOOKS_BACK)..];
    match rest[0] {
        b'-' => private_key(rest),
        b':' => url_password(rest).or_else(|| assigned(before, rest)),
        b'=' => assigned(before, rest),
        _ => prefixed(before, rest)
            .or_else(|| aws_key(before, rest))
            .or_else(|| web_token(rest))
            .or_else(|| bearer(rest)),
    }
}

fn found(name: &'static str, kept: usize, len: usize) -> Found<'static> {
    Found { name, kept, len }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// How many of the first bytes are `wanted`.
fn run(text: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    text.iter().take(TOKEN_BYTES_MAX).take_while(|byte| wanted(**byte)).count()
}

fn starts_word(before: &[u8]) -> bool {
    !before.last().is_some_and(|byte| is_token(*byte))
}

fn has_digit(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit)
}

fn prefixed(before: &[u8], rest: &[u8]) -> Option<Found<'static>> {
    let prefix = PREFIXES.iter().find(|prefix| rest.starts_with(prefix.text.as_bytes()))?;
    let len = run(rest, is_token);
    let enough = len >= prefix.text.len() + prefix.rest_min && has_digit(&rest[..len]);
    let here = !prefix.starts_word || starts_word(before);
    if enough && here { Some(found(prefix.name, 0, len)) } else { None }
}

fn aws_key(before: &[u8], rest: &[u8]) -> Option<Found<'static>> {
    const KINDS: [&[u8]; 7] = [b"AKIA", b"ASIA", b"AROA", b"AIDA", b"AGPA", b"ANPA", b"ANVA"];
    let kind = KINDS.iter().any(|kind| rest.starts_with(kind));
    let len = run(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if kind && len == 20 && starts_word(before) { Some(found("aws-key", 0, len)) } else { None }
}

/// Three parts of base64 with dots between, the first two of them JSON objects.
fn web_token(rest: &[u8]) -> Option<Found<'static>> {
    let header = rest.starts_with(b"eyJ").then(|| run(rest, is_token))?;
    let claims = rest.get(header..)?.strip_prefix(b".")?;
    let claims_len = claims.starts_with(b"eyJ").then(|| run(claims, is_token))?;
    let signature =
        claims.get(claims_len..)?.strip_prefix(b".").map_or(0, |s| 1 + run(s, is_token));
    let len = header + 1 + claims_len + signature;
    if len >= 30 { Some(found("jwt", 0, len.min(TOKEN_BYTES_MAX))) } else { None }
}

fn is_credential(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b'.' | b'+' | b'/' | b'=' | b'~')
}

fn bearer(rest: &[u8]) -> Option<Found<'static>> {
    const WORD: &[u8] = b"bearer ";
    let word = rest.get(..WORD.len())?;
    word.eq_ignore_ascii_case(WORD).then_some(())?;
    let len = run(&rest[WORD.len()..], is_credential);
    let value = &rest[WORD.len()..WORD.len() + len];
    if len >= 16 && has_digit(value) {
        Some(found("bearer", WORD.len(), WORD.len() + len))
    } else {
        None
    }
}

fn private_key(rest: &[u8]) -> Option<Found<'static>> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    const KIND: &[u8] = b"PRIVATE KEY";
    const END: &[u8] = b"-----END ";
    let kind = rest.strip_prefix(BEGIN)?;
    let kind = &kind[..kind.len().min(40)];
    kind.windows(KIND.len()).any(|part| part == KIND).then_some(())?;
    let block = &rest[..rest.len().min(KEY_BYTES_MAX)];
    let end = block.windows(END.len()).position(|part| part == END);
    let len = match end {
        Some(end) => {
            let label = end + END.len();
            let close = block[label..].windows(5).position(|part| part == b"-----");
            close.map_or(block.len(), |close| label + close + 5)
        }
        // Cut short: all that may still be key.
        None => BEGIN.len() + run(&block[BEGIN.len()..], is_key_text),
    };
    Some(found("private-key", 0, len.min(KEY_BYTES_MAX)))
}

fn is_key_text(byte: u8) -> bool {
    is_credential(byte) || byte.is_ascii_whitespace() || matches!(byte, b'\\' | b':' | b',')
}

/// `://user:password@`.
fn url_password(rest: &[u8]) -> Option<Found<'static>> {
    let authority = rest.strip_prefix(b"://")?;
    let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'' | b'<');
    let authority = &authority[..run(authority, |byte| !ends(byte)).min(ASSIGNED_BYTES_MAX)];
    let user_info = &authority[..authority.iter().rposition(|byte| *byte == b'@')?];
    let user = user_info.iter().position(|byte| *byte == b':')?;
    let password = &user_info[user + 1..];
    if password.is_empty() || is_placeholder(password[0]) {
        return None;
    }
    Some(found("url-password", 3 + user + 1, 3 + user_info.len()))
}

/// `password=…`, `"api_key": "…"`, `Authorization: Basic …`.
fn assigned(before: &[u8], rest: &[u8]) -> Option<Found<'static>> {
    let name = secret_name(before)?;
    let (is_set, blanks) = (rest[0] == b'=', run(&rest[1..], |byte| byte == b' ').min(2));
    let mut kept = 1 + blanks;
    let quote = opening_quote(rest.get(kept..)?);
    kept += quote.len();
    if name == "authorization" {
        let scheme = run(&rest[kept..], |byte| byte.is_ascii_alphabetic());
        if rest.get(kept + scheme) == Some(&b' ') {
            kept += scheme + 1;
        }
    }
    let value = &rest[kept..];
    let len = run(value, |byte| !ends_value(byte, quote)).min(ASSIGNED_BYTES_MAX);
    let (value, after) = value.split_at(len);
    let is_value = !value.is_empty()
        && !is_placeholder(value[0])
        && if quote.is_empty() {
            is_bare(name, value, after, is_set && blanks == 0)
        } else {
            len >= 4
        };
    if is_value { Some(found(name, kept, kept + len)) } else { None }
}

/// Without quotes it may also be a type, a call or a count.
fn is_bare(name: &str, value: &[u8], after: &[u8], tight: bool) -> bool {
    let call = matches!(after.first(), Some(b'(' | b'<' | b'[' | b'{'));
    let count = name == "token" && value.iter().all(u8::is_ascii_digit);
    let enough = match (tight, name) {
        (true, _) => value.len() >= 4,
        (false, "authorization") => value.len() >= 8,
        (false, _) => value.len() >= 6 && has_digit(value),
    };
    enough && !call && !count
}

fn opening_quote(text: &[u8]) -> &'static [u8] {
    let quotes: [&[u8]; 3] = [b"\\\"", b"\"", b"'"];
    quotes.into_iter().find(|quote| text.starts_with(quote)).unwrap_or_default()
}

fn ends_value(byte: u8, quote: &[u8]) -> bool {
    match quote.first() {
        Some(first) => byte == *first || byte == b'\n',
        None => byte.is_ascii_whitespace() || b"\"'`,;&()[]{}<>|\\".contains(&byte),
    }
}

/// The value is named, hidden or missing, but not here.
fn is_placeholder(first: u8) -> bool {
    matches!(first, b'$' | b'<' | b'{' | b'[' | b'*' | b'%' | b'(' | b'&')
}

/// What kind of secret the name before the sign speaks of, if it does.
fn secret_name(before: &[u8]) -> Option<&'static str> {
    const WORDS: [(&str, &str); 11] = [
        ("authorization", "authorization"),
        ("password", "password"),
        ("passwd", "password"),
        ("passphrase", "password"),
        ("secret", "secret"),
        ("credential", "secret"),
        ("apikey", "secret"),
        ("api_key", "secret"),
        ("access_key", "secret"),
        ("private_key", "secret"),
        ("token", "token"),
    ];
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"\"").or(before.strip_suffix(b"'")).unwrap_or(before);
    let before = before.strip_suffix(b"\\").unwrap_or(before);
    let start = before.iter().rposition(|byte| !is_token(*byte)).map_or(0, |at| at + 1);
    let key = String::from_utf8_lossy(&before[start..]).to_ascii_lowercase().replace('-', "_");
    let (word, name) = WORDS.iter().find(|(word, _)| key.contains(word))?;
    let counted = *word == "token" && key.contains("tokens");
    (!counted).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;

    fn redacted(text: &str) -> String {
        Redactor::new().text(text)
    }

    /// P114: tokens of well-known shapes.
    #[test]
    fn well_known_shapes_are_redacted() {
        let token = "0123456789abcdefghijABCDEFGHIJ0123456789";
        let web =
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9";
        for (text, wanted) in [
            (format!("x ghp_{token} y"), "x [REDACTED:github-token] y"),
            (format!("github_pat_{token}"), "[REDACTED:github-token]"),
            (format!("glpat-{token}"), "[REDACTED:gitlab-token]"),
            (format!("xoxb-{token}"), "[REDACTED:slack-token]"),
            (format!("sk-ant-{token}"), "[REDACTED:api-key]"),
            ("id AKIAIOSFODNN7EXAMPLE.".to_owned(), "id [REDACTED:aws-key]."),
            (format!("a {web} b"), "a [REDACTED:jwt] b"),
            (format!("Bearer {token}"), "Bearer [REDACTED:bearer]"),
            (
                "Authorization: Basic dXNlcjpwYXNz".to_owned(),
                "Authorization: Basic [REDACTED:authorization]",
            ),
            ("postgres://me:hunter2@db/x".to_owned(), "postgres://me:[REDACTED:url-password]@db/x"),
            ("DB_PASSWORD=hunter2 go".to_owned(), "DB_PASSWORD=[REDACTED:password] go"),
            ("{\"api_key\": \"abcdef\"}".to_owned(), "{\"api_key\": \"[REDACTED:secret]\"}"),
            (
                "{\\\"token\\\":\\\"abcdef\\\"}".to_owned(),
                "{\\\"token\\\":\\\"[REDACTED:token]\\\"}",
            ),
            ("client-secret: abc123def".to_owned(), "client-secret: [REDACTED:secret]"),
        ] {
            assert_eq!(redacted(&text), wanted);
            assert_eq!(redacted(wanted), wanted);
        }
    }

    /// P114: a private key, whole or cut short.
    #[test]
    fn private_keys_are_redacted_as_a_block() {
        let body = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\nygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI\n";
        let begin = "-----BEGIN RSA PRIVATE KEY-----\n";
        let whole = format!("a\n{begin}{body}-----END RSA PRIVATE KEY-----\nb");
        assert_eq!(redacted(&whole), "a\n[REDACTED:private-key]\nb");
        assert_eq!(redacted(&format!("{begin}{body}")), "[REDACTED:private-key]");
        let public = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----";
        assert_eq!(redacted(public), public);
    }

    #[test]
    fn ordinary_output_stays_as_it_is() {
        for text in [
            "tokens_in: 123456, tokens_out=99",
            "let token = lexer.next_token();",
            "fn f(password: String, secret: Option<u8>) -> Token {",
            "the task-management-of-2025-projects is a basic understanding",
            "password=$PASSWORD token={{token}} secret=<hidden>",
            "max_token=4096",
            "see https://example.org/a:b@c and git@example.org:a/b.git",
            "AKIA and ghp_ and eyJ are prefixes; a bearer of news",
            "test redact::known ... ok",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}

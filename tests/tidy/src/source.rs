//! A Rust file split into what is code and what is comment, line by line.
//!
//! A small lexer, not a parser: it knows comments, strings, raw strings, characters and lifetimes,
//! which is all the rules need to never mistake a quoted brace for a brace. It does not know macros
//! or types, and a file that does not compile may be split wrongly.

/// A Rust file, split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, relative to the root of the tree.
    pub path: String,
    /// The text as written.
    pub text: String,
    /// The text with comments and the insides of literals blanked; the lines are the same.
    pub code: String,
    /// The comments in order.
    pub comments: Vec<Comment>,
}

/// One comment, or one line of a comment of many lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The line it stands on, counted from 1.
    pub line: usize,
    /// Its text with the slashes.
    pub text: String,
}

impl Source {
    /// Splits the text of the file at `path`.
    pub fn split(path: &str, text: &str) -> Self {
        let mut lexer =
            Lexer { rest: text, code: String::with_capacity(text.len()), comments: vec![] };
        while lexer.step() {}
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: lexer.code,
            comments: lexer.comments,
        }
    }

    /// The number of the line that holds the byte at `offset` of `code`.
    pub fn line_at(&self, offset: usize) -> usize {
        line_after(&self.code[..offset])
    }

    /// The byte ranges of `code` that are compiled for tests only.
    ///
    /// A file named `tests.rs`, or any file in a folder named `tests`, is such a range as a whole.
    pub fn test_ranges(&self) -> Vec<std::ops::Range<usize>> {
        if self.is_test_file() {
            return std::iter::once(0..self.code.len()).collect();
        }
        let mark = "#[cfg(test)]";
        self.code
            .match_indices(mark)
            .map(|(at, _)| at..item_end(&self.code, at + mark.len()))
            .collect()
    }

    fn is_test_file(&self) -> bool {
        let mut parts = self.path.split('/');
        let name = parts.next_back().unwrap_or_default();
        name == "tests.rs" || parts.any(|part| part == "tests")
    }
}

/// The end of the item that begins after `from`: its closing brace, or its semicolon.
pub fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && byte == b'}' {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

struct Lexer<'a> {
    rest: &'a str,
    code: String,
    comments: Vec<Comment>,
}

impl Lexer<'_> {
    /// Takes one token off the rest; false at the end of the file.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            self.comment(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment_len(self.rest));
        } else if first == '"' {
            self.blank(quoted_len(self.rest, '"'));
        } else if first == '\'' && is_char_literal(self.rest) {
            self.blank(quoted_len(self.rest, '\''));
        } else if is_word(first) {
            self.word();
        } else {
            self.keep(first.len_utf8());
        }
        true
    }

    /// A word, or the raw string it opens.
    fn word(&mut self) {
        let len = self.rest.find(|char| !is_word(char)).unwrap_or(self.rest.len());
        let opens_raw = matches!(&self.rest[..len], "r" | "br" | "cr");
        self.keep(len);
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if opens_raw && self.rest[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = hashes + 1;
            let end = self.rest[body..]
                .find(&close)
                .map_or(self.rest.len(), |at| body + at + close.len());
            self.blank(end);
        }
    }

    fn comment(&mut self, len: usize) {
        let first_line = line_after(&self.code);
        for (below, text) in self.rest[..len].lines().enumerate() {
            self.comments.push(Comment { line: first_line + below, text: text.trim().to_owned() });
        }
        self.blank(len);
    }

    fn keep(&mut self, len: usize) {
        let (taken, rest) = self.rest.split_at(len);
        self.code.push_str(taken);
        self.rest = rest;
    }

    fn blank(&mut self, len: usize) {
        let (taken, rest) = self.rest.split_at(len);
        self.code.extend(taken.chars().map(|char| if char == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// A quote opens a character when it closes again after one character or after an escape; else it
/// begins a lifetime or a label.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// The length of the literal at the start of `rest`, both quotes included.
fn quoted_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The length of the comment at the start of `rest`; comments of this kind nest.
fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The line a text that begins on line 1 has come to.
fn line_after(text: &str) -> usize {
    1 + text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::split("a.rs", text).code
    }

    #[test]
    fn only_code_stays_and_the_lines_stay_where_they_were() {
        let table = [
            ("let a = 1; // {", "let a = 1;     "),
            ("/* a { /* b */ } */x", "                   x"),
            ("f(\"a \\\" } b\");", "f(          );"),
            ("r#\"a \" } \"#;", "r          ;"),
            ("br\"}\" r#type", "br    r#type"),
            ("'{' '\\'' '\\u{7d}' 'a: 'b'", "                  'a:    "),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("\"a\n}\"\nb", "  \n  \nb"),
            ("\"never closed }", "               "),
        ];
        for (text, expected) in table {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_are_kept_with_their_lines() {
        let source =
            Source::split("a.rs", "//! top\nlet a = \"// no\"; // end\n/* one\n   two */\n");
        let found: Vec<(usize, &str)> =
            source.comments.iter().map(|comment| (comment.line, comment.text.as_str())).collect();
        assert_eq!(found, [(1, "//! top"), (2, "// end"), (3, "/* one"), (4, "two */")]);
    }

    #[test]
    fn test_code_is_a_marked_item_or_a_file_of_tests() {
        let table = [
            (
                "src/a.rs",
                "fn f() {}\n#[cfg(test)]\nmod tests { fn t() {} }\nfn g() {}",
                "#[cfg(test)]\nmod tests { fn t() {} }",
            ),
            ("src/a.rs", "#[cfg(test)]\nmod tests;\nfn g() {}", "#[cfg(test)]\nmod tests;"),
            ("src/a/tests.rs", "fn t() {}", "fn t() {}"),
            ("cli/tests/a.rs", "fn t() {}", "fn t() {}"),
            ("src/a.rs", "fn f() {}", ""),
        ];
        for (path, text, expected) in table {
            let source = Source::split(path, text);
            let ranges = source.test_ranges();
            let found: String = ranges.into_iter().map(|range| &source.code[range]).collect();
            assert_eq!(found, expected, "{path}: {text}");
        }
    }
}

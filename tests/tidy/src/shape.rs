//! The shape of a Rust file: its length, its functions' lengths, its first line, its name.

use crate::offence::Offence;
use crate::source::{Source, item_end};

/// The longest file, its unit tests included.
pub const FILE_LINES_MAX: usize = 500;
/// The longest function, from the line of its `fn` to the line of its closing brace.
pub const FUNCTION_LINES_MAX: usize = 60;

/// Files above the ceiling.
pub fn long_files(path: &str, text: &str) -> Vec<Offence> {
    let lines = text.lines().count();
    let too_long = lines > FILE_LINES_MAX;
    let what = || format!("{lines} lines, {FILE_LINES_MAX} allowed");
    too_long
        .then(|| Offence::at(path, 0, what(), "give a part of it its own file"))
        .into_iter()
        .collect()
}

/// Functions above the ceiling.
pub fn long_functions(source: &Source) -> Vec<Offence> {
    functions(&source.code)
        .into_iter()
        .filter_map(|function| {
            let first = source.line_at(function.start);
            let lines = source.line_at(function.end) - first + 1;
            let what =
                format!("`{}` has {lines} lines, {FUNCTION_LINES_MAX} allowed", function.name);
            let fix = "keep the match here, give its arms a function each";
            (lines > FUNCTION_LINES_MAX).then(|| Offence::at(&source.path, first, what, fix))
        })
        .collect()
}

/// Files that do not begin with what they are for.
pub fn missing_module_docs(source: &Source) -> Vec<Offence> {
    let what = "does not begin with a module doc";
    let fix = "begin with `//!`: what this room is for, and what is deliberately not here";
    let begins = source.text.starts_with("//!");
    (!begins).then(|| Offence::at(&source.path, 1, what, fix)).into_iter().collect()
}

/// Modules named by their folder.
pub fn mod_files(path: &str) -> Vec<Offence> {
    let is_mod = path.rsplit('/').next() == Some("mod.rs");
    let fix = "name it like its folder and put it beside it: `run.rs` beside `run/`";
    is_mod.then(|| Offence::at(path, 0, "is a mod.rs", fix)).into_iter().collect()
}

/// Comments that promise work without saying where it is tracked.
pub fn loose_ends(path: &str, numbered: impl IntoIterator<Item = (usize, String)>) -> Vec<Offence> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    numbered
        .into_iter()
        .filter(|(_, text)| marks.iter().any(|mark| text.contains(mark)) && !names_an_issue(text))
        .map(|(line, text)| Offence::at(path, line, text, "do it now, or name the issue: `#12`"))
        .collect()
}

fn names_an_issue(text: &str) -> bool {
    text.split('#').skip(1).any(|after| after.starts_with(|char: char| char.is_ascii_digit()))
}

struct Function<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

/// Every function with a body, nested ones too. `code` has no comments and no literals.
fn functions(code: &str) -> Vec<Function<'_>> {
    code.match_indices("fn ")
        .filter(|(at, _)| {
            !code[..*at].ends_with(|char: char| char.is_alphanumeric() || char == '_')
        })
        .filter_map(|(start, keyword)| {
            let after = &code[start + keyword.len()..];
            let name =
                &after[..after.find(|char: char| !(char.is_alphanumeric() || char == '_'))?];
            let end = item_end(code, start);
            let has_body = code[..end].ends_with('}') && !name.is_empty();
            has_body.then_some(Function { name, start, end: end - 1 })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("//! Doc.\n\nfn f(\n    a: [u8; 2],\n) {{\n{}}}\n", "    g();\n".repeat(lines - 4))
    }

    #[test]
    fn a_file_may_have_as_many_lines_as_allowed_and_not_one_more() {
        let fits = "a\n".repeat(FILE_LINES_MAX);
        assert_eq!(long_files("a.rs", &fits), []);
        let over = format!("{fits}a\n");
        assert_eq!(long_files("a.rs", &over)[0].what, "501 lines, 500 allowed");
    }

    #[test]
    fn a_function_may_have_as_many_lines_as_allowed_and_not_one_more() {
        let fits = Source::split("a.rs", &function_of(FUNCTION_LINES_MAX));
        assert_eq!(long_functions(&fits), []);
        let over = Source::split("a.rs", &function_of(FUNCTION_LINES_MAX + 1));
        let found = long_functions(&over);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].what.as_str()), (3, "`f` has 61 lines, 60 allowed"));
    }

    #[test]
    fn functions_are_found_where_they_are_and_nowhere_else() {
        let table: [(&str, &[&str]); 7] = [
            (
                "fn a() {} pub async fn b<T>(x: [u8; 3]) -> T where T: X { fn c() {} }",
                &["a", "b", "c"],
            ),
            ("trait T { fn without_body(&self); fn with(&self) {} }", &["with"]),
            ("struct S { call: fn (u8) -> u8 }", &[]),
            ("struct S { call: fn(u8) -> u8 }", &[]),
            ("let defn = 1; defn {}", &[]),
            ("// fn no() {}\nlet s = \"fn no() {}\";", &[]),
            ("impl X { const fn k() -> u8 { match 1 { _ => { 2 } } } }", &["k"]),
        ];
        for (text, expected) in table {
            let source = Source::split("a.rs", text);
            let names: Vec<&str> = functions(&source.code).iter().map(|found| found.name).collect();
            assert_eq!(names, expected, "{text}");
        }
    }

    #[test]
    fn a_file_begins_with_its_doc() {
        let table =
            [("//! Doc.\n", true), ("// Doc.\n", false), ("\n//! Doc.\n", false), ("", false)];
        for (text, passes) in table {
            let found = missing_module_docs(&Source::split("a.rs", text));
            assert_eq!(found.is_empty(), passes, "{text:?}");
        }
    }

    #[test]
    fn a_module_lies_beside_its_folder() {
        assert_eq!(mod_files("src/run.rs"), []);
        assert_eq!(mod_files("src/modes.rs"), []);
        assert_eq!(mod_files("src/run/mod.rs").len(), 1);
    }

    #[test]
    fn promised_work_names_its_issue() {
        let mark = concat!("TO", "DO");
        let table = [
            (format!("// {mark}: later"), 1),
            (format!("// {mark}(#12): later"), 0),
            (format!("// {mark}: see # 12"), 1),
            ("// nothing owed".to_owned(), 0),
        ];
        for (text, expected) in table {
            assert_eq!(loose_ends("a.rs", [(1, text.clone())]).len(), expected, "{text}");
        }
    }
}

//! Which tests name which numbers of the catalogue: `/// R124: …` or `/// R124, P003: …` on a test.
//! Whether the number exists is asked in `catalogue`.

use std::collections::BTreeMap;

use crate::offence::Offence;
use crate::source::Source;

/// A number found in front of a doc comment, and the test it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The number: `R124`.
    pub id: String,
    /// The file.
    pub path: String,
    /// The line of the number.
    pub line: usize,
    /// The function's name when it is a test.
    pub test: Option<String>,
}

/// Every number in front of a doc comment of this file.
pub fn claims(source: &Source) -> Vec<Claim> {
    let lines: Vec<&str> = source.text.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let docs = source.comments.iter().filter_map(|comment| {
        let ids = leading_ids(comment.text.strip_prefix("///")?);
        Some((comment.line, ids))
    });
    docs.flat_map(|(line, ids)| {
        let test = test_below(&lines, &code, line);
        let path = source.path.clone();
        ids.into_iter().map(move |id| Claim { id, path: path.clone(), line, test: test.clone() })
    })
    .collect()
}

/// Numbers that stand on something that is no test.
pub fn misplaced(claims: &[Claim]) -> Vec<Offence> {
    claims
        .iter()
        .filter(|claim| claim.test.is_none())
        .map(|claim| {
            let what = format!("{} stands on no test", claim.id);
            Offence::at(
                &claim.path,
                claim.line,
                what,
                "name the number in the doc of the test that proves it",
            )
        })
        .collect()
}

/// The tests by the number they name.
pub fn by_id(claims: &[Claim]) -> BTreeMap<&str, Vec<&str>> {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for claim in claims {
        if let Some(test) = &claim.test {
            tests.entry(&claim.id).or_default().push(test);
        }
    }
    tests
}

/// `R124, P003: words` gives both; words before the first number give none.
fn leading_ids(doc: &str) -> Vec<String> {
    let head = doc.split(':').next().unwrap_or_default();
    let ids: Vec<&str> = head.split([',', ' ', '/']).filter(|word| !word.is_empty()).collect();
    let all_ids = !ids.is_empty() && ids.iter().all(|word| is_id(word));
    if all_ids { ids.into_iter().map(str::to_owned).collect() } else { Vec::new() }
}

/// `R` and three digits, or `P` and three digits; one pain case has two digits and a letter.
pub fn is_id(word: &str) -> bool {
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    match (word.strip_prefix('R'), word.strip_prefix('P')) {
        (Some(feature), _) => digits(feature, 3),
        (None, Some(case)) => digits(case, 3) || case == "98c",
        (None, None) => false,
    }
}

/// The name of the function below `line` when an attribute in between makes it a test.
fn test_below(lines: &[&str], code: &[&str], line: usize) -> Option<String> {
    let mut is_test = false;
    let mut open = 0_usize;
    for (written, code) in lines.iter().zip(code).skip(line) {
        if open > 0 || code.trim_start().starts_with("#[") {
            is_test |= code.contains("test");
            open = (open + code.matches(['[', '(']).count())
                .saturating_sub(code.matches([']', ')']).count());
        } else if !written.trim_start().starts_with("//") {
            let (_, after) = code.split_once("fn ")?;
            let name = after.split(|char: char| !(char.is_alphanumeric() || char == '_')).next()?;
            return is_test.then(|| name.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Option<String>)> {
        let claims = claims(&Source::split("tests/e2e/a.rs", text));
        claims.into_iter().map(|claim| (claim.id, claim.test)).collect()
    }

    fn on(id: &str, test: &str) -> (String, Option<String>) {
        (id.to_owned(), (!test.is_empty()).then(|| test.to_owned()))
    }

    #[test]
    fn a_number_belongs_to_the_test_below_it() {
        let table = [
            ("/// R124: words.\n#[test]\nfn a() {}", vec![on("R124", "a")]),
            (
                "/// R124, P003: words.\n/// More.\n#[tokio::test(flavor = \"x\")]\nasync fn b() {}",
                vec![on("R124", "b"), on("P003", "b")],
            ),
            (
                "/// P98c: words.\n#[tokio::test(\n    worker_threads = 2,\n)]\nasync fn c() {}",
                vec![on("P98c", "c")],
            ),
            ("/// R124: words.\nfn helper() {}\n#[test]\nfn d() {}", vec![on("R124", "")]),
            ("/// R124: words.\nstruct S;", vec![on("R124", "")]),
            ("/// Before R124: words.\n#[test]\nfn e() {}", vec![]),
            ("// R124: words.\n#[test]\nfn f() {}", vec![]),
            ("let s = \"/// R124: no\";", vec![]),
            ("/// RFC: words.\nfn g() {}", vec![]),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_on_anything_but_a_test_are_offences() {
        let placed = claims(&Source::split("a.rs", "/// R001: a.\n#[test]\nfn a() {}\n"));
        assert_eq!(misplaced(&placed), []);
        let stray = claims(&Source::split("a.rs", "\n/// R001: a.\nfn a() {}\n"));
        assert_eq!(misplaced(&stray)[0].line, 2);
    }

    #[test]
    fn tests_are_gathered_by_number() {
        let text = "/// R001: a.\n#[test]\nfn a() {}\n/// R001, R002: b.\n#[test]\nfn b() {}\n/// R003: c.\nfn c() {}\n";
        let claims = claims(&Source::split("a.rs", text));
        let expected = BTreeMap::from([("R001", vec!["a", "b"]), ("R002", vec!["b"])]);
        assert_eq!(by_id(&claims), expected);
    }
}

//! Pages name only what is there. A path is what stands in backticks and begins with one of our
//! folders, or what a link of this tree points to; fenced blocks are examples and are not read.

use crate::offence::Offence;

/// The folders a path begins with, also those that are not there yet: naming them is the fault.
const ROOMS: [&str; 11] = [
    ".ci",
    "cli",
    "console",
    "coordinator",
    "deploy",
    "docs",
    "examples",
    "proto",
    "shared",
    "tests",
    "worker",
];

const FIX: &str = "correct the path, or leave it out until it is there";

/// Paths in one page that lead nowhere. `holds` answers for a path from the root of the tree.
pub fn dead_paths(page: &str, text: &str, holds: &dyn Fn(&str) -> bool) -> Vec<Offence> {
    let mut fenced = false;
    let mut offences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let dead =
                named(line).chain(linked(page, line)).filter(|path| !leads_somewhere(path, holds));
            offences.extend(
                dead.map(|path| Offence::at(page, at + 1, format!("`{path}` is not there"), FIX)),
            );
        }
    }
    offences
}

/// The strings in backticks that look like a path of this tree.
fn named(line: &str) -> impl Iterator<Item = String> {
    line.split('`').skip(1).step_by(2).filter(|word| is_path(word)).map(|word| {
        let file = word.split(['#', ':']).next().unwrap_or_default();
        file.trim_end_matches('/').to_owned()
    })
}

fn is_path(word: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-*#:".contains(char);
    let first = word.split('/').next().unwrap_or_default();
    word.contains('/') && ROOMS.contains(&first) && word.chars().all(is_plain)
}

/// The targets of links, from the root of the tree.
fn linked(page: &str, line: &str) -> impl Iterator<Item = String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let targets = line.split("](").skip(1).filter_map(|after| after.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with(['#', '<']))
        .filter(|target| !target.starts_with("mailto:"))
        .map(move |target| joined(&folder, target.split('#').next().unwrap_or_default()))
}

fn joined(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// A path with a star leads somewhere when the folder before the star is there.
fn leads_somewhere(path: &str, holds: &dyn Fn(&str) -> bool) -> bool {
    match path.split_once('*') {
        Some((before, _)) => holds(before.rsplit_once('/').map_or("", |(folder, _)| folder)),
        None => holds(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(path: &str) -> bool {
        ["shared/git", "docs/glossary.md", "README.md", "proto/ganger/v1"].contains(&path)
    }

    #[test]
    fn a_page_names_only_what_is_there() {
        let table = [
            ("see `shared/git` and `shared/git/`", 0),
            ("see `shared/got`", 1),
            ("see `docs/glossary.md#words` and `docs/glossary.md:12`", 0),
            ("all of `proto/ganger/v1/*.proto`", 0),
            ("all of `proto/ganger/v2/*.proto`", 1),
            ("both `deploy/` and `console/page.ts`", 2),
            ("ids like `unit/lane/n`, refs like `ganger/<run>`, a crate `shared`", 0),
            ("`run/<id>` and `tests/<name>.rs`", 0),
            ("shared/got without backticks", 0),
            ("[words](glossary.md) [up](../README.md#top) [away](https://a.b/c)", 0),
            ("[lost](nowhere.md)", 1),
            ("```\n`shared/got`\n```\n`shared/got`", 1),
        ];
        for (text, expected) in table {
            assert_eq!(dead_paths("docs/page.md", text, &holds).len(), expected, "{text}");
        }
    }

    #[test]
    fn the_offence_stands_at_its_line() {
        let found = dead_paths("README.md", "a\n\n`docs/none.md`\n", &holds);
        assert_eq!(found, [Offence::at("README.md", 3, "`docs/none.md` is not there", FIX)]);
    }
}

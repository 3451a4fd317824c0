//! Who may start a process. Everything is found in code, so that prose about commands is free.

use crate::offence::Offence;
use crate::source::Source;

/// The rooms that start processes: git, an attempt's process, and our own two programs.
const ROOMS: [&str; 8] = [
    "shared/git/",
    "worker/src/process.rs",
    "worker/src/process/",
    "worker/src/shim.rs",
    "worker/src/shim/",
    "cli/src/up.rs",
    "cli/src/up/",
    "examples/",
];

const FIX: &str =
    "only shared/git, worker/src/process.rs and cli/src/up.rs start processes: ask them";

/// Mentions of a process type, and of the raw calls below it, in a room that has no business there.
pub fn strangers(source: &Source) -> Vec<Offence> {
    if ROOMS.iter().any(|room| source.path.starts_with(room)) || source.path.ends_with("build.rs") {
        return Vec::new();
    }
    let tests = source.test_ranges();
    mentions(&source.code)
        .into_iter()
        .filter(|(at, _)| !tests.iter().any(|range| range.contains(at)))
        .map(|(at, what)| Offence::at(&source.path, source.line_at(at), what, FIX))
        .collect()
}

fn mentions(code: &str) -> Vec<(usize, String)> {
    let direct = ["process::Command", "posix_spawn", "unistd::fork", "unistd::exec", "libc::fork"];
    let mut found: Vec<(usize, String)> = direct
        .iter()
        .flat_map(|name| code.match_indices(name))
        .map(|(at, name)| (at, format!("mentions `{name}`")))
        .collect();
    found.extend(grouped_imports(code));
    found
}

/// `use std::process::{Child, Command}`.
fn grouped_imports(code: &str) -> impl Iterator<Item = (usize, String)> {
    code.match_indices("process::{").filter_map(|(at, open)| {
        let group = code[at + open.len()..].split('}').next()?;
        let takes_command =
            group.split(',').any(|name| name.split_whitespace().next() == Some("Command"));
        takes_command.then(|| (at, "imports `Command` of `process`".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rooms_for_it_start_processes() {
        let import = "use std::process::Command;";
        let table = [
            ("coordinator/src/run.rs", import, 1),
            ("coordinator/src/run.rs", "use tokio::process::{Child, Command};", 1),
            ("coordinator/src/run.rs", "use std::process::{\n    Command as Program,\n};", 1),
            ("coordinator/src/run.rs", "nix::unistd::execv(a, b);", 1),
            ("coordinator/src/run.rs", "use std::process::{ExitCode, CommandExt};", 0),
            ("coordinator/src/run.rs", "use crate::Command; // std::process::Command", 0),
            ("coordinator/src/run.rs", "#[cfg(test)]\nmod tests { use std::process::Command; }", 0),
            ("coordinator/tests/it/git.rs", import, 0),
            ("tests/harness/src/server.rs", import, 0),
            ("proto/build.rs", import, 0),
            ("shared/git/src/lib.rs", import, 0),
            ("shared/src/lib.rs", import, 1),
            ("worker/src/process.rs", import, 0),
            ("worker/src/process/ladder.rs", import, 0),
            ("worker/src/processes.rs", import, 1),
            ("cli/src/up.rs", import, 0),
            ("cli/src/run.rs", import, 1),
        ];
        for (path, text, expected) in table {
            let found = strangers(&Source::split(path, text));
            assert_eq!(found.len(), expected, "{path}: {text}");
        }
    }
}

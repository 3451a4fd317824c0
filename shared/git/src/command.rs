//! The one door to the git command line.
//!
//! Every call gets the same environment (nothing of ours leaks in, no user or system configuration
//! is read, nothing prompts), the same forced options (no hook, no file system monitor, no external
//! program, no transport), a deadline, a bound on what is read, and its own process group, so that
//! whatever it started ends with it. Reading the answers is the callers' work.

use std::ffi::{OsStr, OsString};
use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::error::Error;
use crate::program::Git;

mod run;

/// Options that stand before every subcommand.
///
/// A repository's own configuration can name programs; each of these takes one such name away.
/// No transport is ever needed: bundles are read and written as files.
const FORCED: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sshCommand=",
    "core.gitProxy=",
    "core.askPass=",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "core.quotePath=false",
    "core.autocrlf=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "merge.conflictStyle=merge",
];

/// The whole environment of a call, but for `PATH` and what the call itself needs.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_ADVICE", "0"),
    ("GIT_AUTHOR_NAME", "ganger"),
    ("GIT_AUTHOR_EMAIL", "ganger@localhost"),
    ("GIT_COMMITTER_NAME", "ganger"),
    ("GIT_COMMITTER_EMAIL", "ganger@localhost"),
];

/// Which repository a call works on, named outright so that git never looks around for one.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    dir: PathBuf,
    env: Vec<(&'static str, OsString)>,
}

impl Place {
    /// The repository whose git directory is `git_dir`, without a tree of files.
    pub(crate) fn repository(git_dir: &Path) -> Self {
        let env = vec![("GIT_DIR", git_dir.into())];
        Self { dir: git_dir.to_owned(), env }
    }

    /// The files at `work_tree`, read by the repository at `git_dir`.
    pub(crate) fn work_tree(git_dir: &Path, work_tree: &Path) -> Self {
        let mut place = Self::repository(git_dir);
        place.env.push(("GIT_WORK_TREE", work_tree.into()));
        work_tree.clone_into(&mut place.dir);
        place
    }

    /// A directory whose repository git finds by itself.
    pub(crate) fn discover(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), env: Vec::new() }
    }

    /// No repository at all.
    pub(crate) fn nowhere() -> Self {
        Self::discover(Path::new("/"))
    }

    /// The same place with another index file.
    pub(crate) fn index(mut self, index: &Path) -> Self {
        self.env.push(("GIT_INDEX_FILE", index.into()));
        self
    }

    /// The same place with new objects going to another store.
    pub(crate) fn objects(mut self, objects: &Path) -> Self {
        self.env.push(("GIT_OBJECT_DIRECTORY", objects.into()));
        self
    }

    /// The same place with the objects of another store beside its own.
    pub(crate) fn beside_objects(mut self, objects: &Path) -> Self {
        // Quoted, because the list is separated by colons and a path may hold one.
        let mut quoted = OsString::from("\"");
        let text = objects.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
        quoted.push(text);
        quoted.push("\"");
        self.env.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted));
        self
    }

    /// What errors name.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// An answer of git at this place that could not be read.
    pub(crate) fn unexpected(&self, operation: &'static str, output: &[u8]) -> Error {
        Error::unexpected(operation, &self.dir, output)
    }
}

/// What a call reads on its standard input.
#[derive(Debug)]
enum Input {
    Nothing,
    Bytes(Vec<u8>),
    /// From the file's current position on.
    File(std::fs::File),
}

/// What commands read on their standard input: each item with a sign before and an end after it.
pub(crate) fn lines<T: Display>(
    sign: &str,
    items: impl IntoIterator<Item = T>,
    end: char,
) -> String {
    items.into_iter().fold(String::new(), |mut all, item| {
        write!(all, "{sign}{item}{end}").expect("writing to a string does not fail");
        all
    })
}

/// What happens when git writes more than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Refuse,
    Truncate,
}

/// One call of git, being put together.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    git: &'a Git,
    operation: &'static str,
    place: &'a Place,
    env: Vec<(&'static str, OsString)>,
    args: Vec<OsString>,
    input: Input,
    deadline: Duration,
    answer_max: u64,
    overflow: Overflow,
    into_file: Option<std::fs::File>,
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit code; none only where the answer was cut.
    pub(crate) code: Option<i32>,
    /// What it wrote to its standard output, up to the bound.
    pub(crate) stdout: Vec<u8>,
    /// The last line with text on its standard error.
    pub(crate) message: String,
    /// Whether there was more.
    pub(crate) truncated: bool,
    /// How many bytes went into a file instead of `stdout`.
    pub(crate) written: u64,
}

impl Answer {
    /// The answer as text, without the end of its last line.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// The parts of an answer that NUL ends.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty())
    }
}

impl<'a> Call<'a> {
    /// A quick call without arguments yet; `operation` is what errors call it.
    pub(crate) fn new(git: &'a Git, operation: &'static str, place: &'a Place) -> Self {
        Self {
            git,
            operation,
            place,
            env: Vec::new(),
            args: Vec::new(),
            input: Input::Nothing,
            deadline: git.limits().quick,
            answer_max: git.limits().answer_max,
            overflow: Overflow::Refuse,
            into_file: None,
        }
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds to the environment.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Gives git something to read.
    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Gives git a file to read, from its current position on.
    pub(crate) fn input_file(mut self, file: std::fs::File) -> Self {
        self.input = Input::File(file);
        self
    }

    /// Gives the call the deadline of work that grows with the repository.
    pub(crate) fn bulk(mut self) -> Self {
        self.deadline = self.git.limits().bulk;
        self
    }

    /// Reads at most `max` bytes and calls the rest truncated.
    pub(crate) fn truncate_at(mut self, max: u64) -> Self {
        self.answer_max = max;
        self.overflow = Overflow::Truncate;
        self
    }

    /// Sends the answer to `file`, refusing more than `max` bytes.
    pub(crate) fn into_file(mut self, file: std::fs::File, max: u64) -> Self {
        self.into_file = Some(file);
        self.answer_max = max;
        self
    }

    /// Runs the call; any exit code but 0 is an error.
    pub(crate) async fn run(self) -> Result<Answer, Error> {
        let (operation, dir) = (self.operation, self.place.dir.clone());
        let answer = self.run_any().await?;
        match answer.code {
            Some(0) => Ok(answer),
            None if answer.truncated => Ok(answer),
            code => Err(Error::Failed { operation, dir, code, message: answer.message }),
        }
    }

    /// Runs the call; every exit code is an answer.
    pub(crate) async fn run_any(self) -> Result<Answer, Error> {
        run::run(self).await
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.git.program());
        command.env_clear().envs(ENVIRONMENT.iter().copied());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.place.env.iter().chain(&self.env).map(|(name, value)| (name, value)));
        let mut trusted = OsString::from("safe.directory=");
        trusted.push(&self.place.dir);
        command.arg("-c").arg(trusted);
        for option in FORCED {
            command.args(["-c", option]);
        }
        command.args(&self.args).current_dir(&self.place.dir);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        command
    }
}

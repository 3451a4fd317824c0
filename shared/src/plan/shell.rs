//! A shell command as a tree of lists, pipelines and commands.
//!
//! Just enough of the POSIX shell (and of `[[ … ]]`, `$'…'` and `<<<`) to know what a command's exit
//! status comes from: quotes, comments, substitutions, groups, compound commands and here-documents
//! are honoured. Nothing is expanded or run. What is not understood is `Command::Opaque`, about
//! which nobody may claim anything.

mod lex;
mod parse;

pub use lex::Word;
pub use parse::parse;

/// Commands in sequence; the last one's status counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// What is separated by `;`, `&` or a new line.
    pub items: Vec<Item>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The first pipeline.
    pub first: Pipeline,
    /// What follows it, and when.
    pub rest: Vec<(Joint, Pipeline)>,
    /// Whether it ends in `&`, so that nobody waits for it.
    pub background: bool,
}

/// When a pipeline runs after the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// `&&`: if that succeeded.
    And,
    /// `||`: if that failed.
    Or,
}

/// Commands joined by `|`; the last one's status counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Whether `!` turns its status round.
    pub negated: bool,
    /// The commands.
    pub commands: Vec<Command>,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A program or builtin with its words, and whether it writes to or reads from a file.
    Simple {
        /// The words, the program first; assignments before it are left out.
        words: Vec<Word>,
        /// Whether there are assignments before it.
        assigns: bool,
        /// Whether an input or output is redirected; opening the file may fail.
        redirected: bool,
    },
    /// `{ …; }` or `( … )`.
    Group {
        /// What is inside.
        script: Script,
        /// Whether an input or output is redirected; opening the file may fail.
        redirected: bool,
        /// Whether it is a subshell, whose `exit` and `set` end with it.
        subshell: bool,
    },
    /// `for`, `while` and `until`.
    Loop {
        /// What is asked before each round; the words of a `for`.
        condition: Script,
        /// What is repeated.
        body: Script,
    },
    /// `if`.
    If {
        /// The commands of each branch.
        branches: Vec<Script>,
        /// Whether there is an `else`; without it, no branch taken is a success.
        complete: bool,
        /// The conditions.
        conditions: Vec<Script>,
    },
    /// A function is defined; that always succeeds.
    Function,
    /// Something this reader does not understand.
    Opaque,
}

//! Checks that prove nothing: commands that succeed whatever happens (R107).
//!
//! A claim is made only where the shell's own rules leave no way to fail; whatever is not
//! understood is taken to be able to fail. It is about exit code 0: a check that expects another
//! code is not judged here.

use std::fmt;

use super::shell::{self, Command, Item, Joint, Pipeline, Script, Word};
use super::walk::shown;

/// Why a command cannot fail; reads after "check `NAME` cannot fail: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There is no command.
    Empty,
    /// The last `||` leads to a command that always succeeds.
    OrElse(String),
    /// The last command of the pipeline always succeeds, and only its status counts.
    PipeEnd(String),
    /// The last command of the sequence always succeeds, and only its status counts.
    Last(String),
    /// It is nothing but a command that always succeeds.
    Only(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::OrElse(tail) => write!(f, "`|| {tail}` turns every failure into a success"),
            Self::PipeEnd(tail) => write!(
                f,
                "its status is that of `{tail}` at the end of the pipeline, which always succeeds"
            ),
            Self::Last(tail) => {
                write!(f, "its status is that of `{tail}` at the end, which always succeeds")
            }
            Self::Only(command) => write!(f, "`{command}` always succeeds"),
        }
    }
}

/// Why this shell command succeeds whatever happens; nothing if it can fail, or might.
pub fn cannot_fail(run: &str) -> Option<Reason> {
    let script = shell::parse(run)?;
    let flow = Options::default().script(&script);
    (!flow.fails && !flow.exits_badly).then(|| reason(&script))
}

/// What may become of a command.
#[allow(clippy::struct_excessive_bools, reason = "each outcome may or may not be possible")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flow {
    succeeds: bool,
    fails: bool,
    /// The shell itself may end here with success.
    exits_well: bool,
    /// The shell itself may end here with failure.
    exits_badly: bool,
}

const NOTHING: Flow = Flow { succeeds: false, fails: false, exits_well: false, exits_badly: false };
const SUCCESS: Flow = Flow { succeeds: true, ..NOTHING };
const FAILURE: Flow = Flow { fails: true, ..NOTHING };
const EITHER: Flow = Flow { succeeds: true, fails: true, ..NOTHING };

impl Flow {
    fn continues(self) -> bool {
        self.succeeds || self.fails
    }

    /// This or that may happen.
    fn or(self, other: Self) -> Self {
        Self {
            succeeds: self.succeeds || other.succeeds,
            fails: self.fails || other.fails,
            exits_well: self.exits_well || other.exits_well,
            exits_badly: self.exits_badly || other.exits_badly,
        }
    }

    /// Only the ways in which the shell itself may end.
    fn exits(self) -> Self {
        Self { succeeds: false, fails: false, ..self }
    }

    /// In a subshell an exit is only a status.
    fn contained(self) -> Self {
        Self {
            succeeds: self.succeeds || self.exits_well,
            fails: self.fails || self.exits_badly,
            ..NOTHING
        }
    }
}

/// The shell options that change what a status means.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    errexit: bool,
    pipefail: bool,
    nounset: bool,
}

impl Options {
    fn script(&mut self, script: &Script) -> Flow {
        let mut flow = SUCCESS;
        for item in &script.items {
            if !flow.continues() {
                break;
            }
            let before = flow.exits();
            let next = self.item(item);
            flow = before.or(next);
            flow.exits_badly |= self.errexit && next.fails;
        }
        flow
    }

    fn item(&mut self, item: &Item) -> Flow {
        let mut flow = self.pipeline(&item.first);
        for (joint, pipeline) in &item.rest {
            let next = self.pipeline(pipeline);
            flow = match joint {
                Joint::And if flow.succeeds => Flow { succeeds: false, ..flow }.or(next),
                Joint::Or if flow.fails => Flow { fails: false, ..flow }.or(next),
                Joint::And | Joint::Or => flow,
            };
        }
        if item.background { SUCCESS } else { flow }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let flow = match pipeline.commands.as_slice() {
            [only] => self.command(only),
            commands => {
                let flows: Vec<Flow> =
                    commands.iter().map(|command| (*self).command(command).contained()).collect();
                let mut flow = flows.last().copied().unwrap_or(EITHER);
                flow.fails |= self.pipefail && flows.iter().any(|flow| flow.fails);
                flow
            }
        };
        if pipeline.negated {
            Flow { succeeds: flow.fails, fails: flow.succeeds, ..flow }
        } else {
            flow
        }
    }

    fn command(&mut self, command: &Command) -> Flow {
        match command {
            Command::Simple { words, assigns: _, redirected } => {
                let flow = self.simple(words);
                if *redirected { flow.or(FAILURE) } else { flow }
            }
            Command::Group { script, redirected, subshell } => {
                let flow = if *subshell {
                    (*self).script(script).contained()
                } else {
                    self.script(script)
                };
                if *redirected { flow.or(FAILURE) } else { flow }
            }
            Command::Loop { condition, body } => {
                let asked = self.script(condition).exits();
                asked.or(SUCCESS).or(self.script(body))
            }
            Command::If { branches, complete, conditions } => {
                let asked = conditions
                    .iter()
                    .fold(NOTHING, |flow, condition| flow.or(self.script(condition).exits()));
                let taken =
                    branches.iter().fold(asked, |flow, branch| flow.or(self.script(branch)));
                if *complete { taken } else { taken.or(SUCCESS) }
            }
            Command::Function => SUCCESS,
            Command::Opaque => EITHER,
        }
    }

    fn simple(&mut self, words: &[Word]) -> Flow {
        let Some((program, arguments)) = words.split_first() else { return SUCCESS };
        if program.expands {
            return EITHER;
        }
        // `${x:?}` ends the shell when x is unset; with `set -u` any expansion may.
        let stops =
            arguments.iter().any(|word| word.expands && (self.nounset || may_be_unset(&word.text)));
        let flow = match program.text.as_str() {
            "true" | ":" | "echo" | "printf" | "sleep" => SUCCESS,
            "false" => FAILURE,
            "set" => self.set(arguments),
            "exit" => exit(arguments),
            // What a trap does at the end, or a program in the shell's place, is not known here.
            "trap" | "exec" => {
                Flow { succeeds: true, fails: true, exits_well: true, exits_badly: true }
            }
            "sh" | "bash" | "dash" => inner(arguments),
            "command" | "time" => self.simple(arguments),
            name if passes_on(name, arguments) => SUCCESS,
            _ => EITHER,
        };
        if stops { flow.or(FAILURE) } else { flow }
    }

    fn set(&mut self, arguments: &[Word]) -> Flow {
        let mut long = None;
        for word in arguments {
            let text = word.text.as_str();
            if let Some(state) = long.take() {
                self.switch(text, state);
            } else if let Some(letters) = text.strip_prefix(['-', '+']) {
                let state = text.starts_with('-');
                self.errexit = if letters.contains('e') { state } else { self.errexit };
                self.nounset = if letters.contains('u') { state } else { self.nounset };
                long = letters.ends_with('o').then_some(state);
            }
        }
        SUCCESS
    }

    fn switch(&mut self, option: &str, state: bool) {
        match option {
            "errexit" => self.errexit = state,
            "pipefail" => self.pipefail = state,
            "nounset" => self.nounset = state,
            _ => {}
        }
    }
}

fn exit(arguments: &[Word]) -> Flow {
    match arguments.first().map(|word| (word.text.as_str(), word.expands)) {
        Some(("0", false)) => Flow { exits_well: true, ..NOTHING },
        Some((code, false)) if code.bytes().all(|b| b.is_ascii_digit()) => {
            Flow { exits_badly: true, ..NOTHING }
        }
        Some(_) | None => Flow { exits_well: true, exits_badly: true, ..NOTHING },
    }
}

/// `sh -c 'script'`: what its script may do.
fn inner(arguments: &[Word]) -> Flow {
    let [option, script] = arguments else { return EITHER };
    if option.text != "-c" || script.expands {
        return EITHER;
    }
    shell::parse(&script.text)
        .map_or(EITHER, |script| Options::default().script(&script).contained())
}

/// Programs that hand on what they read and succeed whatever that is.
fn passes_on(program: &str, arguments: &[Word]) -> bool {
    let only_options = || {
        let mut takes_value = false;
        arguments.iter().all(|word| {
            let option = word.text.len() > 1 && word.text.starts_with('-');
            let fits = option || takes_value;
            // `-n 5`, but not `-5`: only a letter may be followed by its value.
            takes_value = option && word.text.len() == 2 && !word.text.ends_with(char::is_numeric);
            fits && !word.expands
        })
    };
    match program {
        "tee" | "tr" => true,
        "cat" | "head" | "tail" | "wc" | "uniq" | "nl" | "cut" | "rev" => only_options(),
        "sort" => only_options() && !arguments.iter().any(|word| word.text.to_lowercase() == "-c"),
        // A sed script may end with a status of its own by `q` and `Q`.
        "sed" => {
            let [script] = arguments else { return false };
            !script.expands && !script.text.to_lowercase().contains('q')
        }
        _ => false,
    }
}

fn reason(script: &Script) -> Reason {
    let Some(item) = script.items.last() else { return Reason::Empty };
    let last = item.rest.last().map_or(&item.first, |(_, pipeline)| pipeline);
    let tail = said(last);
    if item.rest.iter().any(|(joint, _)| *joint == Joint::Or) {
        return Reason::OrElse(tail);
    }
    if last.commands.len() > 1 {
        return Reason::PipeEnd(last.commands.last().map(command_said).unwrap_or_default());
    }
    if script.items.len() > 1 || !item.rest.is_empty() {
        return Reason::Last(tail);
    }
    match last.commands.first() {
        Some(Command::Loop { body, .. }) if !body.items.is_empty() => reason(body),
        Some(Command::Group { script, .. }) if !script.items.is_empty() => reason(script),
        Some(_) | None => Reason::Only(tail),
    }
}

fn said(pipeline: &Pipeline) -> String {
    let commands: Vec<String> = pipeline.commands.iter().map(command_said).collect();
    commands.join(" | ")
}

fn command_said(command: &Command) -> String {
    match command {
        Command::Simple { words, .. } if words.is_empty() => "an assignment".to_owned(),
        Command::Simple { words, .. } => {
            let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            shown(&words.join(" "))
        }
        Command::Group { .. } => "the group".to_owned(),
        Command::Loop { .. } => "the loop".to_owned(),
        Command::If { .. } => "the condition".to_owned(),
        Command::Function => "a definition".to_owned(),
        Command::Opaque => "…".to_owned(),
    }
}

/// Whether a word has a `?` that is not `$?`, the last exit code, which never stops anything.
fn may_be_unset(word: &str) -> bool {
    word.replace("$?", "").contains('?')
}

#[cfg(test)]
mod tests;

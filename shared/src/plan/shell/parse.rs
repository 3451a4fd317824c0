//! Tokens as lists, pipelines and commands.

use super::lex::{Token, Word, tokens};
use super::{Command, Item, Joint, Pipeline, Script};

/// Deepest nesting read; anything deeper is opaque.
const DEPTH_MAX: u32 = 32;

/// The tree of a text; nothing where it is no shell command.
pub fn parse(text: &str) -> Option<Script> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let script = parser.script(&[])?;
    (parser.at == tokens.len()).then_some(script)
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }

    fn keyword(&self) -> Option<&'t str> {
        match self.peek()? {
            Token::Word(Word { text, quoted: false, expands: _, substitutes: false }) => Some(text),
            Token::Word(_)
            | Token::AndIf
            | Token::OrIf
            | Token::Pipe
            | Token::End
            | Token::CaseEnd
            | Token::Background
            | Token::Open
            | Token::Close
            | Token::Redirect => None,
        }
    }

    fn take_keyword(&mut self, word: &str) -> Option<()> {
        (self.keyword() == Some(word)).then(|| self.at += 1)
    }

    /// Commands up to one of these keywords, a `)` or the end.
    fn script(&mut self, ends: &[&str]) -> Option<Script> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut items = Vec::new();
        loop {
            while self.take(&Token::End) {}
            let closes = matches!(self.peek(), None | Some(Token::Close | Token::CaseEnd));
            if closes || self.keyword().is_some_and(|word| ends.contains(&word)) {
                break;
            }
            items.push(self.item()?);
        }
        self.depth -= 1;
        Some(Script { items })
    }

    fn item(&mut self) -> Option<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let joint = if self.take(&Token::AndIf) {
                Joint::And
            } else if self.take(&Token::OrIf) {
                Joint::Or
            } else {
                break;
            };
            while self.take(&Token::End) {}
            rest.push((joint, self.pipeline()?));
        }
        let background = self.take(&Token::Background);
        Some(Item { first, rest, background })
    }

    fn pipeline(&mut self) -> Option<Pipeline> {
        let mut negated = false;
        while self.take_keyword("!").is_some() {
            negated = !negated;
        }
        let mut commands = vec![self.command()?];
        while self.take(&Token::Pipe) {
            while self.take(&Token::End) {}
            commands.push(self.command()?);
        }
        Some(Pipeline { negated, commands })
    }

    fn command(&mut self) -> Option<Command> {
        if self.take(&Token::Open) {
            let script = self.script(&[])?;
            self.take(&Token::Close).then_some(())?;
            let redirected = self.redirects()?;
            return Some(Command::Group { script, redirected, subshell: true });
        }
        let compound = match self.keyword() {
            Some("{") => self.group()?,
            Some("for" | "while" | "until" | "select") => self.repeated()?,
            Some("if") => self.conditional()?,
            Some("case" | "function" | "[[" | "((" | "coproc") => return self.opaque(),
            Some(_) | None => return self.simple(),
        };
        if self.redirects()? && !matches!(compound, Command::Group { .. }) {
            return Some(Command::Opaque);
        }
        Some(compound)
    }

    fn group(&mut self) -> Option<Command> {
        self.take_keyword("{")?;
        let script = self.script(&["}"])?;
        self.take_keyword("}")?;
        let before = self.at;
        let redirected = self.redirects()?;
        self.at = before;
        Some(Command::Group { script, redirected, subshell: false })
    }

    fn repeated(&mut self) -> Option<Command> {
        self.at += 1;
        let condition = self.script(&["do"])?;
        self.take_keyword("do")?;
        let body = self.script(&["done"])?;
        self.take_keyword("done")?;
        Some(Command::Loop { condition, body })
    }

    fn conditional(&mut self) -> Option<Command> {
        self.take_keyword("if")?;
        let mut conditions = vec![self.script(&["then"])?];
        let mut branches = Vec::new();
        let mut complete = false;
        loop {
            self.take_keyword("then")?;
            branches.push(self.script(&["elif", "else", "fi"])?);
            if self.take_keyword("elif").is_none() {
                break;
            }
            conditions.push(self.script(&["then"])?);
        }
        if self.take_keyword("else").is_some() {
            branches.push(self.script(&["fi"])?);
            complete = true;
        }
        self.take_keyword("fi")?;
        Some(Command::If { branches, complete, conditions })
    }

    /// Redirections after a compound command; whether there are any.
    fn redirects(&mut self) -> Option<bool> {
        let mut any = false;
        while self.take(&Token::Redirect) {
            matches!(self.peek()?, Token::Word(_)).then(|| self.at += 1)?;
            any = true;
        }
        Some(any)
    }

    fn simple(&mut self) -> Option<Command> {
        let mut words: Vec<Word> = Vec::new();
        let mut assigns = false;
        let mut redirected = false;
        while let Some(token) = self.peek() {
            match token {
                Token::Word(word) => {
                    self.at += 1;
                    if words.is_empty() && is_assignment(word) {
                        assigns = true;
                        // The status of `x=$(false)` is that of the substitution.
                        redirected |= word.substitutes;
                    } else {
                        words.push(word.clone());
                    }
                }
                Token::Redirect => {
                    self.at += 1;
                    let Some(Token::Word(file)) = self.peek() else { return None };
                    self.at += 1;
                    redirected |= file.text != "/dev/null";
                }
                Token::Open if words.len() == 1 => return self.function(),
                Token::AndIf
                | Token::OrIf
                | Token::Pipe
                | Token::End
                | Token::CaseEnd
                | Token::Background
                | Token::Open
                | Token::Close => break,
            }
        }
        let nothing = words.is_empty() && !assigns && !redirected;
        (!nothing).then_some(Command::Simple { words, assigns, redirected })
    }

    fn function(&mut self) -> Option<Command> {
        self.take(&Token::Open).then_some(())?;
        self.take(&Token::Close).then_some(())?;
        while self.take(&Token::End) {}
        self.command()?;
        Some(Command::Function)
    }

    /// Steps over a construct that is not looked into, to the end of its list.
    fn opaque(&mut self) -> Option<Command> {
        let close = match self.keyword()? {
            "[[" => "]]",
            "case" => "esac",
            // The rest has no single closing word; nobody may claim anything about the script.
            _ => return None,
        };
        let mut depth = 0_u32;
        loop {
            match self.keyword() {
                Some(word) if word == close => depth -= 1,
                Some("[[") if close == "]]" => depth += 1,
                Some("case") if close == "esac" => depth += 1,
                Some(_) | None => {}
            }
            self.peek()?;
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        self.redirects()?;
        Some(Command::Opaque)
    }
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

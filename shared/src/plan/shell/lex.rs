//! Shell text as words and operators.

/// A word as written, and as it reads without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text without quotes; substitutions stay as written.
    pub text: String,
    /// Whether any part was quoted, so that it is no keyword.
    pub quoted: bool,
    /// Whether it contains `$(…)` or backquotes, whose status can become the command's.
    pub substitutes: bool,
    /// Whether it contains any expansion, so that the text is not what will be there.
    pub expands: bool,
}

/// A word or an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A word.
    Word(Word),
    /// `&&`.
    AndIf,
    /// `||`.
    OrIf,
    /// `|` or `|&`.
    Pipe,
    /// `;`, or a new line.
    End,
    /// `;;` and its like.
    CaseEnd,
    /// `&`.
    Background,
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// `<`, `>` and their like; the word after it is the file, unless it names a descriptor.
    Redirect,
}

/// The tokens of a text; nothing where a quote or substitution is never closed.
pub fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut lexer =
        Lexer { rest: text.chars().collect(), at: 0, out: Vec::new(), heredocs: Vec::new() };
    while let Some(c) = lexer.peek(0) {
        lexer.next(c)?;
    }
    if lexer.heredocs.is_empty() { Some(lexer.out) } else { None }
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
    out: Vec<Token>,
    /// Ends of here-documents whose text begins on the next line.
    heredocs: Vec<String>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn push(&mut self, token: Token, chars: usize) {
        self.out.push(token);
        self.at += chars;
    }

    fn next(&mut self, c: char) -> Option<()> {
        match c {
            ' ' | '\t' | '\r' => self.at += 1,
            '\\' if self.peek(1) == Some('\n') => self.at += 2,
            '\n' => {
                self.push(Token::End, 1);
                self.skip_heredocs()?;
            }
            '#' => {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            }
            '&' if self.starts("&&") => self.push(Token::AndIf, 2),
            '&' if self.starts("&>>") => self.push(Token::Redirect, 3),
            '&' if self.starts("&>") => self.push(Token::Redirect, 2),
            '&' => self.push(Token::Background, 1),
            '|' if self.starts("||") => self.push(Token::OrIf, 2),
            '|' if self.starts("|&") => self.push(Token::Pipe, 2),
            '|' => self.push(Token::Pipe, 1),
            ';' if self.starts(";;") || self.starts(";&") => self.push(Token::CaseEnd, 2),
            ';' => self.push(Token::End, 1),
            '(' => self.push(Token::Open, 1),
            ')' => self.push(Token::Close, 1),
            '<' | '>' => self.redirect()?,
            _ => self.word()?,
        }
        Some(())
    }

    fn redirect(&mut self) -> Option<()> {
        if (self.starts("<(") || self.starts(">(")) && !self.starts("<((") {
            return self.word();
        }
        if self.starts("<<") && !self.starts("<<<") {
            let strip = usize::from(self.starts("<<-"));
            self.at += 2 + strip;
            while matches!(self.peek(0), Some(' ' | '\t')) {
                self.at += 1;
            }
            self.word()?;
            if let Some(Token::Word(end)) = self.out.pop() {
                self.heredocs.push(end.text);
            }
            return Some(());
        }
        // The longest first, so that `>>` is not two of `>`; a here-string needs no file.
        let operators = ["<<<", "<&", ">&", ">>", ">|", "<>", "<", ">"];
        let operator = operators.into_iter().find(|operator| self.starts(operator))?;
        self.at += operator.len();
        if operator.ends_with('&') && self.descriptor() {
            return Some(());
        }
        if operator == "<<<" {
            while matches!(self.peek(0), Some(' ' | '\t')) {
                self.at += 1;
            }
            self.word()?;
            self.out.pop();
            return Some(());
        }
        self.out.push(Token::Redirect);
        Some(())
    }

    /// Takes the `1` of `2>&1`: duplicating a standard descriptor cannot fail.
    fn descriptor(&mut self) -> bool {
        let known = matches!(self.peek(0), Some('0' | '1' | '2' | '-'));
        let ends = self.peek(1).is_none_or(|c| c.is_whitespace() || ";|&)<>".contains(c));
        if known && ends {
            self.at += 1;
        }
        known && ends
    }

    fn skip_heredocs(&mut self) -> Option<()> {
        for end in std::mem::take(&mut self.heredocs) {
            loop {
                let line: String =
                    self.rest.get(self.at..)?.iter().take_while(|c| **c != '\n').collect();
                let last = self.at + line.chars().count() >= self.rest.len();
                self.at = (self.at + line.chars().count() + 1).min(self.rest.len());
                if line.trim_start_matches('\t') == end {
                    break;
                }
                if last {
                    return None;
                }
            }
        }
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let begin = self.at;
        let mut word =
            Word { text: String::new(), quoted: false, substitutes: false, expands: false };
        while let Some(c) = self.peek(0) {
            let process = matches!(c, '<' | '>') && self.peek(1) == Some('(');
            match c {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => self.escape(&mut word),
                '$' => self.dollar(&mut word)?,
                '`' => self.backquote(&mut word)?,
                '<' | '>' if process => self.parenthesis(&mut word, 1)?,
                '*' | '?' | '[' | '{' | '~' => {
                    word.expands |= c != '{' || self.peek(1).is_some_and(|c| !c.is_whitespace());
                    word.text.push(c);
                    self.at += 1;
                }
                _ if c.is_whitespace() || ";&|()<>".contains(c) => break,
                _ => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        if self.at == begin {
            return None;
        }
        let before_redirect = matches!(self.peek(0), Some('<' | '>'));
        let number = !word.quoted && word.text.bytes().all(|b| b.is_ascii_digit());
        if !(before_redirect && number) {
            self.out.push(Token::Word(word));
        }
        Some(())
    }

    fn single(&mut self, word: &mut Word) -> Option<()> {
        word.quoted = true;
        self.at += 1;
        loop {
            let c = self.peek(0)?;
            self.at += 1;
            if c == '\'' {
                return Some(());
            }
            word.text.push(c);
        }
    }

    fn double(&mut self, word: &mut Word) -> Option<()> {
        word.quoted = true;
        self.at += 1;
        loop {
            match self.peek(0)? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => self.escape(word),
                '$' => self.dollar(word)?,
                '`' => self.backquote(word)?,
                c => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, word: &mut Word) {
        word.quoted = true;
        if let Some(c) = self.peek(1).filter(|c| *c != '\n') {
            word.text.push(c);
        }
        self.at += 2;
    }

    fn dollar(&mut self, word: &mut Word) -> Option<()> {
        match self.peek(1) {
            Some('(') => {
                // `$((…))` computes; it has no status of its own, but a bad expression fails.
                word.substitutes = true;
                word.expands = true;
                self.parenthesis(word, 1)
            }
            Some('{') => {
                word.expands = true;
                self.brace(word)
            }
            Some('\'') => {
                self.at += 1;
                self.single(word)
            }
            next => {
                word.expands |= next.is_some_and(|c| c.is_alphanumeric() || "_?!@*#$-".contains(c));
                word.text.push('$');
                self.at += 1;
                if next == Some('#') {
                    word.text.push('#');
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    /// Takes everything to the closing parenthesis that belongs to the one `ahead`.
    fn parenthesis(&mut self, word: &mut Word, ahead: usize) -> Option<()> {
        word.substitutes = true;
        word.expands = true;
        self.balanced(word, ahead, '(', ')')
    }

    fn brace(&mut self, word: &mut Word) -> Option<()> {
        // `${x:?message}` fails when x is unset; that cannot be told here.
        word.substitutes = true;
        self.balanced(word, 1, '{', '}')
    }

    fn balanced(&mut self, word: &mut Word, ahead: usize, open: char, close: char) -> Option<()> {
        let begin = self.at;
        self.at += ahead;
        let mut depth = 0_u32;
        loop {
            let c = self.peek(0)?;
            match c {
                '\'' if open == '(' => self.skip_to('\'', false)?,
                '"' => self.skip_to('"', true)?,
                '\\' => self.at += 1,
                _ if c == open => depth += 1,
                _ if c == close => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                word.text.extend(self.rest.get(begin..self.at)?);
                return Some(());
            }
        }
    }

    /// Stands on an opening quote, and stops on the closing one.
    fn skip_to(&mut self, quote: char, escapes: bool) -> Option<()> {
        loop {
            self.at += 1;
            match self.peek(0)? {
                '\\' if escapes => self.at += 1,
                c if c == quote => return Some(()),
                _ => {}
            }
        }
    }

    fn backquote(&mut self, word: &mut Word) -> Option<()> {
        word.substitutes = true;
        word.expands = true;
        let begin = self.at;
        self.skip_to('`', true)?;
        self.at += 1;
        word.text.extend(self.rest.get(begin..self.at)?);
        Some(())
    }
}

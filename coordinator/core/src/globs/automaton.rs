//! One pattern as a small automaton, and whether two of them have a word in common.
//!
//! It accepts at least what `globset` matches: where the two readings of a rare form differ, the
//! wider one is taken, because a claim that is too wide costs time and one too narrow costs work.

use std::collections::BTreeSet;

use super::GLOB_BYTES_MAX;

/// Alternatives within alternatives that are read; a pattern with more counts as unreadable.
const BRACE_DEPTH_MAX: u32 = 8;

/// Which characters one step takes.
#[derive(Debug, Clone)]
enum Step {
    /// This one.
    One(char),
    /// Those in the ranges, and never `/`.
    Within(Vec<(char, char)>),
    /// All but `/`.
    Name,
    /// All.
    Any,
}

/// States and the steps between them; state 0 is the first.
#[derive(Debug, Clone)]
pub(super) struct Automaton {
    steps: Vec<Vec<(Step, usize)>>,
    free: Vec<Vec<usize>>,
    accepting: usize,
    /// What every match begins with.
    prefix: String,
}

impl Automaton {
    /// Reads the pattern; `None` where it does not parse.
    pub(super) fn new(glob: &str) -> Option<Self> {
        if glob.len() > GLOB_BYTES_MAX {
            return None;
        }
        let automaton =
            Self { steps: vec![vec![]], free: vec![vec![]], accepting: 0, prefix: prefix(glob) };
        let mut reader = Reader { text: glob.chars().collect(), at: 0, depth: 0, automaton };
        let accepting = reader.sequence(0)?;
        if reader.at < reader.text.len() {
            return None;
        }
        reader.automaton.accepting = accepting;
        Some(reader.automaton)
    }

    /// Whether some text is accepted by both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        if !self.prefix.starts_with(&other.prefix) && !other.prefix.starts_with(&self.prefix) {
            return false;
        }
        let mut seen = BTreeSet::from([(0, 0)]);
        let mut open = vec![(0, 0)];
        while let Some((a, b)) = open.pop() {
            if a == self.accepting && b == other.accepting {
                return true;
            }
            let next = self.successors(other, (a, b));
            open.extend(next.into_iter().filter(|pair| seen.insert(*pair)));
        }
        false
    }

    fn successors(&self, other: &Self, (a, b): (usize, usize)) -> Vec<(usize, usize)> {
        let mut next: Vec<_> = self.free[a].iter().map(|to| (*to, b)).collect();
        next.extend(other.free[b].iter().map(|to| (a, *to)));
        for (mine, to_a) in &self.steps[a] {
            let common = other.steps[b].iter().filter(|(theirs, _)| common(mine, theirs));
            next.extend(common.map(|(_, to_b)| (*to_a, *to_b)));
        }
        next
    }

    fn state(&mut self) -> usize {
        self.steps.push(vec![]);
        self.free.push(vec![]);
        self.steps.len() - 1
    }

    /// A new state behind `from`, reached by one step.
    fn one(&mut self, from: usize, step: Step) -> usize {
        let to = self.state();
        self.steps[from].push((step, to));
        to
    }

    /// A new state behind `from`, reached by any number of steps.
    fn many(&mut self, from: usize, step: Step) -> usize {
        let to = self.state();
        self.free[from].push(to);
        self.steps[to].push((step, to));
        to
    }
}

/// Whether a character fits both steps.
fn common(a: &Step, b: &Step) -> bool {
    match (a, b) {
        (Step::Any, _) | (_, Step::Any) | (Step::Name, Step::Name) => true,
        (Step::One(a), Step::One(b)) => a == b,
        (Step::Name, Step::One(c)) | (Step::One(c), Step::Name) => *c != '/',
        (Step::Name, Step::Within(ranges)) | (Step::Within(ranges), Step::Name) => {
            ranges.iter().any(|range| *range != ('/', '/'))
        }
        (Step::Within(ranges), Step::One(c)) | (Step::One(c), Step::Within(ranges)) => {
            *c != '/' && ranges.iter().any(|(low, high)| low <= c && c <= high)
        }
        (Step::Within(a), Step::Within(b)) => {
            a.iter().any(|(low, high)| b.iter().any(|(l, h)| low <= h && l <= high))
        }
    }
}

/// The text before the first character with a meaning.
fn prefix(glob: &str) -> String {
    glob.chars()
        .take_while(|c| !matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\'))
        .collect()
}

/// Reads a pattern from its beginning to its end.
struct Reader {
    text: Vec<char>,
    at: usize,
    depth: u32,
    automaton: Automaton,
}

impl Reader {
    /// Reads up to the end, or within braces up to `,` or `}`; answers the state reached.
    fn sequence(&mut self, from: usize) -> Option<usize> {
        let mut state = from;
        while let Some(c) = self.text.get(self.at).copied() {
            if self.depth > 0 && matches!(c, ',' | '}') {
                break;
            }
            self.at += 1;
            state = match c {
                '*' => self.star(state),
                '?' => self.automaton.one(state, Step::Name),
                '[' => {
                    let class = self.class()?;
                    self.automaton.one(state, class)
                }
                '{' => self.braces(state)?,
                '\\' => {
                    let escaped = self.next()?;
                    self.automaton.one(state, Step::One(escaped))
                }
                c => self.automaton.one(state, Step::One(c)),
            };
        }
        Some(state)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.text.get(self.at).copied();
        self.at += 1;
        c
    }

    /// After a `*`: one stays within a directory, two do not, and `**/` may stand for nothing.
    fn star(&mut self, from: usize) -> usize {
        let before = self.at.checked_sub(2).map(|at| self.text[at]);
        let first = self.at;
        while self.text.get(self.at) == Some(&'*') {
            self.at += 1;
        }
        if self.at == first {
            return self.automaton.many(from, Step::Name);
        }
        let inner = self.automaton.many(from, Step::Any);
        let at_boundary = matches!(before, None | Some('/' | '{' | ','));
        if !at_boundary || self.text.get(self.at) != Some(&'/') {
            return inner;
        }
        self.at += 1;
        if self.at == self.text.len() {
            return inner; // `globset` reads a lone `**/` as `**`
        }
        let to = self.automaton.one(inner, Step::One('/'));
        self.automaton.free[from].push(to);
        to
    }

    /// After a `[`. A negated or named class is read as any character of a name, which is wider.
    fn class(&mut self) -> Option<Step> {
        let negated = matches!(self.text.get(self.at), Some('!' | '^'));
        let first = self.at + usize::from(negated);
        self.at = first;
        let mut named = false;
        let mut ranges: Vec<(char, char)> = vec![];
        let mut in_range = false;
        loop {
            let c = self.next()?;
            let is_first = self.at == first + 1;
            match c {
                ']' if !is_first => break,
                '-' if !is_first && !in_range => {
                    in_range = true;
                    continue;
                }
                '[' if self.text.get(self.at) == Some(&':') => {
                    self.class_name()?;
                    named = true;
                }
                _ => {}
            }
            match ranges.last_mut() {
                Some(range) if in_range => range.1 = c,
                _ => ranges.push((c, c)),
            }
            in_range = false;
        }
        if in_range {
            ranges.push(('-', '-'));
        }
        if negated || named {
            return Some(Step::Name);
        }
        ranges.iter().all(|(low, high)| low <= high).then_some(Step::Within(ranges))
    }

    /// After the `[` of a `[:name:]`; one that is not closed makes the pattern unreadable.
    fn class_name(&mut self) -> Option<()> {
        self.at += 1;
        while self.text.get(self.at)?.is_ascii_alphabetic() {
            self.at += 1;
        }
        (self.next()? == ':' && self.next()? == ']').then_some(())
    }

    /// After a `{`: every alternative leads from `from` to one common state.
    fn braces(&mut self, from: usize) -> Option<usize> {
        self.depth += 1;
        if self.depth > BRACE_DEPTH_MAX {
            return None;
        }
        let join = self.automaton.state();
        loop {
            let begin = self.automaton.state();
            self.automaton.free[from].push(begin);
            let end = self.sequence(begin)?;
            self.automaton.free[end].push(join);
            match self.next()? {
                ',' => {}
                _ => break,
            }
        }
        self.depth -= 1;
        Some(join)
    }
}

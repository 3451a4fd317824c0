//! What a follower shows: a line an event, and on a terminal one line of progress below them.
//!
//! Where answers are for programs, lines for people go to standard error. When who reads has gone,
//! showing ends with an error of its own or, where the command must go on, in silence.

use std::io::Write as _;
use std::time::Instant;

use ganger_proto::convert::{Snapshot, Watched};

use super::progress;
use crate::error::Error;
use crate::output::{self, Format, Output, note, table, words};
use crate::report::Names;

/// What to do when who reads us has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The command ends.
    Needed,
    /// The command goes on in silence: a run of our own depends on it.
    Unneeded,
}

/// What a follower shows.
#[derive(Debug)]
pub struct Screen {
    out: Output,
    reader: Reader,
    all: bool,
    /// Nobody reads any more.
    silent: bool,
    since: Instant,
    /// How wide the progress line on the terminal is.
    drawn: usize,
    /// Something happened since it was drawn.
    stale: bool,
    last: Option<Snapshot>,
    names: Names,
}

/// The longest line of progress; narrower terminals are rare.
const PROGRESS_CHARS: usize = 79;

/// Facts that matter to programs, and only crowd a screen.
const BOOKKEEPING: [&str; 11] = [
    "TaskPlanned",
    "UnitPlanned",
    "RevisionAccepted",
    "CommandRecorded",
    "AttemptAccepted",
    "AttemptStarted",
    "DeliveryTaken",
    "CheckLeased",
    "MergePrepared",
    "ApplyIntended",
    "RunReleased",
];

impl Screen {
    /// An empty screen; `all` shows every event.
    pub fn new(out: Output, reader: Reader, all: bool) -> Self {
        Self {
            out,
            reader,
            all,
            silent: false,
            since: Instant::now(),
            drawn: 0,
            stale: true,
            last: None,
            names: Names::new(),
        }
    }

    /// Whether the event is about a worker whose name is not known.
    pub fn wants_names(&self, event: &Watched) -> bool {
        let leases = event.kind == "AttemptLeased" || (self.all && event.kind == "CheckLeased");
        leases && !self.names.keys().any(|id| event.summary.contains(id.as_str()))
    }

    /// The names of workers, put where their ids are.
    pub fn know(&mut self, names: Names) {
        self.names = names;
    }

    /// Shows an event.
    pub fn event(&mut self, event: &Watched) -> Result<(), Error> {
        self.stale = true;
        match self.out.format {
            Format::Jsonl => {
                let shown = self.out.object(event);
                self.heard(shown)
            }
            Format::Table | Format::Json => match self.line_of(event) {
                Some(line) => self.say(&line),
                None => Ok(()),
            },
        }
    }

    /// Says a line among those of the events.
    pub fn say(&mut self, line: &str) -> Result<(), Error> {
        self.clear();
        match self.out.format {
            Format::Table => {
                let shown = output::line(line);
                self.heard(shown)
            }
            Format::Json | Format::Jsonl => {
                note(line);
                Ok(())
            }
        }
    }

    pub fn heard(&mut self, shown: Result<(), Error>) -> Result<(), Error> {
        match (shown, self.reader) {
            (Err(Error::ClosedPipe), Reader::Unneeded) => {
                self.silent = true;
                Ok(())
            }
            (shown, _) => shown,
        }
    }

    fn line_of(&self, event: &Watched) -> Option<String> {
        if self.silent || (!self.all && BOOKKEEPING.contains(&event.kind.as_str())) {
            return None;
        }
        let unit = event.unit.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut said = event.summary.clone();
        for (id, name) in &self.names {
            said = said.replace(id.as_str(), name);
        }
        if said.is_empty() {
            said.clone_from(&event.kind);
        }
        let said = words::with_short_hashes(&said);
        let time = self.out.style.faint(&words::clock(event.at));
        Some(format!("{time}  {unit:<16}  {}", table::plain(&said)).trim_end().to_owned())
    }

    /// Whether a line of progress is shown and something has changed, or time passes.
    pub fn wants_progress(&mut self) -> bool {
        if !self.out.terminal || self.silent {
            return false;
        }
        if !self.stale
            && let Some(last) = self.last.take()
        {
            self.draw(&last);
            self.last = Some(last);
            return false;
        }
        true
    }

    /// Draws the line of progress.
    pub fn progress(&mut self, snapshot: &Snapshot) {
        self.stale = false;
        self.draw(snapshot);
        self.last = Some(snapshot.clone());
    }

    fn draw(&mut self, snapshot: &Snapshot) {
        // A line that wraps could not be written over.
        let line = progress::line(snapshot, self.since.elapsed());
        let line: String = line.chars().take(PROGRESS_CHARS).collect();
        let width = line.chars().count();
        let blank = " ".repeat(self.drawn.saturating_sub(width));
        self.drawn = width;
        raw(&format!("\r{line}{blank}"));
    }

    /// Takes the line of progress away.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            raw(&format!("\r{}\r", " ".repeat(self.drawn)));
            self.drawn = 0;
        }
    }
}

fn raw(text: &str) {
    let mut err = std::io::stderr().lock();
    // Nobody is left to tell when standard error is closed.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::actor::Actor;
    use ganger_shared::ids::{UnitId, WorkerId};
    use ganger_shared::time::Timestamp;

    use super::*;
    use crate::output::style::Style;

    fn screen(all: bool) -> Screen {
        let out = Output { format: Format::Table, style: Style::new(false), terminal: false };
        Screen::new(out, Reader::Needed, all)
    }

    fn event(kind: &str, summary: &str) -> Watched {
        Watched {
            sequence: 7,
            at: Timestamp::from_unix_ms(1_700_000_000_123),
            by: Actor::Coordinator,
            kind: kind.to_owned(),
            unit: Some(UnitId::parse("build").unwrap()),
            attempt: None,
            summary: summary.to_owned(),
            json: String::new(),
        }
    }

    #[test]
    fn a_line_has_time_unit_and_what_happened() {
        let line = screen(false).line_of(&event("AttemptLeased", "leased to one\u{7}"));
        assert_eq!(line.as_deref(), Some("22:13:20  build             leased to one\\u{7}"));
        let bare = screen(false).line_of(&event("AttemptLost", ""));
        assert_eq!(bare.as_deref(), Some("22:13:20  build             AttemptLost"));
    }

    #[test]
    fn a_worker_is_called_by_its_name() {
        let (mut screen, leased) = (screen(false), event("AttemptLeased", "leased to 01a2-b"));
        assert!(screen.wants_names(&leased));
        screen.know([(WorkerId::parse("01a2-b").unwrap(), "one".to_owned())].into());
        assert!(!screen.wants_names(&leased));
        let line = screen.line_of(&leased).unwrap();
        assert!(line.ends_with("leased to one"), "{line}");
    }

    #[test]
    fn bookkeeping_is_shown_only_when_all_is_wanted() {
        assert_eq!(screen(false).line_of(&event("CheckLeased", "x")), None);
        assert!(screen(true).line_of(&event("CheckLeased", "x")).is_some());
    }

    /// R216: a reader that goes away is no reason for a run of our own to end.
    #[test]
    fn a_closed_pipe_ends_only_a_command_that_may_end() {
        let mut own = screen(false);
        own.reader = Reader::Unneeded;
        assert!(own.heard(Err(Error::ClosedPipe)).is_ok());
        assert_eq!(own.line_of(&event("AttemptLost", "")), None);
        assert!(matches!(screen(false).heard(Err(Error::ClosedPipe)), Err(Error::ClosedPipe)));
    }
}

//! Runs one program for its executor: drains its outputs, feeds its input, passes on its events.
//!
//! One task per attempt owns the tree, both outputs and the input; dropping the task ends all of
//! them. Nothing waits without a bound: events wait in a bounded channel and then the program waits,
//! lines are cut, input that the program does not read is refused past its limit.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use ganger_shared::delivery::Usage;
use ganger_shared::limits;
use ganger_shared::redact::Redactor;
use ganger_shared::text;
use ganger_shared::time::DurationMs;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use super::{Executor, Reply, end, tail};
use crate::attempts::port::{ExecCommand, ExecEnd, ExecEvent};
use crate::output::{Bounds, Line, OutputError, OutputPump, Stream};
use crate::process::{Exit, ProcessTree, Stopped};

/// How often activity is told of; more often would only be noise.
const ACTIVITY_EVERY: Duration = Duration::from_millis(50);
/// How long the outputs of an ended tree may stay open: only a survivor holds them.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);
/// Input that waits for a program that does not read; more is refused.
const INPUT_BYTES_MAX: usize = 16 << 20;
/// The longest piece of output in an event.
const SHOWN_BYTES: usize = 200;

/// Both outputs of a program on their way to the disk.
pub(super) struct Streams {
    pumps: [OutputPump; 2],
    out: mpsc::Receiver<Line>,
    err: mpsc::Receiver<Line>,
    input: Option<pipe::Sender>,
}

/// Begins to drain the outputs of a started program into files in `evidence`.
pub(super) async fn begin(tree: &mut ProcessTree, evidence: &Path) -> Result<Streams, OutputError> {
    let bounds = Bounds {
        line_bytes_max: limits::LINE_BYTES,
        file_bytes_max: limits::OUTPUT_BYTES,
        ..Bounds::default()
    };
    let stdout = tree.take_stdout().expect("a fresh tree has its standard output");
    let stderr = tree.take_stderr().expect("a fresh tree has its standard error");
    let path = evidence.join("stdout.txt");
    let (out_pump, out) = OutputPump::start(stdout, Stream::Stdout, &path, bounds).await?;
    let path = evidence.join("stderr.txt");
    let (err_pump, err) = OutputPump::start(stderr, Stream::Stderr, &path, bounds).await?;
    Ok(Streams { pumps: [out_pump, err_pump], out, err, input: tree.take_stdin() })
}

/// One program from its start to its end.
pub(super) struct Course {
    executor: Box<dyn Executor>,
    tree: ProcessTree,
    pumps: [OutputPump; 2],
    out: mpsc::Receiver<Line>,
    err: mpsc::Receiver<Line>,
    input: Input,
    redactor: Redactor,
    since: Instant,
    /// Events that wait for room in the channel; while there are any, no line is read.
    waiting: VecDeque<ExecEvent>,
    activity: Activity,
}

/// Lines that were heard and not told of yet.
#[derive(Default)]
struct Activity {
    lines: u64,
    last: String,
}

/// What one turn of the loop brought.
enum Turn {
    Line(Option<Line>, Stream),
    Order(Option<ExecCommand>),
    Sent,
    Tick,
    Fed(io::Result<usize>),
    Over(Option<Exit>, Stopped),
}

impl Course {
    pub(super) fn new(
        executor: Box<dyn Executor>,
        tree: ProcessTree,
        streams: Streams,
        redactor: Redactor,
    ) -> Self {
        let Streams { pumps, out, err, input } = streams;
        let (since, waiting, activity) = (Instant::now(), VecDeque::new(), Activity::default());
        let input = Input { pipe: input, bytes: VecDeque::new() };
        Self { executor, tree, pumps, out, err, input, redactor, since, waiting, activity }
    }

    /// Follows the program until nothing is left of it, then says how it ended.
    pub(super) async fn follow(
        mut self,
        mut orders: mpsc::Receiver<ExecCommand>,
        events: mpsc::Sender<ExecEvent>,
    ) {
        let program = self.executor.program();
        self.input.add(&program.opening.unwrap_or_default());
        if !program.greets {
            self.waiting.push_back(ExecEvent::Started { session: None, model: None });
        }
        let over = self.run(&mut orders, &events).await;
        let duration_ms = millis(self.since.elapsed());
        // What survivors still hold open is not waited for.
        let _open_still = timeout(DRAIN_PATIENCE, self.drain(&events)).await;
        self.tell_activity();
        while let Some(event) = self.waiting.pop_front() {
            let _nobody_listens = events.send(event).await;
        }
        let ended = self.conclude(over, duration_ms).await;
        let _nobody_listens = events.send(ExecEvent::Ended(Box::new(ended))).await;
    }

    async fn run(
        &mut self,
        orders: &mut mpsc::Receiver<ExecCommand>,
        events: &mpsc::Sender<ExecEvent>,
    ) -> (Option<Exit>, Stopped) {
        let mut handle = self.tree.handle();
        let mut ticks = ticks();
        let (mut ordered, mut out, mut err) = (true, true, true);
        loop {
            let hearing = self.waiting.is_empty();
            let turn = tokio::select! {
                line = self.out.recv(), if out && hearing => Turn::Line(line, Stream::Stdout),
                line = self.err.recv(), if err && hearing => Turn::Line(line, Stream::Stderr),
                order = orders.recv(), if ordered => Turn::Order(order),
                _ = ticks.tick(), if self.activity.lines > 0 => Turn::Tick,
                () = pass_on(&mut self.waiting, events), if !hearing => Turn::Sent,
                fed = self.input.feed(), if self.input.waits() => Turn::Fed(fed),
                (exit, stopped) = handle.ended() => Turn::Over(exit, stopped),
            };
            match turn {
                Turn::Line(Some(line), _) => self.hear(&line),
                Turn::Line(None, Stream::Stdout) => out = false,
                Turn::Line(None, Stream::Stderr) => err = false,
                Turn::Order(Some(order)) => self.obey(order).await,
                Turn::Order(None) => ordered = false,
                Turn::Sent => {}
                Turn::Tick => self.tell_activity(),
                Turn::Fed(fed) => self.input.fed(&fed),
                Turn::Over(exit, stopped) => return (exit, stopped),
            }
        }
    }

    /// Hears what is still on its way.
    async fn drain(&mut self, events: &mpsc::Sender<ExecEvent>) {
        loop {
            let line = tokio::select! {
                Some(line) = self.out.recv() => line,
                Some(line) = self.err.recv() => line,
                else => return,
            };
            self.hear(&line);
            while let Some(event) = self.waiting.pop_front() {
                let _nobody_listens = events.send(event).await;
            }
        }
    }

    fn hear(&mut self, line: &Line) {
        let heard = self.executor.heard(line);
        if heard.progress {
            self.activity.lines += 1;
            // Whole lines are redacted before they are cut, or half a secret could stay.
            let words = heard.shown.as_deref().unwrap_or(&line.text);
            self.activity.last = shown(&self.redactor, words);
        }
        let redactor = &self.redactor;
        self.waiting.extend(heard.events.into_iter().map(|event| clean(redactor, event)));
    }

    fn tell_activity(&mut self) {
        let Activity { lines, last } = std::mem::take(&mut self.activity);
        if lines > 0 {
            self.waiting.push_back(ExecEvent::Activity { lines, last_line: last });
        }
    }

    async fn obey(&mut self, order: ExecCommand) {
        let handle = self.tree.handle();
        let signalled = match self.executor.told(order) {
            Reply::Say(bytes) => {
                self.input.add(&bytes);
                Ok(())
            }
            Reply::Interrupt => handle.interrupt().await,
            Reply::Terminate => handle.terminate().await,
            Reply::Nothing => Ok(()),
        };
        if let Err(ended) = signalled {
            // The loop is about to see it.
            tracing::debug!(%ended, "an order came too late");
        }
    }

    async fn conclude(
        mut self,
        (exit, stopped): (Option<Exit>, Stopped),
        duration_ms: DurationMs,
    ) -> ExecEnd {
        let mut captures = Vec::new();
        for pump in self.pumps {
            match timeout(DRAIN_PATIENCE, pump.finish()).await {
                Ok(Ok(capture)) => captures.push(capture),
                Ok(Err(error)) => tracing::warn!(%error, "an output is lost"),
                Err(_) => tracing::warn!("an output is held open by a process that survived"),
            }
        }
        let tail = tail::of(&captures, &self.redactor);
        for capture in &mut captures {
            capture.tail = tail::end_of(capture, &self.redactor);
        }
        let conclusion = self.executor.ended(exit, &tail).without_secrets(&self.redactor);
        let rest = ExecEnd {
            failure: None,
            exit,
            confirmed: stopped.confirmed,
            summary: String::new(),
            no_change: false,
            denied: Vec::new(),
            usage: Usage::default(),
            session: None,
            duration_ms,
            captures,
        };
        end(conclusion, rest)
    }
}

/// Sends the first waiting event once there is room; it stays if this is dropped before.
async fn pass_on(waiting: &mut VecDeque<ExecEvent>, events: &mpsc::Sender<ExecEvent>) {
    let room = events.reserve().await;
    let Some(event) = waiting.pop_front() else { return };
    if let Ok(room) = room {
        room.send(event);
    }
}

fn shown(redactor: &Redactor, line: &str) -> String {
    text::cut_bytes(redactor.text(line), SHOWN_BYTES)
}

/// An event without secrets: these words are shown to people.
fn clean(redactor: &Redactor, event: ExecEvent) -> ExecEvent {
    match event {
        ExecEvent::Text { text } => ExecEvent::Text { text: shown(redactor, &text) },
        ExecEvent::ToolStart { id, name } => {
            ExecEvent::ToolStart { id, name: shown(redactor, &name) }
        }
        other @ (ExecEvent::Started { .. }
        | ExecEvent::Activity { .. }
        | ExecEvent::ToolEnd { .. }
        | ExecEvent::Permission { .. }
        | ExecEvent::Usage(_)
        | ExecEvent::Context { .. }
        | ExecEvent::Retry { .. }
        | ExecEvent::RateLimit { .. }
        | ExecEvent::Artifact { .. }
        | ExecEvent::Ended(_)) => other,
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(ACTIVITY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn millis(length: Duration) -> DurationMs {
    DurationMs(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

/// The program's standard input and what it has not read yet.
struct Input {
    pipe: Option<pipe::Sender>,
    bytes: VecDeque<u8>,
}

impl Input {
    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > INPUT_BYTES_MAX {
            tracing::warn!(bytes = bytes.len(), "a command is dropped: the program does not read");
            return;
        }
        self.bytes.extend(bytes);
    }

    fn waits(&self) -> bool {
        self.pipe.is_some() && !self.bytes.is_empty()
    }

    async fn feed(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.write(self.bytes.as_slices().0).await,
            None => Ok(0),
        }
    }

    fn fed(&mut self, fed: &io::Result<usize>) {
        match fed {
            Ok(count) => drop(self.bytes.drain(..*count)),
            // It closed its input; there is nobody to tell.
            Err(_) => self.pipe = None,
        }
    }
}

//! One lease from its acceptance to its one terminal report.
//!
//! `handle` takes a command and answers with what happened (events, for the log) and what is to be
//! done (effects). An attempt does not outlive its worker's process, so its events are not kept
//! and there is nothing to fold: what must survive is in the outbox. Not here: who gets a slot.

mod command;
mod ending;
mod phase;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use ganger_shared::delivery::{CheckResult, Delivery, Usage};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::failure::Failure;
use ganger_shared::ids::TreeId;
use ganger_shared::link::{Fact, Started, StopReason};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{Assignment, Body};
use ganger_shared::time::DurationMs;

use crate::clock::{Clock, Now};
use phase::Phase;

/// What an attempt is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The tree is made.
    Prepared,
    /// The tree could not be made.
    PrepareFailed(Failure),
    /// The program runs.
    Spawned(Started),
    /// The program could not be started.
    SpawnFailed(Failure),
    /// The program speaks its protocol.
    Ready,
    /// Something was printed; the monotonic clock showed this when it was.
    Output {
        /// When.
        at_ms: u64,
    },
    /// The program and its whole tree are over.
    Exited(Exited),
    /// What it hands in is collected and with the coordinator.
    Collected(Box<Evidence>),
    /// Somebody wants it stopped.
    Stop {
        /// Why.
        reason: StopReason,
        /// Without grace.
        now: bool,
    },
    /// The worker itself leaves.
    Leave,
    /// The worker lost its coordinator.
    CutOff {
        /// How long leases outlive that.
        lease_ms: DurationMs,
    },
    /// The worker has its coordinator back.
    Attached,
    /// Time has passed.
    Tick,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exited {
    /// Why not well.
    pub failure: Option<Failure>,
    /// Nothing of its tree is left, as was seen.
    pub confirmed: bool,
    /// When it ended, by the monotonic clock.
    pub at_ms: u64,
}

/// What was collected from an ended attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The thing itself.
    pub handed: Handed,
    /// What was used.
    pub usage: Usage,
    /// The output that was kept.
    pub output: Option<ArtifactRef>,
    /// There was more output.
    pub output_truncated: bool,
}

/// What an ended attempt or check hands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handed {
    /// A delivery that keeps what was promised.
    Delivery(Box<Delivery>),
    /// A measured check.
    Measured(Box<CheckResult>),
    /// It failed, or what it left does not keep what was promised.
    Failed {
        /// Why.
        failure: Failure,
        /// What there is, for people and judges.
        left: Option<Box<Delivery>>,
    },
    /// Nothing but usage and output: it was stopped.
    Nothing,
}

/// How an attempt ended, as far as it is known before its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The program ended well; evidence decides.
    Finished,
    /// It failed.
    Failed(Failure),
    /// It was stopped.
    Stopped {
        /// Nothing of its tree is left, as was seen.
        confirmed: bool,
    },
}

/// One rung of the stop ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// By the agent's protocol, else SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL to the whole tree.
    Kill,
}

/// Why a program is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The coordinator asks.
    Asked(StopReason),
    /// It ran longer than it may.
    Timeout,
    /// It printed nothing for longer than it may.
    Silence,
    /// It did not begin to speak in time.
    Start,
    /// The worker was cut off for a whole lease and the plan says `on_disconnect: stop`.
    LeaseEnded,
    /// The worker itself leaves.
    Leaving,
}

/// What happened; for the log and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The tree is made.
    Prepared,
    /// The program runs.
    Spawned {
        /// As this process.
        pid: u32,
    },
    /// It speaks.
    Ready,
    /// It is silent for half the allowed time.
    QuietAtHalf {
        /// How long.
        quiet_ms: DurationMs,
    },
    /// The host was asleep, which counts for nothing.
    Slept {
        /// How long.
        slept_ms: DurationMs,
    },
    /// It is to end.
    Halted {
        /// Why.
        why: Why,
    },
    /// One rung of the stop ladder was climbed.
    Climbed {
        /// Which.
        rung: Rung,
    },
    /// It is over; its evidence is collected.
    Ended {
        /// How.
        ending: Ending,
    },
    /// Somebody asked to stop what had already ended: the end stands.
    StopCameLate,
    /// A step was given up because it took too long.
    GaveUp {
        /// Which.
        step: &'static str,
    },
    /// The terminal report is written.
    Closed,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make the tree.
    Prepare,
    /// Start the program.
    Spawn,
    /// Climb this rung.
    Climb(Rung),
    /// Drop the step that is under way, and with it all it started.
    Abandon,
    /// Collect what the attempt hands in.
    Collect(Ending),
    /// Write this into the outbox.
    Report(Box<Fact>),
    /// Remove the attempt's directory, or keep its tree for people.
    Discard {
        /// Keep the tree.
        keep: bool,
    },
}

/// What one command led to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// What happened.
    pub events: Vec<Event>,
    /// What is to be done, in this order.
    pub effects: Vec<Effect>,
}

/// How long the steps of one attempt may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Making the tree.
    pub prepare_ms: DurationMs,
    /// From the order to start until the program speaks.
    pub start_ms: DurationMs,
    /// From its start to its end.
    pub timeout_ms: DurationMs,
    /// How long it may print nothing.
    pub silence_ms: Option<DurationMs>,
    /// How long a rung waits before the next one.
    pub grace_ms: DurationMs,
    /// How long survivors of a kill are waited for.
    pub kill_ms: DurationMs,
    /// Collecting what it hands in.
    pub collect_ms: DurationMs,
    /// What a cut-off worker does.
    pub on_disconnect: OnDisconnect,
    /// The tree a check measures; absent for an attempt.
    pub measures: Option<TreeId>,
}

impl Terms {
    /// The terms an assignment sets, with the worker's own bounds filled in by `bounds`.
    pub fn of(assignment: &Assignment, bounds: Bounds) -> Self {
        let measures = match &assignment.body {
            Body::Check(task) => Some(task.tree.clone()),
            Body::Command { .. } | Body::Agent(_) => None,
        };
        Self {
            prepare_ms: bounds.prepare_ms,
            start_ms: bounds.start_ms,
            timeout_ms: assignment.timeout_ms,
            silence_ms: assignment.silence_ms,
            grace_ms: assignment.grace_ms,
            kill_ms: bounds.kill_ms,
            collect_ms: bounds.collect_ms,
            on_disconnect: assignment.on_disconnect,
            measures,
        }
    }
}

/// The bounds that are the worker's and not the plan's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Making a tree.
    pub prepare_ms: DurationMs,
    /// From the order to start until the program speaks.
    pub start_ms: DurationMs,
    /// Waiting for survivors of a kill.
    pub kill_ms: DurationMs,
    /// Collecting what is handed in.
    pub collect_ms: DurationMs,
}

/// One lease at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    terms: Terms,
    clock: Clock,
    phase: Phase,
    contact: Contact,
    /// The count when the program started.
    spawned: Option<DurationMs>,
    now: Now,
}

/// Whether the worker has its coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    Attached,
    /// Leases end when the monotonic clock shows this.
    CutOff {
        lease_until_ms: u64,
    },
}

impl Attempt {
    /// Begins to work on an accepted lease.
    pub fn begin(terms: Terms, now: Now) -> (Self, Step) {
        let attempt = Self {
            terms,
            clock: Clock::starting(now),
            phase: Phase::Preparing { since: DurationMs(0) },
            contact: Contact::Attached,
            spawned: None,
            now,
        };
        (attempt, Step { events: Vec::new(), effects: vec![Effect::Prepare] })
    }

    /// Takes one command; commands that come too late or too early change nothing.
    pub fn handle(&mut self, now: Now, command: Command) -> Step {
        let mut step = Step::default();
        if let Some(slept_ms) = self.clock.look(now) {
            step.events.push(Event::Slept { slept_ms });
        }
        self.now = now;
        match command {
            Command::Prepared => self.prepared(&mut step),
            Command::PrepareFailed(failure) => self.prepare_failed(failure, &mut step),
            Command::Spawned(started) => self.spawned(started, &mut step),
            Command::SpawnFailed(failure) => self.spawn_failed(failure, &mut step),
            Command::Ready => self.ready(&mut step),
            Command::Output { at_ms } => self.output(at_ms),
            Command::Exited(exited) => self.exited(exited, &mut step),
            Command::Collected(evidence) => self.collected(*evidence, &mut step),
            Command::Stop { reason, now } => self.halt(Why::Asked(reason), now, &mut step),
            Command::Leave => self.halt(Why::Leaving, false, &mut step),
            Command::CutOff { lease_ms } => self.cut_off(lease_ms),
            Command::Attached => self.attached(),
            Command::Tick => self.tick(&mut step),
        }
        step
    }

    /// When the monotonic clock shows this, `Tick` is due; `None` once it has ended.
    pub fn next_deadline(&self) -> Option<u64> {
        if self.has_ended() {
            return None;
        }
        let look = self.clock.look_again(self.due());
        Some(self.lease_end().map_or(look, |end| look.min(end)))
    }

    /// Whether the terminal report was given.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// The phase's name, as people see it.
    pub fn phase_name(&self) -> &'static str {
        self.phase.name()
    }
}

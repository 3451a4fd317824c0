//! The phases of one lease, and when each of them has taken too long.
//!
//! Not here: what happens then; `command.rs` has it.

use ganger_shared::plan::OnDisconnect;
use ganger_shared::time::DurationMs;

use super::{Attempt, Contact, Ending, Rung, Why};

/// How far an attempt is. All counts are the attempt's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The tree is being made.
    Preparing { since: DurationMs },
    /// The program is being started; what is to be stopped waits until there is something to stop.
    Spawning { since: DurationMs, halt: Option<Halt> },
    /// The program runs and has not yet spoken its protocol.
    Waking { since: DurationMs },
    /// It works.
    Running { heard: DurationMs, warned: bool },
    /// It is being stopped.
    Stopping { halt: Halt, rung: Rung, since: DurationMs },
    /// It is over and what it hands in is being collected.
    Collecting { since: DurationMs, ending: Ending, worked: DurationMs },
    /// It is reported.
    Ended,
}

/// An order to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt {
    pub(super) why: Why,
    /// Without grace.
    pub(super) now: bool,
    /// When it was given, by the monotonic clock.
    pub(super) at_ms: u64,
}

impl Halt {
    pub(super) fn first_rung(self) -> Rung {
        if self.now { Rung::Kill } else { Rung::Interrupt }
    }
}

impl Rung {
    /// The rung after this one; none after a kill.
    pub(super) fn next(self) -> Option<Self> {
        match self {
            Self::Interrupt => Some(Self::Terminate),
            Self::Terminate => Some(Self::Kill),
            Self::Kill => None,
        }
    }
}

impl Phase {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Preparing { .. } => "preparing",
            Self::Spawning { .. } | Self::Waking { .. } => "starting",
            Self::Running { .. } => "running",
            Self::Stopping { .. } => "stopping",
            Self::Collecting { .. } => "verifying",
            Self::Ended => "ended",
        }
    }
}

impl Attempt {
    /// The count at which something is due in this phase; `None` where only others move it.
    pub(super) fn due(&self) -> Option<DurationMs> {
        let terms = &self.terms;
        match &self.phase {
            Phase::Preparing { since } => self.unless_cut_off(plus(*since, terms.prepare_ms)),
            Phase::Collecting { since, .. } => self.unless_cut_off(plus(*since, terms.collect_ms)),
            Phase::Spawning { since, .. } | Phase::Waking { since } => {
                Some(plus(*since, terms.start_ms))
            }
            Phase::Running { heard, warned } => {
                Some(self.timeout_at().min(self.quiet_at(*heard, *warned)))
            }
            Phase::Stopping { rung, since, .. } => Some(plus(*since, self.patience(*rung))),
            Phase::Ended => None,
        }
    }

    /// The count at which a running program has run too long.
    pub(super) fn timeout_at(&self) -> DurationMs {
        plus(self.spawned.unwrap_or_default(), self.terms.timeout_ms)
    }

    /// The count at which silence is worth a word: at half, then at the whole.
    fn quiet_at(&self, heard: DurationMs, warned: bool) -> DurationMs {
        match self.terms.silence_ms {
            None => DurationMs(u64::MAX),
            Some(silence) if warned => plus(heard, silence),
            Some(silence) => plus(heard, DurationMs(silence.0 / 2)),
        }
    }

    /// How long a rung waits.
    fn patience(&self, rung: Rung) -> DurationMs {
        match rung {
            Rung::Interrupt | Rung::Terminate => self.terms.grace_ms,
            Rung::Kill => self.terms.kill_ms,
        }
    }

    /// A step that needs the coordinator is not late while there is none.
    fn unless_cut_off(&self, due: DurationMs) -> Option<DurationMs> {
        match self.contact {
            Contact::Attached => Some(due),
            Contact::CutOff { .. } => None,
        }
    }

    /// When the monotonic clock shows this, the lease of a cut-off worker is over and its work with
    /// it. A lease is real time: a sleeping host does not lengthen it.
    pub(super) fn lease_end(&self) -> Option<u64> {
        let at_work =
            !matches!(self.phase, Phase::Collecting { .. } | Phase::Ended) && !self.is_halted();
        match (self.contact, self.terms.on_disconnect) {
            (Contact::CutOff { lease_until_ms }, OnDisconnect::Stop) if at_work => {
                Some(lease_until_ms)
            }
            (
                Contact::CutOff { .. } | Contact::Attached,
                OnDisconnect::Stop | OnDisconnect::Continue,
            ) => None,
        }
    }

    fn is_halted(&self) -> bool {
        match &self.phase {
            Phase::Spawning { halt, .. } => halt.is_some(),
            Phase::Stopping { .. } => true,
            Phase::Preparing { .. }
            | Phase::Waking { .. }
            | Phase::Running { .. }
            | Phase::Collecting { .. }
            | Phase::Ended => false,
        }
    }
}

pub(super) fn plus(since: DurationMs, length: DurationMs) -> DurationMs {
    DurationMs(since.0.saturating_add(length.0))
}

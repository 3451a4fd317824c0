//! What each command does to an attempt: one function per command, and what is due by time.
//!
//! Not here: how an ending becomes the fact that is reported (`ending.rs`).

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{Fact, Started};
use ganger_shared::time::DurationMs;

use super::phase::{Halt, Phase};
use super::{Attempt, Contact, Effect, Ending, Event, Evidence, Exited, Rung, Step, Why};

impl Attempt {
    pub(super) fn prepared(&mut self, step: &mut Step) {
        if matches!(self.phase, Phase::Preparing { .. }) {
            self.phase = Phase::Spawning { since: self.clock.counted(), halt: None };
            step.events.push(Event::Prepared);
            step.effects.push(Effect::Spawn);
        }
    }

    pub(super) fn prepare_failed(&mut self, failure: Failure, step: &mut Step) {
        if matches!(self.phase, Phase::Preparing { .. }) {
            self.close_empty(Ending::Failed(failure), step);
        }
    }

    pub(super) fn spawned(&mut self, started: Started, step: &mut Step) {
        let Phase::Spawning { halt, .. } = self.phase else { return };
        let since = self.clock.counted();
        self.spawned = Some(since);
        self.phase = Phase::Waking { since };
        step.events.push(Event::Spawned { pid: started.pid });
        step.effects.push(Effect::Report(Box::new(Fact::Started(started))));
        if let Some(halt) = halt {
            self.climb(halt, halt.first_rung(), step);
        }
    }

    pub(super) fn spawn_failed(&mut self, failure: Failure, step: &mut Step) {
        let Phase::Spawning { halt, .. } = self.phase else { return };
        let ending = halt.map_or(Ending::Failed(failure), |halt| self.halted(halt.why, true));
        self.collect(ending, step);
    }

    pub(super) fn ready(&mut self, step: &mut Step) {
        if matches!(self.phase, Phase::Waking { .. }) {
            // Silence is measured from this start, whatever an earlier attempt last said (P026).
            self.phase = Phase::Running { heard: self.clock.counted(), warned: false };
            step.events.push(Event::Ready);
        }
    }

    pub(super) fn output(&mut self, at_ms: u64) {
        let at = self.clock.counted_at(at_ms);
        if let Phase::Running { heard, warned } = &mut self.phase
            && at > *heard
        {
            *heard = at;
            *warned = false;
        }
    }

    /// The program is over. What ended before anybody wanted it stopped has ended by itself (P018).
    pub(super) fn exited(&mut self, exited: Exited, step: &mut Step) {
        let ending = match &self.phase {
            Phase::Preparing { .. } | Phase::Collecting { .. } | Phase::Ended => return,
            Phase::Stopping { halt, .. } | Phase::Spawning { halt: Some(halt), .. }
                if exited.at_ms >= halt.at_ms =>
            {
                self.halted(halt.why, exited.confirmed)
            }
            Phase::Stopping { .. }
            | Phase::Spawning { .. }
            | Phase::Waking { .. }
            | Phase::Running { .. } => by_itself(exited),
        };
        self.collect(ending, step);
    }

    pub(super) fn collected(&mut self, evidence: Evidence, step: &mut Step) {
        let Phase::Collecting { ending, worked, .. } = &self.phase else { return };
        let fact = self.fact(ending.clone(), Some(evidence), *worked);
        self.close(fact, step);
    }

    pub(super) fn halt(&mut self, why: Why, now: bool, step: &mut Step) {
        let order = Halt { why, now, at_ms: self.now.mono_ms };
        match &mut self.phase {
            Phase::Preparing { .. } => {
                step.events.push(Event::Halted { why });
                step.effects.push(Effect::Abandon);
                let ending = self.halted(why, true);
                self.close_empty(ending, step);
            }
            Phase::Spawning { halt: Some(halt), .. } => halt.now |= now,
            Phase::Spawning { halt, .. } => {
                *halt = Some(order);
                step.events.push(Event::Halted { why });
            }
            Phase::Waking { .. } | Phase::Running { .. } => {
                step.events.push(Event::Halted { why });
                self.climb(order, order.first_rung(), step);
            }
            Phase::Stopping { halt, rung, .. } => {
                if now && *rung < Rung::Kill {
                    let halt = *halt;
                    self.climb(halt, Rung::Kill, step);
                }
            }
            Phase::Collecting { .. } | Phase::Ended => step.events.push(Event::StopCameLate),
        }
    }

    pub(super) fn cut_off(&mut self, lease_ms: DurationMs) {
        match self.contact {
            Contact::Attached => {
                let lease_until_ms = self.now.mono_ms.saturating_add(lease_ms.0);
                self.contact = Contact::CutOff { lease_until_ms };
            }
            // A failed dial is not a second loss: the lease runs from the first.
            Contact::CutOff { .. } => {}
        }
    }

    /// Steps that waited for the coordinator get their whole time again.
    pub(super) fn attached(&mut self) {
        let count = self.clock.counted();
        match (self.contact, &mut self.phase) {
            (
                Contact::CutOff { .. },
                Phase::Preparing { since } | Phase::Collecting { since, .. },
            ) => *since = count,
            (
                Contact::CutOff { .. } | Contact::Attached,
                Phase::Preparing { .. }
                | Phase::Spawning { .. }
                | Phase::Waking { .. }
                | Phase::Running { .. }
                | Phase::Stopping { .. }
                | Phase::Collecting { .. }
                | Phase::Ended,
            ) => {}
        }
        self.contact = Contact::Attached;
    }

    pub(super) fn tick(&mut self, step: &mut Step) {
        if self.lease_end().is_some_and(|end| self.now.mono_ms >= end) {
            self.halt(Why::LeaseEnded, false, step);
        }
        // One look may find silence at half and at the whole; every turn leaves another phase or
        // another due time behind, so this ends.
        while self.due().is_some_and(|due| self.clock.counted() >= due) {
            self.overdue(step);
        }
    }

    fn overdue(&mut self, step: &mut Step) {
        match &self.phase {
            Phase::Preparing { .. } => {
                give_up("prepare", step);
                let late = Failure::new(
                    FailureClass::WorkspaceFailed,
                    format!("the tree was not made within {}", self.terms.prepare_ms),
                );
                self.close_empty(Ending::Failed(late), step);
            }
            Phase::Spawning { halt, .. } => {
                let ending = self.halted(halt.map_or(Why::Start, |halt| halt.why), false);
                give_up("start", step);
                self.collect(ending, step);
            }
            Phase::Waking { .. } => self.halt(Why::Start, false, step),
            Phase::Running { heard, warned } => self.overrun(*heard, *warned, step),
            Phase::Stopping { halt, rung, .. } => self.climb_on(*halt, *rung, step),
            Phase::Collecting { ending, worked, .. } => {
                let fact = self.fact(ending.clone(), None, *worked);
                give_up("collect", step);
                self.close(fact, step);
            }
            Phase::Ended => {}
        }
    }

    fn overrun(&mut self, heard: DurationMs, warned: bool, step: &mut Step) {
        let count = self.clock.counted();
        if count >= self.timeout_at() {
            self.halt(Why::Timeout, false, step);
        } else if warned {
            self.halt(Why::Silence, false, step);
        } else {
            self.phase = Phase::Running { heard, warned: true };
            step.events.push(Event::QuietAtHalf { quiet_ms: DurationMs(count.0 - heard.0) });
        }
    }

    fn climb_on(&mut self, halt: Halt, rung: Rung, step: &mut Step) {
        if let Some(next) = rung.next() {
            self.climb(halt, next, step);
        } else {
            let ending = self.halted(halt.why, false);
            give_up("kill", step);
            self.collect(ending, step);
        }
    }

    fn climb(&mut self, halt: Halt, rung: Rung, step: &mut Step) {
        self.phase = Phase::Stopping { halt, rung, since: self.clock.counted() };
        step.events.push(Event::Climbed { rung });
        step.effects.push(Effect::Climb(rung));
    }

    fn collect(&mut self, ending: Ending, step: &mut Step) {
        let since = self.clock.counted();
        let worked = DurationMs(self.spawned.map_or(0, |from| since.0.saturating_sub(from.0)));
        step.events.push(Event::Ended { ending: ending.clone() });
        step.effects.push(Effect::Collect(ending.clone()));
        self.phase = Phase::Collecting { since, ending, worked };
    }

    /// Ends what never got as far as having anything to collect.
    fn close_empty(&mut self, ending: Ending, step: &mut Step) {
        step.events.push(Event::Ended { ending: ending.clone() });
        let fact = self.fact(ending, None, DurationMs(0));
        self.close(fact, step);
    }

    fn close(&mut self, fact: Fact, step: &mut Step) {
        let keep = !matches!(fact, Fact::Delivered(_) | Fact::Measured(_));
        step.effects.push(Effect::Report(Box::new(fact)));
        step.effects.push(Effect::Discard { keep });
        step.events.push(Event::Closed);
        self.phase = Phase::Ended;
    }
}

fn by_itself(exited: Exited) -> Ending {
    match exited {
        Exited { failure: Some(failure), .. } => Ending::Failed(failure),
        Exited { failure: None, confirmed: true, .. } => Ending::Finished,
        // Whoever still lives may still write: nothing measured of this tree would be true.
        Exited { failure: None, confirmed: false, .. } => Ending::Failed(Failure::new(
            FailureClass::Unknown,
            "the program ended well, but processes it started could not be ended",
        )),
    }
}

fn give_up(what: &'static str, step: &mut Step) {
    step.events.push(Event::GaveUp { step: what });
    step.effects.push(Effect::Abandon);
}

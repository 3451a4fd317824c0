//! What people ask of a run: cancel, stop, pause, resume.

use std::collections::BTreeSet;

use ganger_shared::event::RunEvent;
use ganger_shared::ids::{AttemptId, Epoch, UnitId, WorkId};
use ganger_shared::link::StopReason;
use ganger_shared::nearest::nearest;
use ganger_shared::rejection::Rejection;
use ganger_shared::time::{DurationMs, Timestamp};

use crate::run::command::Call;
use crate::run::state::{Run, RunState};
use crate::run::unit::{Phase, UnitState};

const RUNGS: u64 = 3;

impl Run {
    pub(super) fn cancel(
        &self,
        call: &Call,
        name: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Rejection> {
        self.open("cancel", "an open run")?;
        let ix = self.find_unit(name)?;
        let unit = &self.units[ix];
        expect(call, || format!("unit {}", unit.spec.id), unit.seq)?;
        if let UnitState::Accepted { .. }
        | UnitState::Cancelled { .. }
        | UnitState::Skipped { .. } = unit.state
        {
            return Err(Rejection::WrongState {
                what: format!("unit {}", unit.spec.id),
                state: unit.state.word().to_owned(),
                command: "cancel",
                needs: "a unit that is not accepted, cancelled or skipped",
            });
        }
        let mut events = Vec::new();
        for ix in self.with_dependants(ix) {
            events.extend(self.cancel_one(ix, reason, now));
        }
        Ok(events)
    }

    /// The unit and everything that depends on it, in plan order.
    fn with_dependants(&self, ix: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::from([ix]);
        let mut open = vec![ix];
        while let Some(next) = open.pop() {
            for dependant in &self.units[next].dependants {
                if reached.insert(*dependant) {
                    open.push(*dependant);
                }
            }
        }
        reached
    }

    fn cancel_one(&self, ix: usize, reason: &str, now: Timestamp) -> Vec<RunEvent> {
        let unit = self.units[ix].spec.id.clone();
        let reason = reason.to_owned();
        match &self.units[ix].state {
            UnitState::Running => self.cancel_running(ix, unit, reason, now),
            UnitState::Pending
            | UnitState::Ready { .. }
            | UnitState::Delivered { .. }
            | UnitState::Failed { .. } => {
                vec![RunEvent::UnitCancelled { unit, confirmed: true, reason }]
            }
            UnitState::Accepted { .. }
            | UnitState::Stopping { .. }
            | UnitState::Cancelled { .. }
            | UnitState::Skipped { .. } => Vec::new(),
        }
    }

    /// Stops the unit's attempt; where the run's own stop has ended that already, there is nothing
    /// left to wait for.
    fn cancel_running(
        &self,
        ix: usize,
        unit: UnitId,
        reason: String,
        now: Timestamp,
    ) -> Vec<RunEvent> {
        let Some(attempt) = self.units[ix].attempts.last() else { return Vec::new() };
        let (id, epoch) = (&attempt.lease.attempt, attempt.lease.epoch);
        if self.live.contains_key(&WorkId::Attempt(id.clone())) {
            let stopping = self.stopping_event(id, epoch, StopReason::Cancelled, now);
            return vec![RunEvent::UnitStopping { unit, reason }, stopping];
        }
        let confirmed = match &attempt.phase {
            Phase::Cancelled { ended, .. } => ended.as_ref().is_some_and(|e| e.end.confirmed),
            Phase::Delivered { .. } | Phase::Failed { .. } => true,
            Phase::Leased
            | Phase::Preparing
            | Phase::Running
            | Phase::Stopping { .. }
            | Phase::Lost { .. } => false,
        };
        vec![RunEvent::UnitCancelled { unit, confirmed, reason }]
    }

    pub(super) fn stop(
        &self,
        reason: String,
        at_once: bool,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Rejection> {
        self.open("stop", "an open run")?;
        let again = matches!(&self.state, RunState::Stopping { now, .. } if *now || !at_once);
        if again {
            return Ok(Vec::new());
        }
        let mut events = vec![RunEvent::RunStopping { reason, now: at_once }];
        for (work, live) in &self.live {
            if let WorkId::Attempt(id) = work {
                events.push(self.stopping_event(id, live.epoch, StopReason::RunStopping, now));
            }
        }
        Ok(events)
    }

    pub(super) fn pause(&self, call: &Call, reason: String) -> Result<Vec<RunEvent>, Rejection> {
        self.open("pause", "an open run")?;
        expect(call, || self.name(), self.touched)?;
        match self.state {
            RunState::Active | RunState::Held { .. } | RunState::BudgetLimited { .. } => {
                Ok(vec![RunEvent::RunPaused { reason }])
            }
            RunState::Paused { .. } => Ok(Vec::new()),
            RunState::Submitting
            | RunState::Stopping { .. }
            | RunState::Completed
            | RunState::Aborted => Err(self.wrong_state("pause", "a run that is not stopping")),
        }
    }

    pub(super) fn resume(&self, call: &Call) -> Result<Vec<RunEvent>, Rejection> {
        self.open("resume", "an open run")?;
        expect(call, || self.name(), self.touched)?;
        match self.state {
            RunState::Paused { .. } => Ok(vec![RunEvent::RunResumed]),
            RunState::Active => Ok(Vec::new()),
            RunState::Submitting
            | RunState::Held { .. }
            | RunState::BudgetLimited { .. }
            | RunState::Stopping { .. }
            | RunState::Completed
            | RunState::Aborted => Err(self.wrong_state("resume", "a paused run")),
        }
    }

    pub(super) fn stopping_event(
        &self,
        id: &AttemptId,
        epoch: Epoch,
        reason: StopReason,
        now: Timestamp,
    ) -> RunEvent {
        let grace = self.head.as_ref().map_or(0, |head| head.grace_ms.0);
        let until = now.plus(DurationMs(RUNGS * grace));
        RunEvent::AttemptStopping { attempt: id.clone(), epoch, reason, until }
    }

    pub(in crate::run) fn find_unit(&self, name: &str) -> Result<usize, Rejection> {
        UnitId::parse(name).ok().and_then(|id| self.unit_ix(&id)).ok_or_else(|| {
            let known = self.units.iter().map(|unit| unit.spec.id.as_str());
            let near = nearest(name, known).and_then(|near| UnitId::parse(near).ok());
            Rejection::UnknownUnit { run: self.id(), unit: name.to_owned(), nearest: near }
        })
    }

    fn open(&self, command: &'static str, needs: &'static str) -> Result<(), Rejection> {
        let open = self.head.is_some() && !self.state.terminal();
        if open { Ok(()) } else { Err(self.wrong_state(command, needs)) }
    }

    fn wrong_state(&self, command: &'static str, needs: &'static str) -> Rejection {
        let state = self.state.word().to_owned();
        Rejection::WrongState { what: self.name(), state, command, needs }
    }

    /// The run stands as the caller saw it.
    pub(super) fn expected(&self, call: &Call) -> Result<(), Rejection> {
        expect(call, || self.name(), self.touched)
    }

    fn name(&self) -> String {
        self.head.as_ref().map_or("the run".to_owned(), |head| format!("run {}", head.run))
    }
}

/// A caller that looked at the object after its last change has seen it as it is.
fn expect(call: &Call, what: impl Fn() -> String, current: u64) -> Result<(), Rejection> {
    match call.expected {
        Some(expected) if expected < current => {
            Err(Rejection::StaleSequence { what: what(), expected, current })
        }
        Some(_) | None => Ok(()),
    }
}

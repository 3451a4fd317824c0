//! What people ask of a run: cancel, stop, pause, resume.

use std::collections::BTreeSet;

use ganger_shared::actor::Actor;
use ganger_shared::event::RunEvent;
use ganger_shared::ids::{AttemptId, Epoch, UnitId, WorkId};
use ganger_shared::link::StopReason;
use ganger_shared::nearest::nearest;
use ganger_shared::rejection::Rejection;
use ganger_shared::time::{DurationMs, Timestamp};

use crate::run::command::Call;
use crate::run::state::{Run, RunState};
use crate::run::unit::UnitState;

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
            UnitState::Running => {
                let mut events = vec![RunEvent::UnitStopping { unit, reason }];
                if let Some(lease) = self.units[ix].attempts.last().map(|attempt| &attempt.lease) {
                    let (id, epoch) = (&lease.attempt, lease.epoch);
                    events.push(self.stopping_event(id, epoch, StopReason::Cancelled, now));
                }
                events
            }
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

    pub(super) fn stop(
        &self,
        _by: &Actor,
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
        if self.state.terminal() { Err(self.wrong_state(command, needs)) } else { Ok(()) }
    }

    fn wrong_state(&self, command: &'static str, needs: &'static str) -> Rejection {
        let state = self.state.word().to_owned();
        Rejection::WrongState { what: self.name(), state, command, needs }
    }

    fn name(&self) -> String {
        format!("run {}", self.id())
    }
}

fn expect(call: &Call, what: impl Fn() -> String, current: u64) -> Result<(), Rejection> {
    match call.expected {
        Some(expected) if expected != current => {
            Err(Rejection::StaleSequence { what: what(), expected, current })
        }
        Some(_) | None => Ok(()),
    }
}

//! What must hold after every single event, counted and derived anew from the whole state.

use std::collections::{BTreeMap, BTreeSet};

use ganger_shared::delivery::{Delivery, Outcome};
use ganger_shared::event::{AttemptLease, Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, Epoch, LaneId, Subject, UnitId, WorkId};
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::verdict::{Judgement, Verdict};

use crate::run::unit::{Attempt, Gate, Measurement, Unit};
use crate::run::{Applying, EffectId, Integration, Phase, Run, RunState, Tally, UnitState};

/// What was seen so far and must stay so.
#[derive(Default)]
pub(super) struct Rules {
    epochs: BTreeMap<(UnitId, LaneId), Epoch>,
    check_epochs: BTreeMap<(UnitId, Subject, String), Epoch>,
    accepted: BTreeMap<UnitId, (AttemptId, Delivery)>,
    verdicts: BTreeMap<AttemptId, Vec<Verdict>>,
}

impl Rules {
    pub(super) fn hold(&mut self, before: &Run, run: &Run, envelope: &Envelope<RunEvent>) {
        assert!(run.at >= before.at && run.seq == before.seq + 1, "time and sequence only rise");
        self.of_event(before, run, &envelope.event);
        self.judged_stays(run);
        finality(before, run);
        one_live(run);
        gates(run);
        ledger(run);
        assert_eq!(run.tally, tally(run), "after {:?}", envelope.event);
        assert_eq!(run.tally.ready as usize, run.ready.len());
        let owed: BTreeSet<EffectId> = run.owed.keys().cloned().collect();
        assert_eq!(owed, demanded(run), "after {:?}", envelope.event);
        let due: BTreeSet<_> =
            run.live.iter().map(|(work, live)| (live.due, work.clone())).collect();
        assert_eq!(run.overdue, due, "everything leased has its time, and nothing else");
        assert!(run.view().is_some());
    }

    fn of_event(&mut self, before: &Run, run: &Run, event: &RunEvent) {
        match event {
            RunEvent::AttemptLeased(lease) => self.leased(before, lease),
            RunEvent::CheckLeased(lease) => {
                assert!(before.checks_wanted(), "{:?} begins {}", before.state, lease.check);
                let id = &lease.check;
                let key = (id.unit.clone(), id.subject.clone(), id.check.to_string());
                let last = self.check_epochs.insert(key, lease.epoch).unwrap_or_default();
                assert!(lease.epoch > last, "a fence of {id} was used twice");
            }
            RunEvent::VerdictGiven(verdict) => self.judged(before, run, verdict),
            RunEvent::ApplyIntended { attempt, tree, .. } => {
                assert!(before.checks_wanted(), "{:?} commits {attempt}", before.state);
                assert_eq!(before.queue.front(), Some(attempt));
                let measured = before
                    .measured
                    .iter()
                    .any(|((unit, _), m)| *unit == attempt.unit && m.tree == *tree && passed(m));
                assert!(measured, "{attempt} is committed unmeasured");
            }
            RunEvent::LateResult { attempt, adopted: true, .. } => {
                let (ix, at) = before.attempt(attempt).unwrap();
                assert_eq!(before.units[ix].attempts.len(), at + 1, "{attempt} is not the newest");
            }
            RunEvent::Applied { attempt, .. } => {
                assert!(before.owed.contains_key(&EffectId::Apply(attempt.clone())));
            }
            RunEvent::RunHeld { .. } | RunEvent::RunBudgetLimited { .. } | RunEvent::RunAborted => {
                assert!(before.live.is_empty(), "it rests while something runs");
            }
            RunEvent::RunCompleted { .. } => {
                assert!(before.live.is_empty() && before.units.iter().all(|u| met(&u.state)));
            }
            _ => {}
        }
    }

    /// Invariants 2, 4 and 6 at the moment of a lease.
    fn leased(&mut self, before: &Run, lease: &AttemptLease) {
        let id = &lease.attempt;
        let unit = &before.units[before.index[&id.unit]];
        let met = unit.spec.after.iter().all(|on| met(&before.units[before.index[on]].state));
        assert!(met, "{id} starts before what it depends on");
        assert!(matches!(before.state, RunState::Active | RunState::Held { .. }), "{id}");
        let unit_of = |work: &WorkId| match work {
            WorkId::Attempt(of) => Some(of.unit.clone()),
            WorkId::Check(_) => None,
        };
        assert!(before.live.keys().all(|work| unit_of(work) != Some(id.unit.clone())), "{id}");
        assert!(before.account(Dimension::Attempts).left() > 0, "{id} is past the budget");
        assert!(lease.allotted_ms.0 > 0);
        assert!(before.account(Dimension::ActiveMs).left() >= lease.allotted_ms.0, "{id}");
        let key = (id.unit.clone(), id.lane.clone());
        let last = self.epochs.insert(key, lease.epoch).unwrap_or_default();
        assert!(lease.epoch > last, "a fence of {id} was used twice");
    }

    /// Invariants 3, 5 and 6: judged on facts, once.
    fn judged(&mut self, before: &Run, run: &Run, verdict: &Verdict) {
        let id = &verdict.attempt;
        let (ix, at) = before.attempt(id).unwrap();
        assert_eq!(before.units[ix].state, UnitState::Delivered { attempt: at });
        let subject = Subject::Attempt(id.clone());
        if let Some(measurement) = before.measured.get(&(id.unit.clone(), subject)) {
            assert!(passed(measurement), "{id} is accepted on {measurement:?}");
        }
        assert_eq!(verdict.verdict, Judgement::Accept);
        assert!(!before.closing(), "{id} is accepted in a run that stops");
        let delivery = run.units[ix].attempts[at].delivery().unwrap().clone();
        let wrote = delivery.tree.as_ref().is_some_and(|tree| tree.changes.total > 0);
        let proven = !verdict.evidence_refs.is_empty();
        assert!(proven || !wrote || run.repository().is_none(), "{id} is accepted unproven");
        let again = self.accepted.insert(id.unit.clone(), (id.clone(), delivery));
        assert_eq!(again, None, "two deliveries of {} are accepted", id.unit);
    }

    fn judged_stays(&mut self, run: &Run) {
        for (unit, (id, delivery)) in &self.accepted {
            let (ix, at) = run.attempt(id).unwrap();
            assert_eq!(run.units[ix].attempts[at].delivery(), Some(delivery), "{unit}");
        }
        for attempt in run.units.iter().flat_map(|unit| &unit.attempts) {
            let seen = self.verdicts.entry(attempt.lease.attempt.clone()).or_default();
            assert!(attempt.verdicts.starts_with(seen), "a verdict was changed");
            seen.clone_from(&attempt.verdicts);
        }
    }
}

/// Invariant 2: accepted and, where there is something for the branch, on it.
fn met(state: &UnitState) -> bool {
    match state {
        UnitState::Accepted { integration, .. } => {
            matches!(integration, Integration::NotNeeded | Integration::Done { .. })
        }
        UnitState::Skipped { .. } => true,
        _ => false,
    }
}

/// Invariant 5: every required check is measured and passes.
fn passed(measurement: &Measurement) -> bool {
    measurement
        .checks
        .iter()
        .filter(|check| check.required)
        .all(|check| check.result.as_ref().is_some_and(|result| result.outcome == Outcome::Pass))
}

/// Invariant 8: what is final stays, whatever is reported.
fn finality(before: &Run, run: &Run) {
    if before.state.terminal() {
        assert_eq!(before.state, run.state);
    }
    for (was, is) in before.units.iter().zip(&run.units) {
        let kept = match (&was.state, &is.state) {
            (was, is) if was == is => true,
            (
                UnitState::Accepted { attempt: one, integration: Integration::Pending },
                UnitState::Accepted { attempt: other, .. },
            ) => one == other,
            (
                UnitState::Failed { .. },
                UnitState::Delivered { .. } | UnitState::Cancelled { .. },
            ) => true,
            (
                UnitState::Accepted { .. }
                | UnitState::Cancelled { .. }
                | UnitState::Skipped { .. }
                | UnitState::Failed { .. },
                _,
            ) => false,
            _ => !before.state.terminal(),
        };
        assert!(kept, "{}: {:?} became {:?}", was.spec.id, was.state, is.state);
    }
}

/// Invariant 6: nobody works twice on one thing; what is claimed stays claimed meanwhile.
fn one_live(run: &Run) {
    for unit in &run.units {
        let id = &unit.spec.id;
        let live = |attempt: &&Attempt| {
            run.live.contains_key(&WorkId::Attempt(attempt.lease.attempt.clone()))
        };
        let living: Vec<_> = unit.attempts.iter().filter(live).collect();
        assert!(living.len() <= 1, "{id} has {} live attempts", living.len());
        let runs = |attempt: &Attempt| {
            matches!(
                attempt.phase,
                Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. }
            )
        };
        assert_eq!(unit.attempts.iter().filter(|a| runs(a)).count(), living.len(), "{id}");
        if let Some(attempt) = living.first() {
            assert!(runs(attempt) && unit.attempts.last() == Some(attempt));
            assert!(!run.owed.contains_key(&EffectId::WantSlot(id.clone(), LaneId::main())));
            let writes = unit.spec.files.as_ref().is_some_and(|files| !files.is_empty());
            let claimed = run.owed.contains_key(&EffectId::Claim(id.clone()));
            assert!(claimed || !writes || run.repository().is_none(), "{id} lost its claim");
        }
    }
}

/// Invariant 2, as it stands.
fn gates(run: &Run) {
    if run.state == RunState::Submitting {
        return;
    }
    for unit in &run.units {
        let open = unit.spec.after.iter().filter(|on| !met(&run.units[run.index[*on]].state));
        let open = u32::try_from(open.count()).unwrap();
        assert_eq!(unit.open, open, "{}", unit.spec.id);
        if matches!(unit.state, UnitState::Ready { .. } | UnitState::Running) {
            assert_eq!(open, 0, "{}", unit.spec.id);
        }
    }
}

/// Invariant 4: sums over all attempts of every kind of end.
fn ledger(run: &Run) {
    let attempts = || run.units.iter().flat_map(|unit| &unit.attempts);
    let planned = if run.state == RunState::Submitting { 0 } else { run.units.len() };
    let counted = |dimension| {
        let Account { settled, limit, .. } = run.account(dimension);
        assert!(limit.is_none_or(|limit| settled <= limit), "{dimension} is exceeded");
        usize::try_from(settled).unwrap()
    };
    assert_eq!(counted(Dimension::Units), planned);
    assert_eq!(counted(Dimension::Attempts), attempts().count());
    let mut sum = Account { limit: run.account(Dimension::ActiveMs).limit, ..Account::default() };
    let mut over = 0;
    for attempt in attempts() {
        let allotted = attempt.lease.allotted_ms.0;
        let used = match &attempt.phase {
            Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => {
                sum.reserved += allotted;
                continue;
            }
            Phase::Delivered { ended, .. } => ended.active_ms.0,
            Phase::Failed { ended } => ended.active_ms.0,
            Phase::Cancelled { active_ms, .. } | Phase::Lost { active_ms, .. } => {
                active_ms.map_or(allotted, |used| used.0)
            }
        };
        sum.settled += used;
        over += used.saturating_sub(allotted);
    }
    if run.head.is_some() {
        assert_eq!(run.account(Dimension::ActiveMs), sum);
        assert!(sum.overrun() <= over, "an overrun is more than what was reported too much");
    }
}

fn tally(run: &Run) -> Tally {
    let count = |of: &dyn Fn(&Unit) -> bool| {
        u32::try_from(run.units.iter().filter(|unit| of(unit)).count()).unwrap()
    };
    let open = run.measured.values().flat_map(|m| &m.checks).filter(|c| c.result.is_none());
    Tally {
        ready: count(&|unit| matches!(unit.state, UnitState::Ready { .. })),
        done: count(&|unit| met(&unit.state)),
        failed: count(&|unit| {
            matches!(unit.state, UnitState::Failed { .. } | UnitState::Cancelled { .. })
        }),
        taking: u32::try_from(takes(run).count()).unwrap(),
        measuring: u32::try_from(open.count()).unwrap(),
    }
}

fn takes(run: &Run) -> impl Iterator<Item = AttemptId> {
    let attempts = run.units.iter().flat_map(|unit| &unit.attempts);
    let open = attempts.filter(|attempt| {
        !run.state.terminal() && matches!(attempt.phase, Phase::Delivered { taken: false, .. })
    });
    open.map(|attempt| attempt.lease.attempt.clone())
}

/// What the world owes, derived from nothing but where things stand.
fn demanded(run: &Run) -> BTreeSet<EffectId> {
    if run.state.terminal() {
        return BTreeSet::new();
    }
    let mut owed: BTreeSet<EffectId> = takes(run).map(EffectId::Take).collect();
    for (ix, unit) in run.units.iter().enumerate() {
        let id = unit.spec.id.clone();
        let grants = matches!(run.state, RunState::Active | RunState::Held { .. });
        let spent = [Dimension::Attempts, Dimension::ActiveMs].map(|d| run.account(d).left() == 0);
        if grants && spent == [false, false] && matches!(unit.state, UnitState::Ready { .. }) {
            owed.insert(EffectId::WantSlot(id.clone(), LaneId::main()));
        }
        if claims(run, ix) {
            owed.insert(EffectId::Claim(id));
        }
    }
    for (work, live) in &run.live {
        owed.extend(of_lease(run, work, live.epoch));
    }
    let paused = matches!(run.state, RunState::Paused { .. } | RunState::Stopping { .. });
    let checks = run.measured.values().flat_map(|m| &m.checks).filter(|c| c.result.is_none());
    let unleased = checks.filter(|c| !run.live.contains_key(&WorkId::Check(c.id.clone())));
    owed.extend(unleased.filter(|_| !paused).map(|c| EffectId::WantCheck(c.id.clone())));
    let first = run.queue.front().cloned();
    owed.extend(first.and_then(|first| match run.applying.as_ref()? {
        Applying::Merging { .. } => Some(EffectId::Merge(first)),
        Applying::Measuring { .. } => None,
        Applying::Committing { .. } => Some(EffectId::Apply(first)),
    }));
    owed
}

fn of_lease(run: &Run, work: &WorkId, epoch: Epoch) -> Option<EffectId> {
    let stops = match work {
        WorkId::Attempt(id) => {
            let (ix, at) = run.attempt(id).unwrap();
            match run.units[ix].attempts[at].phase {
                Phase::Leased => false,
                Phase::Stopping { .. } => true,
                _ => return None,
            }
        }
        WorkId::Check(id) => withdrawn(run, id),
    };
    let id = if stops { EffectId::Stop } else { EffectId::Assign };
    Some(id(work.clone(), epoch))
}

fn withdrawn(run: &Run, id: &CheckId) -> bool {
    let unit = &run.units[run.index[&id.unit]];
    let stopping = matches!(run.state, RunState::Stopping { .. });
    stopping || matches!(unit.state, UnitState::Cancelled { .. })
}

fn claims(run: &Run, ix: usize) -> bool {
    let unit = &run.units[ix];
    let files = unit.spec.files.as_ref().is_some_and(|files| !files.is_empty());
    let held = match &unit.state {
        UnitState::Running | UnitState::Stopping { .. } => true,
        UnitState::Accepted { integration, .. } => *integration == Integration::Pending,
        UnitState::Delivered { attempt } => {
            !matches!(run.attempt_gate(ix, *attempt), Some(Gate::Closed | Gate::Held))
        }
        _ => false,
    };
    files && held && run.repository().is_some()
}

//! Random histories: first anything may happen and every rule holds after every event, then the
//! faults stop, the world does what it owes, and the run must come to rest.

use std::fmt::Write as _;

use ganger_shared::event::LossReason;
use ganger_shared::ledger::Dimension;
use proptest::prelude::*;

use super::bench::*;
use super::world::World;
use crate::run::{Gate, Integration, RunState, UnitState};

/// Rounds in which a world without faults must come to rest: every unit may be tried and measured a
/// few times, one after the other, with its waits.
const ROUNDS_PER_UNIT: usize = 60;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is one key of a unit, there or not")]
struct Planned {
    after: u16,
    writes: bool,
    checks: usize,
    optional: bool,
    retry: Option<(u8, u8)>,
    external: bool,
    judged: bool,
}

#[derive(Debug, Clone)]
struct Graph {
    units: Vec<Planned>,
    repository: bool,
    backwards: bool,
    attempts: Option<u8>,
    active_m: Option<u8>,
}

#[derive(Debug, Clone)]
enum Step {
    Grant(usize, usize),
    Assign(usize),
    Halt(usize),
    Work(usize, usize, u8),
    Send(usize, usize, bool),
    Lose(usize, LossReason),
    Flood,
    Crash(usize),
    Reconcile(usize),
    Beat(usize),
    Trees(usize, u8, bool),
    Stranger(u8),
    Again(usize),
    Pass(u64),
    Back(u64),
    Cancel(usize),
    Stop(bool),
    Pause,
    Resume,
    Restart,
}

fn planned() -> impl Strategy<Value = Planned> {
    let retry = prop_oneof![2 => Just(None), 1 => (1_u8..5, 0_u8..6).prop_map(Some)];
    let rare = || prop::bool::weighted(0.12);
    (
        any::<u16>(),
        any::<u16>(),
        prop::bool::weighted(0.8),
        0..3_usize,
        rare(),
        retry,
        rare(),
        rare(),
    )
        .prop_map(|(one, other, writes, checks, optional, retry, external, judged)| Planned {
            after: one & other,
            writes,
            checks: if writes && checks == 0 { 1 } else { checks },
            optional,
            retry,
            external,
            judged,
        })
}

fn graph() -> impl Strategy<Value = Graph> {
    let units = prop::collection::vec(planned(), 1..12);
    let attempts = prop::option::weighted(0.25, 1_u8..20);
    let active_m = prop::option::weighted(0.25, 1_u8..12);
    (units, prop::bool::weighted(0.8), any::<bool>(), attempts, active_m).prop_map(
        |(units, repository, backwards, attempts, active_m)| Graph {
            units,
            repository,
            backwards,
            attempts,
            active_m,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    use Step as S;
    let n = || 0..64_usize;
    let lost = || prop::bool::weighted(0.15);
    let reason = prop_oneof![
        Just(LossReason::LeaseExpired),
        Just(LossReason::NotHeld),
        Just(LossReason::InstanceReplaced),
        Just(LossReason::WorkerLeft),
    ];
    let common = prop_oneof![
        14 => (n(), n()).prop_map(|(pick, on)| S::Grant(pick, on)),
        12 => n().prop_map(S::Assign),
        24 => (n(), n(), any::<u8>()).prop_map(|(on, pick, roll)| S::Work(on, pick, roll)),
        20 => (n(), n(), lost()).prop_map(|(on, pick, keep)| S::Send(on, pick, keep)),
        14 => (n(), any::<u8>(), lost()).prop_map(|(pick, roll, keep)| S::Trees(pick, roll, keep)),
        6 => (0..20_000_u64).prop_map(S::Pass),
    ];
    let rare = prop_oneof![
        4 => n().prop_map(S::Halt),
        4 => (n(), reason).prop_map(|(pick, reason)| S::Lose(pick, reason)),
        2 => n().prop_map(S::Crash),
        6 => Just(S::Flood),
        3 => n().prop_map(S::Reconcile),
        2 => n().prop_map(S::Beat),
        3 => n().prop_map(S::Again),
        2 => (60_000..400_000_u64).prop_map(S::Pass),
        1 => (0..5_000_u64).prop_map(S::Back),
        2 => n().prop_map(S::Cancel),
        2 => Just(S::Pause),
        8 => Just(S::Resume),
        3 => Just(S::Restart),
    ];
    let seldom = prop_oneof![
        1 => any::<u8>().prop_map(S::Stranger),
        2 => any::<bool>().prop_map(S::Stop),
    ];
    prop_oneof![160 => common, 40 => rare, 1 => seldom]
}

impl Graph {
    fn text(&self) -> String {
        let mut text = if self.repository { REPO } else { NO_REPO }.to_owned();
        let mut budgets: Vec<String> = vec![];
        budgets.extend(self.attempts.map(|most| format!("attempts: {most}")));
        budgets.extend(self.active_m.map(|most| format!("active: {most}m")));
        if !budgets.is_empty() {
            writeln!(text, "budgets: {{ {} }}", budgets.join(", ")).unwrap();
        }
        let mut lines: Vec<String> = (0..self.units.len()).map(|ix| self.line(ix)).collect();
        if self.backwards {
            lines.reverse();
        }
        format!("{text}units:\n{}", lines.concat())
    }

    fn line(&self, ix: usize) -> String {
        let unit = &self.units[ix];
        let after: Vec<String> =
            (0..ix).filter(|on| unit.after >> on & 1 == 1).map(|on| format!("u{on}")).collect();
        let mut line = format!(
            "  - {{ id: u{ix}, kind: command, run: make, timeout: 1m, after: [{}], files: [{}]",
            after.join(", "),
            if unit.writes { "'src/**'" } else { "" },
        );
        if self.repository && unit.checks > 0 {
            let required = |n: usize| !(n == 0 && unit.optional);
            let checks: Vec<String> = (0..unit.checks)
                .map(|n| format!("{{ name: c{n}, run: make test, required: {} }}", required(n)))
                .collect();
            write!(line, ", checks: [{}]", checks.join(", ")).unwrap();
        }
        if let Some((attempts, delay)) = unit.retry {
            write!(line, ", retry: {{ attempts: {attempts}, delay: {delay}s }}").unwrap();
        }
        let effects = if unit.external { ", effects: external" } else { "" };
        let accept = if unit.judged { ", accept: judge" } else { "" };
        format!("{line}{effects}{accept} }}\n")
    }
}

fn take(world: &mut World, step: &Step) {
    let worker = |pick: usize| world.worker(pick);
    let harm = matches!(
        step,
        Step::Cancel(_) | Step::Stop(_) | Step::Stranger(_) | Step::Lose(..) | Step::Crash(_)
    );
    if world.gentle && harm {
        return;
    }
    match *step {
        Step::Grant(pick, on) => world.grant(pick, worker(on)),
        Step::Assign(pick) => world.assign(pick),
        Step::Halt(pick) => world.halt(pick),
        Step::Work(on, pick, roll) => world.work(worker(on), pick, roll),
        Step::Send(on, pick, keep) => world.send(worker(on), pick, keep),
        Step::Lose(pick, reason) => world.lose(pick, reason),
        Step::Flood => world.flood(),
        Step::Crash(on) => world.crash(worker(on)),
        Step::Reconcile(on) => world.reconcile(worker(on)),
        Step::Beat(on) => world.beat(worker(on)),
        Step::Trees(pick, roll, lost) => world.trees(pick, roll, lost),
        Step::Stranger(n) => world.stranger(n),
        Step::Again(pick) => world.again(pick),
        Step::Pass(ms) => world.pass(ms),
        Step::Back(ms) => {
            let back = world.bench.now.unix_ms() - i64::try_from(ms).unwrap();
            world.bench.now = ganger_shared::time::Timestamp::from_unix_ms(back);
        }
        Step::Cancel(pick) => {
            let units = world.bench.run.units();
            let name = units[pick % units.len()].spec.id.to_string();
            world.bench.cancel(&name);
        }
        Step::Stop(now) => drop(world.bench.stop(now)),
        Step::Pause => drop(world.bench.pause()),
        Step::Resume => drop(world.bench.resume()),
        Step::Restart => world.bench.restart(),
    }
}

/// Lets the world behave until nobody but a person can do anything.
fn rest(world: &mut World, seed: u64) {
    let mut state = seed;
    let mut roll = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).unwrap()
    };
    let rounds = (world.bench.run.units().len() + 1) * ROUNDS_PER_UNIT;
    for _ in 0..rounds {
        world.round(&mut roll);
        if world.quiet() {
            return at_rest(world);
        }
    }
    panic!(
        "after {rounds} rounds the run is {}: {}\nowed: {:#?}",
        world.bench.stands(),
        world.bench.stand(),
        world.bench.run.owed()
    );
}

/// It is over, or it says what it waits for, and that is so.
fn at_rest(world: &World) {
    let run = &world.bench.run;
    let units = run.units();
    let any = |of: fn(&UnitState) -> bool| units.iter().any(|unit| of(&unit.state));
    let failed = any(|s| matches!(s, UnitState::Failed { .. } | UnitState::Cancelled { .. }));
    match run.state() {
        RunState::Completed => {
            assert!(units.iter().all(|unit| unit.state.done()));
            let tip = run.view().unwrap().tip;
            assert!(world.foreign || tip.is_none_or(|tip| tip == *world.branch()));
        }
        RunState::Aborted => assert!(any(|s| !s.done()) || run.owed().is_empty()),
        RunState::Paused { .. } => {}
        RunState::Held { reason } => {
            use ganger_shared::event::HoldReason;
            let reason = *reason;
            assert_eq!(reason == HoldReason::UnitFailed, failed, "{}", world.bench.stand());
            if reason == HoldReason::Gate {
                assert!(units.iter().any(|unit| waits(world, unit)), "{}", world.bench.stand());
            }
        }
        RunState::BudgetLimited { dimension } => {
            assert_eq!(run.account(*dimension).left(), 0);
            assert!(any(|s| matches!(s, UnitState::Ready { .. })));
        }
        RunState::Submitting | RunState::Active | RunState::Stopping { .. } => {
            panic!("nothing is left to do and the run is {}", world.bench.stands());
        }
    }
}

/// Whether a unit waits for a person: its gate, its judge, its conflict, or the final tree.
fn waits(world: &World, unit: &crate::run::Unit) -> bool {
    let final_gate = world.bench.run.measured.iter().any(|((of, subject), m)| {
        *of == unit.spec.id
            && matches!(subject, ganger_shared::ids::Subject::Final(_))
            && matches!(m.gate(), Gate::Closed | Gate::Held)
    });
    match &unit.state {
        UnitState::Delivered { .. } => true,
        UnitState::Accepted { integration, .. } => {
            final_gate || matches!(integration, Integration::Conflict { .. })
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// R165, P006, P007, P011, P013, P032, P038: design section 3 after every event of any history,
    /// and rest once the faults stop.
    #[test]
    fn every_rule_holds_and_every_run_comes_to_rest(
        graph in graph(),
        machines in 1..4_usize,
        steps in prop::collection::vec(step(), 0..220),
        seed in any::<u64>(),
        gentle in any::<bool>(),
    ) {
        let mut world = World::new(Bench::submitted(&graph.text()), machines, gentle);
        for step in &steps {
            take(&mut world, step);
        }
        rest(&mut world, seed);
        world.bench.resume();
        rest(&mut world, seed ^ 1);
        let paused = matches!(world.bench.run.state(), RunState::Paused { .. });
        prop_assert!(!paused);
        world.bench.stop(true);
        rest(&mut world, seed ^ 2);
        prop_assert!(world.bench.run.state().terminal());
        let events: Vec<_> = world.bench.log.iter().map(|envelope| &envelope.event).collect();
        prop_assert!(events.len() > 1 && world.bench.run.account(Dimension::Units).settled > 0);
    }
}

/// The histories above reach what they are about: a run that completes over a moved tip.
#[test]
fn a_world_without_faults_completes_a_plan() {
    let units: Vec<String> = (0..6)
        .map(|n| {
            let after = if n == 5 { "after: [u0, u1], " } else { "" };
            format!("u{n}: {after}checks: [{{ name: c, run: make test }}]")
        })
        .collect();
    let lines: Vec<&str> = units.iter().map(String::as_str).collect();
    let mut world = World::new(Bench::units(&lines), 3, true);
    for _ in 0..200 {
        world.round(&mut || 6);
    }
    assert_eq!(world.bench.stands(), "completed");
}

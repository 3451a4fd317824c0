//! Random histories: first anything may happen and every rule holds, then the faults stop and
//! everything that can be served is.

use proptest::prelude::*;

use super::world::World;
use super::*;

/// Rounds after which a world without faults must be at rest: the longest wait after offers that
/// were not taken, and room for everything to run one after the other.
const ROUNDS: usize = 200;

#[derive(Debug, Clone, Copy)]
enum Step {
    Attempt { of: u8, unit: usize, kind: usize, priority: i32, wait_ms: u64 },
    Check { of: u8, unit: usize, author: usize, kind: usize, place: Option<Where> },
    Unwant(usize),
    Answer(usize, bool),
    Finish(usize),
    Attach(usize),
    Reconcile(usize),
    Detach(usize, bool),
    Crash(usize, bool),
    Beat(usize, bool),
    Pass(u64, bool),
    Refold(u8),
    Restart,
    Mark(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let attempt = (1..4_u8, 0..4_usize, 0..6_usize, -1..2_i32, prop_oneof![Just(0), 0..900_u64]);
    let place =
        prop_oneof![Just(None), Just(Some(Where::OtherWorker)), Just(Some(Where::OtherTree))];
    let check = (1..4_u8, 0..4_usize, 0..3_usize, 0..6_usize, place);
    prop_oneof![
        8 => attempt.prop_map(|(of, unit, kind, priority, wait_ms)| {
            Step::Attempt { of, unit, kind, priority, wait_ms }
        }),
        4 => check.prop_map(|(of, unit, author, kind, place)| {
            Step::Check { of, unit, author, kind, place }
        }),
        1 => (0..6_usize).prop_map(Step::Unwant),
        8 => (0..3_usize, prop::bool::weighted(0.8)).prop_map(|(n, take)| Step::Answer(n, take)),
        4 => (0..6_usize).prop_map(Step::Finish),
        5 => (0..3_usize).prop_map(Step::Attach),
        5 => (0..3_usize).prop_map(Step::Reconcile),
        1 => (0..3_usize, any::<bool>()).prop_map(|(n, goodbye)| Step::Detach(n, goodbye)),
        1 => (0..3_usize, any::<bool>()).prop_map(|(n, noticed)| Step::Crash(n, noticed)),
        8 => (0..3_usize, prop::bool::weighted(0.1)).prop_map(|(n, f)| Step::Beat(n, f)),
        6 => (prop_oneof![4 => 1..150_u64, 1 => 150..1_500_u64], prop::bool::weighted(0.1))
            .prop_map(|(ms, suspended)| Step::Pass(ms, suspended)),
        1 => (1..4_u8).prop_map(Step::Refold),
        1 => Just(Step::Restart),
        1 => (0..3_usize, 0..3_usize).prop_map(|(n, mark)| Step::Mark(n, mark)),
    ]
}

fn machines() -> Vec<WorkerFacts> {
    let mut plain = facts("w0", 1);
    let mut linux = facts("w1", 2);
    let mut gpu = facts("w2", 1);
    plain.agents = vec![agent("codex")];
    linux.labels = labels(&[("os", "linux")]);
    gpu.labels = labels(&[("os", "linux"), ("gpu", "yes")]);
    gpu.agents = vec![agent("claude")];
    vec![plain, linux, gpu]
}

/// A unit's files are part of its plan: the same whenever it is wanted.
const FILES: [&[&str]; 4] = [&["src/**"], &["**/*.rs"], &["docs/a?"], &["{docs,lib}/*"]];

fn requires(wanted: &mut Wanted, kind: usize) {
    let (labels_of, agent): (&[_], _) = [
        (&[][..], None),
        (&[("os", "linux")][..], None),
        (&[("gpu", "yes")][..], None),
        (&[][..], Some("codex")),
        (&[("gpu", "yes")][..], Some("claude")),
        (&[("os", "mac")][..], None),
    ][kind];
    wanted.want.labels = labels(labels_of);
    wanted.want.agent = agent.map(str::to_owned);
}

fn project(of: u8) -> ProjectId {
    ProjectId::parse(if of == 1 { "p" } else { "q" }).unwrap()
}

fn carry_out(world: &mut World, step: Step) {
    match step {
        Step::Attempt { of, unit, kind, priority, wait_ms } => {
            let name = format!("u{unit}");
            let mut wanted = if unit == 3 && of == 1 {
                attempt(of, &name)
            } else {
                writing(of, &name, FILES[unit])
            };
            requires(&mut wanted, kind);
            wanted.project = project(of);
            wanted.want.priority = priority;
            wanted.want.not_before = at(wait_ms).at;
            world.want(wanted);
        }
        Step::Check { of, unit, author, kind, place } => {
            let mut wanted = check(of, &format!("u{unit}"), &format!("w{author}"), place);
            requires(&mut wanted, kind);
            wanted.project = project(of);
            world.want(wanted);
        }
        Step::Unwant(nth) => world.unwant(nth),
        Step::Answer(nth, take) => world.answer(nth, take),
        Step::Finish(nth) => world.finish(nth),
        Step::Attach(nth) => world.attach(nth),
        Step::Reconcile(nth) => world.reconcile(nth),
        Step::Detach(nth, goodbye) => world.detach(nth, goodbye),
        Step::Crash(nth, noticed) => world.crash(nth, noticed),
        Step::Beat(nth, forgets) => world.beat(nth, forgets),
        Step::Pass(ms, suspended) => world.pass(ms, suspended),
        Step::Refold(of) => world.refold(&run(of)),
        Step::Restart => world.restart(),
        Step::Mark(nth, mark) => {
            world.mark(nth, [Input::Cordon, Input::Uncordon, Input::Drain][mark]);
        }
    }
}

/// Whether any of the machines could ever serve the want.
fn can_be_served(world: &World, wanted: &Wanted) -> bool {
    let shape = Shape::of(&wanted.want);
    let only_other = match &wanted.want.kind {
        WantKind::Check { author, place: Some(Where::OtherWorker), .. } => Some(author),
        WantKind::Check { place: Some(Where::OtherTree) | None, .. } | WantKind::Attempt { .. } => {
            None
        }
    };
    let serves = |facts: &WorkerFacts| shape.fits(facts) && only_other != Some(&facts.worker);
    world.machines.iter().any(|machine| serves(&machine.facts))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Invariants 6 and 9, P007, P030, P035: rules hold at every step of any history, leases end
    /// once, and when the faults stop every want that can be served is, by one grant each.
    #[test]
    fn every_history_keeps_the_rules_and_comes_to_rest(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut world = World::new(machines());
        for step in steps {
            carry_out(&mut world, step);
        }
        let (wants, before) = (world.wants.len(), world.grants);
        let mut rounds = 0;
        let mut open = |world: &World| {
            rounds += 1;
            let served = |wanted: &Wanted| can_be_served(world, wanted);
            rounds <= ROUNDS && (world.wants.values().any(served) || !world.leases.is_empty())
        };
        while open(&world) {
            world.settle();
        }
        let unserved: Vec<_> =
            world.wants.values().filter(|wanted| can_be_served(&world, wanted)).collect();
        prop_assert!(unserved.is_empty(), "not served: {unserved:?}");
        prop_assert!(world.leases.is_empty());
        prop_assert!(world.grants - before <= wants, "a want was granted twice");
    }
}

//! Random histories: one start, one terminal report, rungs only upwards; and whatever the world
//! does not do, time alone brings every attempt to its end.

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::StopReason;
use ganger_shared::time::DurationMs;
use proptest::prelude::*;

use super::tests::{at, started};
use super::{Attempt, Bounds, Command, Effect, Evidence, Exited, Handed, Rung, Step, Terms};
use crate::outbox::ends;
use crate::samples::{assignment, attempt_lease, check_lease};

fn command() -> impl Strategy<Value = Command> {
    let failure = || Failure::new(FailureClass::TaskFailed, "so it goes");
    let evidence = |handed| {
        Command::Collected(Box::new(Evidence {
            handed,
            usage: Usage::default(),
            output: None,
            output_truncated: false,
        }))
    };
    prop_oneof![
        3 => Just(Command::Prepared),
        1 => Just(Command::PrepareFailed(failure())),
        3 => Just(Command::Spawned(started())),
        1 => Just(Command::SpawnFailed(failure())),
        3 => Just(Command::Ready),
        2 => (0_u64..200_000).prop_map(|at_ms| Command::Output { at_ms }),
        2 => (any::<bool>(), any::<bool>(), 0_u64..200_000).prop_map(move |(ok, confirmed, at_ms)| {
            let failure = (!ok).then(failure);
            Command::Exited(Exited { failure, confirmed, at_ms })
        }),
        1 => Just(evidence(Handed::Nothing)),
        1 => Just(evidence(Handed::Failed { failure: failure(), left: None })),
        2 => any::<bool>().prop_map(|now| Command::Stop { reason: StopReason::Cancelled, now }),
        1 => Just(Command::Leave),
        1 => Just(Command::CutOff { lease_ms: DurationMs(30_000) }),
        1 => Just(Command::Attached),
        3 => Just(Command::Tick),
    ]
}

/// What was seen of one attempt so far; every step must fit it.
#[derive(Default)]
struct Seen {
    spawns: u32,
    terminal: u32,
    discards: u32,
    rung: Option<Rung>,
}

impl Seen {
    fn take(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Prepare => panic!("a tree is made once, at the beginning"),
                Effect::Spawn => self.spawns += 1,
                Effect::Climb(rung) => {
                    assert!(self.rung < Some(*rung), "{rung:?} after {:?}", self.rung);
                    self.rung = Some(*rung);
                }
                Effect::Report(fact) => {
                    assert_eq!(self.terminal, 0, "{fact:?} after the end");
                    self.terminal += u32::from(ends(fact));
                }
                Effect::Discard { .. } => {
                    assert_eq!(self.terminal, 1, "the directory goes after the report");
                    self.discards += 1;
                }
                Effect::Abandon | Effect::Collect(_) => {}
            }
        }
        assert!(self.spawns <= 1 && self.terminal <= 1 && self.discards <= 1);
    }
}

proptest! {
    #[test]
    fn every_history_ends_in_one_terminal_report_and_starts_at_most_once(
        check in any::<bool>(),
        history in prop::collection::vec((command(), 0_u64..20_000), 0..40),
    ) {
        let lease = if check { check_lease("a", 1) } else { attempt_lease("a", 1) };
        let bounds = Bounds {
            prepare_ms: DurationMs(60_000),
            start_ms: DurationMs(30_000),
            kill_ms: DurationMs(30_000),
            collect_ms: DurationMs(60_000),
        };
        let (mut attempt, _) = Attempt::begin(Terms::of(&assignment(&lease), bounds), at(0));
        let (mut seen, mut now) = (Seen::default(), 0);
        for (command, passes) in history {
            now += passes;
            seen.take(&attempt.handle(at(now), command));
            prop_assert_eq!(attempt.has_ended(), seen.terminal == 1);
        }
        // Nobody answers any more; only the coordinator is back.
        seen.take(&attempt.handle(at(now), Command::Attached));
        let mut looks = 0;
        while let Some(due) = attempt.next_deadline() {
            looks += 1;
            prop_assert!(looks < 1_000, "{} after {looks} looks", attempt.phase_name());
            now = now.max(due);
            seen.take(&attempt.handle(at(now), Command::Tick));
        }
        prop_assert_eq!((seen.terminal, seen.discards), (1, 1));
    }
}

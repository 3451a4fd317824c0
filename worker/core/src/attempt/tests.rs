//! Given a phase, when a command or a time comes, then these events and effects.

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::link::{Fact, Started, StopReason};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::time::{DurationMs, Timestamp};

use super::{
    Attempt, Bounds, Command, Effect, Ending, Event, Evidence, Exited, Handed, Rung, Step, Terms,
    Why,
};
use crate::clock::Now;
use crate::samples::{assignment, attempt_lease, check_lease};

const BOUNDS: Bounds = Bounds {
    prepare_ms: DurationMs::from_secs(600),
    start_ms: DurationMs::from_secs(30),
    kill_ms: DurationMs::from_secs(30),
    collect_ms: DurationMs::from_secs(600),
};

fn terms() -> Terms {
    Terms::of(&assignment(&attempt_lease("a", 1)), BOUNDS)
}

pub(crate) fn at(ms: u64) -> Now {
    Now { mono_ms: ms, wall: Timestamp::from_unix_ms(i64::try_from(ms).expect("a small time")) }
}

pub(crate) fn started() -> Started {
    Started { pid: 7, isolated: true, containment: "pid_namespace".to_owned() }
}

/// An attempt that runs since `ms`.
fn running(terms: Terms, ms: u64) -> Attempt {
    let (mut attempt, _) = Attempt::begin(terms, at(ms));
    attempt.handle(at(ms), Command::Prepared);
    attempt.handle(at(ms), Command::Spawned(started()));
    attempt.handle(at(ms), Command::Ready);
    attempt
}

/// Looks at the clock whenever it is due up to `until`; returns everything that came of it.
fn pass(attempt: &mut Attempt, until: u64) -> Vec<(u64, Step)> {
    let mut steps = Vec::new();
    while let Some(due) = attempt.next_deadline().filter(|due| *due <= until) {
        let step = attempt.handle(at(due), Command::Tick);
        if step != Step::default() {
            steps.push((due, step));
        }
    }
    steps
}

fn rungs(steps: &[(u64, Step)]) -> Vec<(u64, Rung)> {
    let climbed = |step: &Step| {
        step.effects
            .iter()
            .find_map(|effect| if let Effect::Climb(rung) = effect { Some(*rung) } else { None })
    };
    steps.iter().filter_map(|(ms, step)| Some((*ms, climbed(step)?))).collect()
}

fn exited(ms: u64) -> Command {
    Command::Exited(Exited { failure: None, confirmed: true, at_ms: ms })
}

fn nothing() -> Command {
    evidence(Handed::Nothing)
}

fn evidence(handed: Handed) -> Command {
    Command::Collected(Box::new(Evidence {
        handed,
        usage: Usage::default(),
        output: None,
        output_truncated: false,
    }))
}

fn reported(step: &Step) -> Option<&Fact> {
    step.effects
        .iter()
        .find_map(|effect| if let Effect::Report(fact) = effect { Some(&**fact) } else { None })
}

fn failure(step: &Step) -> Option<FailureClass> {
    if let Some(Fact::Failed(ended)) = reported(step) {
        Some(ended.end.failure.class)
    } else {
        None
    }
}

fn stop(now: bool) -> Command {
    Command::Stop { reason: StopReason::Cancelled, now }
}

/// P021: who ignores every request is interrupted, terminated and killed, each step once.
#[test]
fn an_attempt_that_ignores_every_rung_is_killed_and_each_step_comes_once() {
    let mut attempt = running(terms(), 0);
    let first = attempt.handle(at(1_000), stop(false));
    assert_eq!(first.effects, [Effect::Climb(Rung::Interrupt)]);
    let again = attempt.handle(at(1_500), stop(false));
    assert_eq!(again, Step::default());
    let steps = pass(&mut attempt, 300_000);
    assert_eq!(rungs(&steps), [(11_000, Rung::Terminate), (21_000, Rung::Kill)]);
    let (when, last) = &steps[2];
    assert_eq!(*when, 51_000);
    let ending = Ending::Stopped { confirmed: false };
    assert_eq!(last.effects, [Effect::Abandon, Effect::Collect(ending)]);
    let end = attempt.handle(at(52_000), nothing());
    assert!(matches!(reported(&end), Some(Fact::Stopped(ended)) if !ended.end.confirmed));
    assert_eq!(attempt.next_deadline(), None);
}

#[test]
fn a_stop_without_grace_kills_at_once_from_wherever_the_ladder_is() {
    let mut attempt = running(terms(), 0);
    assert_eq!(attempt.handle(at(0), stop(true)).effects, [Effect::Climb(Rung::Kill)]);
    let mut attempt = running(terms(), 0);
    attempt.handle(at(0), stop(false));
    assert_eq!(attempt.handle(at(1), stop(true)).effects, [Effect::Climb(Rung::Kill)]);
    assert_eq!(attempt.handle(at(2), stop(true)), Step::default());
}

/// P025: any line is life; a word at half of the allowed silence, the end at the whole.
#[test]
fn silence_is_said_at_half_and_ended_at_the_whole() {
    let mut attempt = running(terms(), 0);
    attempt.handle(at(3_000), Command::Output { at_ms: 3_000 });
    attempt.handle(at(6_000), Command::Output { at_ms: 6_000 });
    let steps = pass(&mut attempt, 16_000);
    let quiet = Event::QuietAtHalf { quiet_ms: DurationMs(5_000) };
    assert_eq!(steps[0], (11_000, Step { events: vec![quiet], effects: vec![] }));
    assert_eq!(rungs(&steps), [(16_000, Rung::Interrupt)]);
    attempt.handle(at(17_000), exited(17_000));
    assert_eq!(failure(&attempt.handle(at(17_000), nothing())), Some(FailureClass::StreamStall));
}

/// P026: without any line yet, silence counts from this attempt's own start.
#[test]
fn silence_counts_from_this_start_when_nothing_was_ever_printed() {
    let mut attempt = running(terms(), 500_000);
    attempt.handle(at(500_001), Command::Output { at_ms: 0 });
    let steps = pass(&mut attempt, 510_000);
    assert_eq!(rungs(&steps), [(510_000, Rung::Interrupt)]);
}

#[test]
fn a_word_after_half_of_the_silence_begins_it_anew() {
    let mut attempt = running(terms(), 0);
    pass(&mut attempt, 6_000);
    attempt.handle(at(7_000), Command::Output { at_ms: 7_000 });
    let steps = pass(&mut attempt, 16_999);
    let quiet = Event::QuietAtHalf { quiet_ms: DurationMs(5_000) };
    assert_eq!(steps, [(12_000, Step { events: vec![quiet], effects: vec![] })]);
}

/// P018: what had ended before anybody wanted it stopped has ended well, whoever is heard first.
#[test]
fn an_end_before_the_stop_stays_the_end() {
    let mut attempt = running(terms(), 0);
    attempt.handle(at(5_000), stop(false));
    let step = attempt.handle(at(5_010), exited(4_999));
    assert_eq!(step.effects, [Effect::Collect(Ending::Finished)]);
    let late = attempt.handle(at(5_020), stop(true));
    assert_eq!(late.events, [Event::StopCameLate]);
    let mut stopped = running(terms(), 0);
    stopped.handle(at(5_000), stop(false));
    let step = stopped.handle(at(5_010), exited(5_000));
    assert_eq!(step.effects, [Effect::Collect(Ending::Stopped { confirmed: true })]);
}

/// P020: a program that starts and then waits for something else than us is ended.
#[test]
fn an_agent_that_does_not_begin_to_speak_is_ended() {
    let (mut attempt, _) = Attempt::begin(terms(), at(0));
    attempt.handle(at(0), Command::Prepared);
    attempt.handle(at(100), Command::Spawned(started()));
    let steps = pass(&mut attempt, 30_100);
    assert_eq!(rungs(&steps), [(30_100, Rung::Interrupt)]);
    attempt.handle(at(30_200), exited(30_200));
    assert_eq!(failure(&attempt.handle(at(30_300), nothing())), Some(FailureClass::StartTimeout));
}

#[test]
fn a_program_that_is_never_there_is_given_up() {
    let (mut attempt, _) = Attempt::begin(terms(), at(0));
    attempt.handle(at(0), Command::Prepared);
    let steps = pass(&mut attempt, 30_000);
    assert!(matches!(&steps[0].1.effects[..], [Effect::Abandon, Effect::Collect(_)]));
    assert_eq!(failure(&attempt.handle(at(30_001), nothing())), Some(FailureClass::StartTimeout));
}

/// P002: preparing for ever is not a state.
#[test]
fn a_tree_that_is_never_made_fails_the_attempt() {
    let (mut attempt, first) = Attempt::begin(terms(), at(0));
    assert_eq!(first.effects, [Effect::Prepare]);
    let steps = pass(&mut attempt, 600_000);
    assert_eq!(failure(&steps[0].1), Some(FailureClass::WorkspaceFailed));
    assert!(attempt.has_ended());
}

#[test]
fn a_stop_while_the_program_is_being_started_ends_it_as_soon_as_it_is_there() {
    let (mut attempt, _) = Attempt::begin(terms(), at(0));
    attempt.handle(at(0), Command::Prepared);
    assert_eq!(attempt.handle(at(1), stop(false)).effects, []);
    let spawned = attempt.handle(at(2), Command::Spawned(started()));
    assert_eq!(spawned.effects[1], Effect::Climb(Rung::Interrupt));
}

#[test]
fn a_stop_before_there_is_a_program_reports_at_once() {
    let (mut attempt, _) = Attempt::begin(terms(), at(0));
    let step = attempt.handle(at(1), stop(false));
    assert_eq!(step.effects[0], Effect::Abandon);
    assert!(matches!(reported(&step), Some(Fact::Stopped(ended)) if ended.end.confirmed));
}

#[test]
fn a_program_that_runs_too_long_is_ended_whatever_it_prints() {
    let mut attempt = running(Terms { timeout_ms: DurationMs(20_000), ..terms() }, 0);
    let mut interrupted = None;
    for ms in (1_000..=25_000).step_by(1_000) {
        attempt.handle(at(ms), Command::Output { at_ms: ms });
        let step = attempt.handle(at(ms), Command::Tick);
        interrupted = interrupted.or(step.effects.first().map(|_| ms));
    }
    assert_eq!(interrupted, Some(20_000));
}

/// P030, P033: a host that slept, by either clock, has not used up anybody's time.
#[test]
fn time_asleep_is_nobodys_time() {
    let mut attempt = running(terms(), 0);
    let woken = Now { mono_ms: 1_000, wall: Timestamp::from_unix_ms(86_400_000) };
    let step = attempt.handle(woken, Command::Tick);
    assert_eq!(step.events, [Event::Slept { slept_ms: DurationMs(86_399_000) }]);
    assert_eq!(attempt.phase_name(), "running");
}

#[test]
fn a_worker_cut_off_for_a_lease_stops_only_what_the_plan_says() {
    let lease_ms = DurationMs::from_secs(30);
    let silence_ms = None;
    let mut goes_on = running(Terms { silence_ms, ..terms() }, 0);
    goes_on.handle(at(0), Command::CutOff { lease_ms });
    assert_eq!(rungs(&pass(&mut goes_on, 200_000)), []);
    let on_disconnect = OnDisconnect::Stop;
    let mut stops = running(Terms { silence_ms, on_disconnect, ..terms() }, 0);
    stops.handle(at(0), Command::CutOff { lease_ms });
    stops.handle(at(29_000), Command::CutOff { lease_ms });
    let came = pass(&mut stops, 30_000);
    assert_eq!(rungs(&came), [(30_000, Rung::Interrupt)]);
    assert_eq!(came[0].1.events[0], Event::Halted { why: Why::LeaseEnded });
    let mut back = running(Terms { silence_ms, on_disconnect, ..terms() }, 0);
    back.handle(at(0), Command::CutOff { lease_ms });
    back.handle(at(29_999), Command::Attached);
    assert_eq!(rungs(&pass(&mut back, 200_000)), []);
}

/// A finished result is never lost: what waits for the coordinator is not late while there is none.
#[test]
fn a_result_waits_for_a_coordinator_that_is_away() {
    let mut attempt = running(terms(), 0);
    attempt.handle(at(1), exited(1));
    attempt.handle(at(2), Command::CutOff { lease_ms: DurationMs::from_secs(30) });
    assert_eq!(pass(&mut attempt, 7_200_000), []);
    attempt.handle(at(7_200_000), Command::Attached);
    let steps = pass(&mut attempt, 7_800_000);
    assert_eq!(failure(&steps[0].1), Some(FailureClass::OutputRegistrationFailed));
}

#[test]
fn survivors_of_a_good_end_make_it_none() {
    let mut attempt = running(terms(), 0);
    let end = Exited { failure: None, confirmed: false, at_ms: 1 };
    let step = attempt.handle(at(1), Command::Exited(end));
    assert!(
        matches!(&step.effects[..], [Effect::Collect(Ending::Failed(failure))] if failure.class == FailureClass::Unknown)
    );
}

#[test]
fn a_check_that_fails_by_itself_measured_nothing() {
    let mut check = running(Terms::of(&assignment(&check_lease("a", 1)), BOUNDS), 0);
    let broken = Failure::new(FailureClass::CommandFailed, "no shell");
    let end = Exited { failure: Some(broken.clone()), confirmed: true, at_ms: 1 };
    check.handle(at(1), Command::Exited(end));
    let step = check.handle(at(2), evidence(Handed::Failed { failure: broken, left: None }));
    match reported(&step) {
        Some(Fact::Measured(ended)) => {
            let result = &ended.end;
            assert_eq!(
                result.not_measured,
                Some(ganger_shared::delivery::NotMeasured::HarnessDefect)
            );
            assert_eq!(result.message.as_deref(), Some("no shell"));
        }
        other => panic!("reported {other:?}"),
    }
    let mut ended = running(Terms::of(&assignment(&check_lease("a", 1)), BOUNDS), 0);
    ended.handle(at(1), Command::Leave);
    ended.handle(at(2), exited(2));
    assert_eq!(failure(&ended.handle(at(3), nothing())), Some(FailureClass::WorkerRestarted));
}

//! Many seeds, each a whole fleet on one thread; and proof that the checkers see what they are for.
//!
//! `GANGER_SIM_SEEDS=1000000 cargo test -p ganger-sim --release keep_every_rule` runs so many seeds,
//! from `GANGER_SIM_FROM` on; `GANGER_SIM_SEED=7 cargo test -p ganger-sim replays -- --nocapture`
//! replays one and prints its history. A seed names a world only together with the code that draws
//! worlds from seeds: a seed that showed a defect is kept below as long as it shows it.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::thread;

use ganger_sim::{Bug, Ended, simulate};

/// Seeds that are simulated unless more are asked for.
const SEEDS: u64 = 1_000;
/// Seeds within which each planted mistake is found.
const FOUND_WITHIN: u64 = 400;
/// Failing seeds that are told; the rest is counted.
const TOLD: usize = 20;

/// Seeds that showed a defect of the cores, and which it was.
const SHOWN: [(u64, &str); 3] = [
    (55, "a run whose ready units wait behind a judge stays active for ever"),
    (110, "a run whose ready units wait behind a judge stays active for ever"),
    (2885, "after the clock was set back, wishes waited for it to catch up"),
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How a world ended; a panic of a core is an end like any other.
fn ended(seed: u64, bug: Option<Bug>) -> Ended {
    catch_unwind(|| simulate(seed, bug, false)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let broken = Some(format!("it panics: {}", text.unwrap_or("without words")));
        Ended { broken, history: Vec::new(), happenings: 0, events: 0, completed: 0 }
    })
}

/// What broke at which of these seeds, and how much happened in all.
fn simulate_all(seeds: impl Iterator<Item = u64>) -> (Vec<String>, [u64; 3]) {
    let (mut broken, mut sums) = (Vec::new(), [0; 3]);
    for seed in seeds {
        let Ended { broken: what, happenings, events, completed, .. } = ended(seed, None);
        broken.extend(what.map(|what| format!("seed {seed}: {what}")));
        for (sum, more) in sums.iter_mut().zip([happenings, events, completed]) {
            *sum += more;
        }
    }
    (broken, sums)
}

/// R058, R163, R165, P006, P007, P011, P030, P035, P037, P042, P113: whatever is lost, doubled,
/// delayed or cut, whoever dies, sleeps or has a wrong clock, every rule of `src/rules` holds, and
/// once the faults stop every run comes to rest.
#[test]
fn a_thousand_worlds_keep_every_rule_and_come_to_rest() {
    let from = number("GANGER_SIM_FROM").unwrap_or(0);
    let seeds = number("GANGER_SIM_SEEDS").unwrap_or(SEEDS);
    let hands = thread::available_parallelism().map_or(1, |hands| hands.get() as u64);
    let (mut broken, mut sums) = (Vec::new(), [0; 3]);
    thread::scope(|scope| {
        let share =
            |hand: u64| (from + hand..from + seeds).step_by(usize::try_from(hands).unwrap_or(1));
        let all: Vec<_> =
            (0..hands).map(|hand| scope.spawn(move || simulate_all(share(hand)))).collect();
        for hand in all {
            let (more, counted) = hand.join().expect("a panic of a world is caught");
            broken.extend(more);
            for (sum, more) in sums.iter_mut().zip(counted) {
                *sum += more;
            }
        }
    });
    let [happenings, events, completed] = sums;
    eprintln!(
        "{seeds} seeds: {happenings} happenings, {events} events, {completed} runs completed"
    );
    let count = broken.len();
    broken.truncate(TOLD);
    assert!(count == 0, "{count} of {seeds} worlds broke a rule:\n{}", broken.join("\n"));
    assert!(completed >= seeds / 10, "worlds in which so little comes about show nothing");
}

/// A seed is all there is to a world.
#[test]
fn one_seed_replays_alone_with_its_history() {
    let wanted = number("GANGER_SIM_SEED");
    let seed = wanted.unwrap_or(7);
    let told = simulate(seed, None, true);
    let again = simulate(seed, None, true);
    if wanted.is_some() {
        eprintln!("{}\nseed {seed}: {:?}", told.history.join("\n"), told.broken);
    }
    assert!(!told.history.is_empty());
    assert_eq!(told, again);
}

/// Defects that were found here stay mended.
#[test]
fn seeds_that_showed_a_defect_stay_well() {
    for (seed, what) in SHOWN {
        assert_eq!(ended(seed, None).broken, None, "seed {seed} showed that {what}");
    }
}

/// The planted mistake shows within a number of seeds, as one of these says.
fn is_found_as(bug: Bug, says: &[&str]) {
    let shows = |seed| {
        let what = ended(seed, Some(bug)).broken?;
        says.iter().any(|words| what.contains(words)).then_some(seed)
    };
    let seed = (0..FOUND_WITHIN).find_map(shows);
    assert!(seed.is_some(), "{bug:?} does not show as {says:?} within {FOUND_WITHIN} seeds");
}

#[test]
fn a_second_start_under_one_epoch_is_seen() {
    is_found_as(Bug::RepeatedAssignBegins, &["started twice"]);
}

#[test]
fn leases_that_outlive_their_worker_are_seen() {
    is_found_as(Bug::LeasesNeverEnd, &["is still leased"]);
}

#[test]
fn an_answer_before_its_append_is_seen() {
    is_found_as(Bug::AnswersBeforeAppend, &["is not in the journal"]);
}

#[test]
fn a_stale_report_that_counts_is_seen() {
    // The newest attempt has what it never said, and what the old one said is nowhere.
    let says = ["never reported what is recorded of it", "which is not in the journal"];
    is_found_as(Bug::StaleReportCounts, &says);
}

#[test]
fn a_unit_that_does_not_wait_is_seen() {
    is_found_as(Bug::NoDependencies, &["is integrated"]);
}

#[test]
fn wants_that_are_not_withdrawn_are_seen() {
    is_found_as(Bug::WantsStay, &["wants none"]);
}

#[test]
fn reports_that_a_restart_forgets_are_seen() {
    is_found_as(Bug::OutboxForgets, &["was made and forgotten"]);
}

#[test]
fn an_accepted_lease_that_never_begins_is_seen() {
    is_found_as(Bug::AcceptedIsForgotten, &["does not come to rest"]);
}

#[test]
fn a_coordinator_that_hands_out_nothing_after_a_start_is_seen() {
    is_found_as(Bug::NothingIsOwed, &["does not come to rest"]);
}

/// Each mistake above has its test.
#[test]
fn every_planted_mistake_is_another() {
    let names: BTreeSet<String> = Bug::ALL.iter().map(|bug| format!("{bug:?}")).collect();
    assert_eq!(names.len(), Bug::ALL.len());
}

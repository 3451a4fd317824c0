//! Given what is owed, when something is accepted, reported or answered, then this is owed.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use ganger_shared::delivery::Usage;
use ganger_shared::digest::Digest;
use ganger_shared::ids::Epoch;
use ganger_shared::link::{Anchor, Answer, Ended, Fact, Lease, Report, Started, Stopped};
use ganger_shared::time::DurationMs;
use proptest::prelude::*;

use super::{NotAccepted, NotReported, Outbox, Record, ends};
use crate::samples::{assignment, attempt_lease, check_lease};

fn stopped() -> Fact {
    Fact::Stopped(Ended {
        end: Stopped { confirmed: true, usage: Usage::default() },
        active_ms: DurationMs(0),
        output: None,
        output_truncated: false,
    })
}

fn started() -> Fact {
    Fact::Started(Started { pid: 1, isolated: false, containment: "descendants".to_owned() })
}

fn anchor(generation: u64, log_seq: u64) -> Anchor {
    Anchor { store_id: "s".to_owned(), generation, log_seq, hash: Digest::of(b"") }
}

fn apply(outbox: &mut Outbox, records: impl IntoIterator<Item = Record>) {
    for record in records {
        outbox.apply(record);
    }
}

fn accept(outbox: &mut Outbox, lease: &Lease) -> Result<(), NotAccepted> {
    let records = outbox.accept(&assignment(lease))?;
    apply(outbox, records);
    Ok(())
}

fn report(outbox: &mut Outbox, lease: &Lease, fact: Fact) -> Result<(), NotReported> {
    let record = outbox.report(lease, fact)?;
    outbox.apply(record);
    Ok(())
}

fn answer(outbox: &mut Outbox, lease: &Lease, number: u32, answer: Answer) -> bool {
    let record = outbox.answered(lease, number, answer);
    record.map(|record| outbox.apply(record)).is_some()
}

fn owed(outbox: &Outbox) -> Vec<(Lease, u32)> {
    let unanswered = outbox.unanswered().into_iter();
    unanswered.map(|waiting| (waiting.report.lease.clone(), waiting.report.number)).collect()
}

#[test]
fn an_accepted_lease_is_reported_first_and_numbers_count_up_from_one() {
    let (mut outbox, lease) = (Outbox::new(100), attempt_lease("a", 1));
    accept(&mut outbox, &lease).unwrap();
    report(&mut outbox, &lease, started()).unwrap();
    report(&mut outbox, &lease, stopped()).unwrap();
    let facts: Vec<Report> =
        outbox.unanswered().into_iter().map(|waiting| waiting.report.clone()).collect();
    let one = |number, fact| Report { lease: lease.clone(), number, fact };
    assert_eq!(facts, [one(1, Fact::Accepted), one(2, started()), one(3, stopped())]);
    assert_eq!((outbox.live(), outbox.finished()), (vec![], vec![lease]));
}

/// R063, P032: nothing is started twice under one epoch, and no older one begins after a newer.
#[test]
fn a_repeated_or_older_assignment_is_refused_even_when_all_is_answered() {
    let (mut outbox, lease) = (Outbox::new(100), attempt_lease("a", 5));
    accept(&mut outbox, &lease).unwrap();
    report(&mut outbox, &lease, stopped()).unwrap();
    assert!(answer(&mut outbox, &lease, 1, Answer::Recorded));
    assert!(answer(&mut outbox, &lease, 2, Answer::Recorded));
    assert_eq!(outbox.finished(), vec![]);
    let (work, epoch) = (Box::new(lease.work.clone()), lease.epoch);
    let repeated = NotAccepted::Repeated { work: work.clone(), epoch };
    assert_eq!(accept(&mut outbox, &lease), Err(repeated));
    let stale = NotAccepted::Stale { work, epoch: Epoch(4), newest: Epoch(5) };
    assert_eq!(accept(&mut outbox, &attempt_lease("a", 4)), Err(stale));
    assert_eq!(accept(&mut outbox, &attempt_lease("a", 6)), Ok(()));
}

#[test]
fn only_an_answer_that_settles_lets_a_report_go_and_doubles_do_no_harm() {
    let (mut outbox, lease) = (Outbox::new(100), attempt_lease("a", 1));
    accept(&mut outbox, &lease).unwrap();
    assert!(!answer(&mut outbox, &lease, 1, Answer::RetryLater));
    assert_eq!(owed(&outbox), [(lease.clone(), 1)]);
    assert!(answer(&mut outbox, &lease, 1, Answer::Stale));
    assert!(!answer(&mut outbox, &lease, 1, Answer::Recorded));
    assert!(!answer(&mut outbox, &lease, 9, Answer::Recorded));
    assert!(outbox.is_disowned(&lease, Answer::Stale));
    assert!(!outbox.is_disowned(&check_lease("a", 1), Answer::Stale));
    assert_eq!(outbox.live(), vec![lease]);
}

#[test]
fn a_lease_that_ended_makes_no_more_reports() {
    let (mut outbox, lease) = (Outbox::new(100), attempt_lease("a", 1));
    let none = NotReported::NotLive { work: Box::new(lease.work.clone()), epoch: lease.epoch };
    assert_eq!(report(&mut outbox, &lease, stopped()), Err(none.clone()));
    accept(&mut outbox, &lease).unwrap();
    report(&mut outbox, &lease, stopped()).unwrap();
    assert_eq!(report(&mut outbox, &lease, stopped()), Err(none));
}

#[test]
fn a_full_outbox_takes_no_lease_but_every_report_of_those_it_has() {
    let mut outbox = Outbox::new(4);
    let (first, second) = (attempt_lease("a", 1), attempt_lease("b", 1));
    accept(&mut outbox, &first).unwrap();
    report(&mut outbox, &first, started()).unwrap();
    assert!(outbox.is_full());
    let full = NotAccepted::Full { work: Box::new(second.work.clone()), waiting: 2 };
    assert_eq!(accept(&mut outbox, &second), Err(full));
    report(&mut outbox, &first, stopped()).unwrap();
    for number in 1..=3 {
        answer(&mut outbox, &first, number, Answer::Recorded);
    }
    assert_eq!(accept(&mut outbox, &second), Ok(()));
}

#[test]
fn a_lease_stopped_before_it_came_is_reported_and_never_begins() {
    let (mut outbox, lease) = (Outbox::new(100), attempt_lease("a", 3));
    let records = outbox.decline(&lease, stopped()).unwrap();
    apply(&mut outbox, records);
    assert_eq!(outbox.finished(), vec![lease.clone()]);
    assert!(matches!(accept(&mut outbox, &lease), Err(NotAccepted::Repeated { .. })));
    assert_eq!(outbox.decline(&lease, stopped()), None);
}

#[test]
fn only_the_furthest_place_of_a_journal_is_remembered() {
    let mut outbox = Outbox::new(100);
    for (place, further) in [
        (anchor(0, 5), true),
        (anchor(0, 5), false),
        (anchor(0, 4), false),
        (anchor(1, 2), true),
        (anchor(0, 9), false),
    ] {
        let record = outbox.shown(&place);
        assert_eq!(record.is_some(), further, "{place:?}");
        apply(&mut outbox, record);
    }
    assert_eq!(outbox.seen(), Some(&anchor(1, 2)));
}

#[derive(Debug, Clone)]
enum Deed {
    Accept(Lease),
    Report(Lease, bool),
    Answer(Lease, u32, bool),
    Decline(Lease),
    Shown(u64),
    Anew,
}

fn deed() -> impl Strategy<Value = Deed> {
    let lease = || {
        (0_usize..3, 1_u64..4, any::<bool>()).prop_map(|(unit, epoch, check)| {
            let unit = ["a", "b", "c"][unit];
            if check { check_lease(unit, epoch) } else { attempt_lease(unit, epoch) }
        })
    };
    prop_oneof![
        4 => lease().prop_map(Deed::Accept),
        4 => (lease(), any::<bool>()).prop_map(|(lease, last)| Deed::Report(lease, last)),
        6 => (lease(), 1_u32..4, any::<bool>())
            .prop_map(|(lease, number, settles)| Deed::Answer(lease, number, settles)),
        1 => lease().prop_map(Deed::Decline),
        1 => (0_u64..9).prop_map(Deed::Shown),
        1 => Just(Deed::Anew),
    ]
}

fn decide(outbox: &Outbox, deed: Deed) -> Vec<Record> {
    match deed {
        Deed::Accept(lease) => outbox.accept(&assignment(&lease)).unwrap_or_default(),
        Deed::Report(lease, last) => {
            let fact = if last { stopped() } else { started() };
            outbox.report(&lease, fact).into_iter().collect()
        }
        Deed::Answer(lease, number, settles) => {
            let answer = if settles { Answer::Recorded } else { Answer::RetryLater };
            outbox.answered(&lease, number, answer).into_iter().collect()
        }
        Deed::Decline(lease) => outbox.decline(&lease, stopped()).unwrap_or_default(),
        Deed::Shown(log_seq) => outbox.shown(&anchor(0, log_seq)).into_iter().collect(),
        Deed::Anew => outbox.anew(),
    }
}

/// What does not depend on how many records it took to get there.
fn essence(outbox: &Outbox) -> (Vec<Record>, Vec<(Lease, u32)>) {
    (outbox.anew(), owed(outbox))
}

proptest! {
    /// A restart at any point, over the whole file or a shortened one, owes exactly the same; no
    /// lease is accepted twice, none ends twice, and no report goes without an answer.
    #[test]
    fn the_fold_of_the_records_is_the_state(deeds in prop::collection::vec(deed(), 0..60)) {
        let (mut live, mut accepted, mut ended) = (Outbox::new(40), vec![], vec![]);
        let (mut made, mut settled) = (vec![], vec![]);
        let mut file: Vec<String> = vec![];
        for deed in deeds {
            let records = decide(&live, deed);
            if records.first() == Some(&Record::Anew) {
                file.clear();
            } else {
                for record in &records {
                    match record {
                        Record::Accepted { assignment } => accepted.push(super::lease_of(assignment)),
                        Record::Reported { report } => {
                            made.push((report.lease.clone(), report.number));
                            ended.extend(ends(&report.fact).then(|| report.lease.clone()));
                        }
                        Record::Settled { lease, number } => settled.push((lease.clone(), *number)),
                        Record::Fenced { .. } | Record::Seen { .. } => {}
                        Record::Anew | Record::Numbered { .. } => panic!("only within anew"),
                    }
                }
            }
            for record in records {
                file.push(serde_json::to_string(&record).unwrap());
                live.apply(record);
            }
            let mut folded = Outbox::new(40);
            apply(&mut folded, file.iter().map(|line| serde_json::from_str(line).unwrap()));
            prop_assert_eq!(essence(&folded), essence(&live));
        }
        for list in [&accepted, &ended] {
            let once: std::collections::BTreeSet<_> = list.iter().collect();
            prop_assert_eq!(once.len(), list.len());
        }
        made.retain(|report| !settled.contains(report));
        prop_assert_eq!(made, owed(&live));
    }
}

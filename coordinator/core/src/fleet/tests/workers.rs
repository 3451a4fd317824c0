//! How workers come and go, and how leases end.

use ganger_shared::event::FleetEvent;

use super::*;

fn beat_of(n: u32, live: &[Lease]) -> Input {
    Input::Beat { worker: worker("w1"), instance: instance(n), beat: Box::new(beat(live)) }
}

fn start(n: u32) -> WorkerFacts {
    WorkerFacts { instance: instance(n), ..facts("w1", 2) }
}

fn detached(session: u64, goodbye: bool) -> Input {
    Input::Detached { worker: worker("w1"), session, goodbye }
}

fn held(n: u32) -> Input {
    Input::LeaseHeld(Box::new(HeldLease {
        lease: lease(1, "a"),
        project: ProjectId::parse("p").unwrap(),
        worker: worker("w1"),
        instance: instance(n),
    }))
}

fn busy(live: &[Lease]) -> Fleet {
    let mut fleet = fleet(&[start(1)]);
    fleet.handle(at(0), held(1));
    fleet.handle(at(0), beat_of(1, live));
    fleet
}

/// R170, P007: a lease ends by the clock alone, once, and no earlier than its term.
#[test]
fn a_silent_workers_lease_ends_once_after_its_term() {
    let mut fleet = busy(&[lease(1, "a")]);
    assert_eq!(ended(&fleet.handle(at(999), Input::Tick)), []);
    assert_eq!(states(&fleet), ["suspect"]);
    let out = fleet.handle(at(1_000), Input::Tick);
    assert_eq!(ended(&out), [(lease(1, "a"), LossReason::LeaseExpired)]);
    let lost = FleetEvent::WorkerLost { worker: worker("w1"), instance: instance(1) };
    assert!(out.contains(&Output::Record(lost)), "{out:?}");
    assert_eq!(states(&fleet), ["lost"]);
    assert_eq!(fleet.handle(at(9_000), Input::Tick), []);
    assert_eq!(fleet.next_deadline(), None);
}

/// R083: work whose worker lives and does not name it is lost as well.
#[test]
fn a_lease_that_beats_do_not_name_ends_as_not_held() {
    let mut fleet = busy(&[]);
    let mut ends = vec![];
    for ms in (100..=1_500).step_by(100) {
        fleet.handle(at(ms), beat_of(1, &[]));
        ends.extend(ended(&fleet.handle(at(ms), Input::Tick)));
    }
    assert_eq!(ends, [(lease(1, "a"), LossReason::NotHeld)]);
    assert_eq!(states(&fleet), ["live"]);
}

/// P023: beats that are late, but not by a term, cost nothing.
#[test]
fn a_late_beat_makes_a_suspect_worker_live_and_keeps_its_lease() {
    let mut fleet = busy(&[lease(1, "a")]);
    for ms in [900, 1_800, 2_700] {
        assert_eq!(ended(&fleet.handle(at(ms), Input::Tick)), []);
        assert_eq!(states(&fleet), ["suspect"]);
        let out = fleet.handle(at(ms), beat_of(1, &[lease(1, "a")]));
        assert_eq!(out, [Output::StateChanged { worker: worker("w1") }]);
        assert_eq!(states(&fleet), ["live"]);
    }
}

/// P033: a worker that was frozen longer than its lease hears that it holds nothing.
#[test]
fn work_nobody_holds_is_named_and_keeps_its_slot_until_it_ends() {
    let mut fleet = busy(&[lease(1, "a")]);
    fleet.handle(at(3_000), Input::Tick);
    let out = fleet.handle(at(3_001), beat_of(1, &[lease(1, "a")]));
    let (worker, instance) = (worker("w1"), instance(1));
    assert!(out.contains(&Output::Unheld { worker, instance, lease: lease(1, "a") }), "{out:?}");
    assert_eq!(want(&mut fleet, 3_002, attempt(1, "b")).len(), 1);
    assert_eq!(want(&mut fleet, 3_002, attempt(1, "c")).len(), 0);
    assert_eq!(offers(&fleet.handle(at(3_003), beat_of(1, &[]))).len(), 1);
}

/// What a worker brought and no run kept still runs: its slot is not given away before it ends.
#[test]
fn what_a_worker_brought_and_nobody_holds_keeps_its_slot() {
    let mut fleet = fleet(&[]);
    let live = vec![lease(1, "a")];
    let attached = Attached { facts: start(1), session: 1, live, finished: vec![] };
    fleet.handle(at(0), Input::Attached(Box::new(attached)));
    fleet.handle(at(0), Input::Reconciled { worker: worker("w1"), instance: instance(1) });
    assert_eq!(want(&mut fleet, 1, attempt(2, "b")).len(), 1);
    assert_eq!(want(&mut fleet, 1, attempt(2, "c")).len(), 0);
    assert_eq!(offers(&fleet.handle(at(2), beat_of(1, &[]))).len(), 1);
}

#[test]
fn a_lease_asserted_after_a_restart_gets_a_full_term() {
    let mut fleet = Fleet::new(&limits(), 1);
    fleet.handle(at(500), held(1));
    fleet.handle(at(500), Input::Open);
    fleet.handle(at(900), held(1));
    assert_eq!(ended(&fleet.handle(at(1_499), Input::Tick)), []);
    let out = fleet.handle(at(1_500), Input::Tick);
    assert_eq!(ended(&out), [(lease(1, "a"), LossReason::LeaseExpired)]);
}

#[test]
fn a_second_live_instance_is_refused_and_a_silent_or_gone_one_replaced() {
    let mut fleet = busy(&[lease(1, "a")]);
    let refusal = Refusal::SecondInstance { worker: worker("w1"), live: instance(1) };
    let out = attach(&mut fleet, 100, &start(2), 7);
    assert_eq!(out, [Output::Refuse { session: 7, refusal }]);
    fleet.handle(at(301), Input::Tick);
    let out = attach(&mut fleet, 301, &start(2), 8);
    assert_eq!(
        out,
        [
            Output::Record(FleetEvent::InstanceAttached {
                worker: worker("w1"),
                instance: instance(2)
            }),
            Output::Superseded { worker: worker("w1"), session: 1 },
            Output::StateChanged { worker: worker("w1") },
            Output::Reconcile {
                worker: worker("w1"),
                instance: instance(2),
                runs: vec![Inventory { run: run(1), live: vec![], finished: vec![] }],
            },
        ]
    );
    fleet.handle(at(302), detached(1, false));
    assert_eq!(want(&mut fleet, 303, attempt(1, "b")).len(), 1, "an old stream's end was heard");
    fleet.handle(at(304), detached(8, false));
    assert!(!attach(&mut fleet, 305, &start(3), 9).is_empty());
    assert_eq!(states(&fleet), ["live"]);
}

#[test]
fn the_same_instance_may_dial_again_at_any_time() {
    let mut fleet = busy(&[lease(1, "a")]);
    let out = attach(&mut fleet, 50, &start(1), 2);
    assert_eq!(out[0], Output::Superseded { worker: worker("w1"), session: 1 });
    fleet.handle(at(900), beat_of(1, &[lease(1, "a")]));
    assert_eq!(ended(&fleet.handle(at(1_500), Input::Tick)), []);
}

#[test]
fn leases_outlive_their_stream_and_a_goodbye_is_left_when_the_last_is_gone() {
    let mut fleet = busy(&[lease(1, "a")]);
    fleet.handle(at(100), detached(1, true));
    assert_eq!(ended(&fleet.handle(at(999), Input::Tick)), []);
    assert_eq!(states(&fleet), ["suspect"]);
    let out = fleet.handle(at(1_000), Input::Tick);
    assert_eq!(ended(&out), [(lease(1, "a"), LossReason::WorkerLeft)]);
    assert_eq!(states(&fleet), ["left"]);

    let mut idle = super::fleet(&[start(1)]);
    idle.handle(at(10), detached(1, true));
    assert_eq!(states(&idle), ["left"]);
    assert_eq!(idle.next_deadline(), None);
}

#[test]
fn an_offer_taken_for_a_process_that_was_replaced_ends_at_once() {
    let mut fleet = fleet(&[start(1)]);
    let offered = want(&mut fleet, 0, attempt(1, "a"));
    fleet.handle(at(1), detached(1, false));
    attach(&mut fleet, 2, &start(2), 2);
    let taken = Input::OfferTaken { token: offered[0].token, lease: lease(1, "a") };
    let out = fleet.handle(at(3), taken);
    assert_eq!(ended(&out), [(lease(1, "a"), LossReason::InstanceReplaced)]);
}

#[test]
fn a_suspended_coordinator_ages_nobody() {
    let mut fleet = busy(&[lease(1, "a")]);
    fleet.handle(at(60_000), Input::Suspended { by_ms: 59_900 });
    assert_eq!(fleet.handle(at(60_000), Input::Tick), []);
    assert_eq!(states(&fleet), ["live"]);
    assert_eq!(ended(&fleet.handle(at(60_900), Input::Tick)).len(), 1);
}

/// P030: a worker's clock is shown and used for nothing.
#[test]
fn a_clock_ten_minutes_off_is_shown_and_changes_no_lease() {
    for skew_ms in [600_000, -600_000] {
        let mut fleet = busy(&[]);
        let mut beat = beat(&[lease(1, "a")]);
        beat.sent_at = Timestamp::from_unix_ms(at(500).at.unix_ms() + skew_ms);
        let (worker, instance) = (worker("w1"), instance(1));
        fleet.handle(at(500), Input::Beat { worker, instance, beat: Box::new(beat) });
        assert_eq!(fleet.workers()[0].skew_ms, skew_ms);
        assert_eq!(ended(&fleet.handle(at(1_499), Input::Tick)), []);
        assert_eq!(ended(&fleet.handle(at(1_500), Input::Tick)).len(), 1);
    }
}

#[test]
fn cordoned_and_draining_workers_are_offered_nothing() {
    let mut fleet = fleet(&[start(1)]);
    fleet.handle(at(0), Input::Cordon(worker("w1")));
    assert_eq!(states(&fleet), ["cordoned"]);
    assert_eq!(want(&mut fleet, 0, attempt(1, "a")), []);
    fleet.handle(at(0), Input::Drain(worker("w1")));
    assert_eq!(states(&fleet), ["draining"]);
    let mut beat = beat(&[]);
    beat.draining = true;
    fleet.handle(
        at(1),
        Input::Beat { worker: worker("w1"), instance: instance(1), beat: Box::new(beat) },
    );
    assert_eq!(offers(&fleet.handle(at(1), Input::Uncordon(worker("w1")))), []);
    assert_eq!(states(&fleet), ["draining"]);
    assert_eq!(offers(&fleet.handle(at(2), beat_of(1, &[]))).len(), 1);
}

#[test]
fn facts_are_recorded_when_they_are_new_or_changed() {
    let mut fleet = fleet(&[]);
    let enrolled = |facts: &WorkerFacts| {
        Output::Record(FleetEvent::WorkerEnrolled { facts: Box::new(facts.clone()) })
    };
    assert_eq!(attach(&mut fleet, 0, &start(1), 1)[0], enrolled(&start(1)));
    fleet.handle(at(0), detached(1, false));
    let changed = WorkerFacts { slots: 5, ..start(1) };
    assert_eq!(attach(&mut fleet, 1, &changed, 2)[0], enrolled(&changed));
    assert_eq!(want(&mut fleet, 1, attempt(1, "a")).len(), 1);
    assert_eq!(fleet.workers()[0].slots, 5);
}

#[test]
fn a_worker_is_remembered_from_the_journal() {
    let mut fleet = Fleet::new(&limits(), 1);
    let facts = Box::new(start(1));
    fleet.remember(at(0), &FleetEvent::WorkerEnrolled { facts });
    fleet.remember(
        at(0),
        &FleetEvent::InstanceAttached { worker: worker("w1"), instance: instance(2) },
    );
    fleet.handle(at(0), Input::Open);
    assert_eq!(states(&fleet), ["live"]);
    let out = fleet.handle(at(1_000), Input::Tick);
    let lost = FleetEvent::WorkerLost { worker: worker("w1"), instance: instance(2) };
    assert_eq!(out[0], Output::Record(lost.clone()));
    let mut again = Fleet::new(&limits(), 1);
    again.remember(at(0), &FleetEvent::WorkerEnrolled { facts: Box::new(start(2)) });
    again.remember(at(0), &lost);
    assert_eq!(states(&again), ["lost"]);
}

//! Who gets which slot, and why somebody gets none.

use ganger_shared::delivery::Place;

use super::*;

fn units(offers: &[Offer]) -> Vec<String> {
    let unit = |offer: &Offer| match &offer.want {
        WantKind::Attempt { unit, .. } => unit.to_string(),
        WantKind::Check { check, .. } => format!("check of {}", check.unit),
    };
    offers.iter().map(unit).collect()
}

fn reasons(fleet: &Fleet, of: u8, name: &str) -> Vec<String> {
    fleet.explain(&run(of), &unit(name)).map(|waiting| waiting.reasons).unwrap_or_default()
}

/// Takes the offer under the unit's first lease.
fn take(fleet: &mut Fleet, ms: u64, offer: &Offer, lease: &Lease) -> Vec<Output> {
    fleet.handle(at(ms), Input::OfferTaken { token: offer.token, lease: lease.clone() })
}

/// R055: no worker is given more than it has slots for.
#[test]
fn slots_are_offered_up_to_their_number_and_the_rest_waits() {
    let mut fleet = fleet(&[facts("w1", 2)]);
    let offered: Vec<_> =
        ["a", "b", "c"].iter().flat_map(|name| want(&mut fleet, 0, attempt(1, name))).collect();
    assert_eq!(units(&offered), ["a", "b"]);
    assert_eq!(reasons(&fleet, 1, "c"), ["all capable slots are busy"]);
    take(&mut fleet, 1, &offered[0], &lease(1, "a"));
    let out = fleet.handle(at(2), Input::LeaseGone(lease(1, "a")));
    assert_eq!(units(&offers(&out)), ["c"]);
}

#[test]
fn checks_go_first_then_priority_then_shares_then_who_waits_longest() {
    let mut fleet = Fleet::new(&limits(), 1);
    let mut wants = vec![];
    let mut add = |mut wanted: Wanted, project: &str, priority: (i32, i32), since: u64| {
        wanted.project = ProjectId::parse(project).unwrap();
        wanted.run_priority = priority.0;
        wanted.want.priority = priority.1;
        wanted.want.since = at(since).at;
        wants.push(wanted);
    };
    add(attempt(1, "first"), "p", (0, 0), 0);
    add(attempt(1, "second"), "p", (0, 0), 1);
    add(attempt(1, "urgent-unit"), "p", (0, 5), 9);
    add(attempt(2, "other-run"), "p", (0, 0), 5);
    add(attempt(3, "other-project"), "q", (0, 0), 7);
    add(attempt(4, "urgent-run"), "r", (1, -9), 9);
    add(check(4, "measured", "nobody", None), "r", (-9, 0), 9);
    for wanted in wants {
        fleet.handle(at(10), Input::Want(Box::new(wanted)));
    }
    attach(&mut fleet, 10, &facts("w1", 6), 1);
    let out = fleet.handle(at(10), Input::Open);
    assert_eq!(
        units(&offers(&out)),
        [
            "check of measured",
            "urgent-run",
            "urgent-unit",
            "other-project",
            "other-run",
            "first",
            "second"
        ]
    );
}

#[test]
fn nothing_is_offered_before_all_runs_are_folded_and_the_worker_is_reconciled() {
    let mut fleet = Fleet::new(&limits(), 1);
    assert_eq!(attach(&mut fleet, 0, &facts("w1", 1), 1).len(), 3);
    assert_eq!(want(&mut fleet, 0, attempt(1, "a")), []);
    let out = fleet.handle(at(0), Input::Open);
    assert_eq!(units(&offers(&out)), ["a"]);
    let attached = Attached { facts: facts("w2", 1), session: 2, live: vec![], finished: vec![] };
    fleet.handle(at(0), Input::Attached(Box::new(attached)));
    assert_eq!(want(&mut fleet, 0, attempt(1, "b")), []);
    let (worker, instance) = (worker("w2"), instance(1));
    let out = fleet.handle(at(0), Input::Reconciled { worker, instance });
    assert_eq!(units(&offers(&out)), ["b"]);
}

#[test]
fn a_check_sits_beside_the_slots_and_a_second_one_on_a_free_slot() {
    let mut fleet = fleet(&[facts("w1", 1)]);
    assert_eq!(units(&want(&mut fleet, 0, attempt(1, "a"))), ["a"]);
    assert_eq!(units(&want(&mut fleet, 0, check(1, "b", "gone", None))), ["check of b"]);
    assert_eq!(want(&mut fleet, 0, check(1, "c", "gone", None)), []);
    let out = fleet.handle(at(1), Input::OfferDeclined { token: 1 });
    assert_eq!(units(&offers(&out)), ["check of c"]);
}

#[test]
fn a_check_is_measured_on_another_worker_where_there_is_one() {
    let places = |fleet: &mut Fleet, place: Option<Where>| {
        let offered = want(fleet, 0, check(1, "u", "w1", place));
        offered.into_iter().map(|offer| (offer.worker, offer.place)).collect::<Vec<_>>()
    };
    let own = [(worker("w1"), Some(Place::OtherTree))];
    let other = [(worker("w2"), Some(Place::OtherWorker))];
    let alone = || fleet(&[facts("w1", 1)]);
    let two = || fleet(&[facts("w1", 1), facts("w2", 1)]);
    assert_eq!(places(&mut alone(), None), own);
    assert_eq!(places(&mut alone(), Some(Where::OtherTree)), own);
    assert_eq!(places(&mut alone(), Some(Where::OtherWorker)), []);
    assert_eq!(places(&mut two(), None), other);
    assert_eq!(places(&mut two(), Some(Where::OtherTree)), own);
    assert_eq!(places(&mut two(), Some(Where::OtherWorker)), other);
    let mut waiting = alone();
    places(&mut waiting, Some(Where::OtherWorker));
    assert_eq!(reasons(&waiting, 1, "u"), ["only its author's worker `w1` could measure it"]);
}

#[test]
fn a_check_waits_for_a_busy_other_worker() {
    let mut fleet = fleet(&[facts("w1", 1), facts("w2", 0)]);
    assert_eq!(units(&want(&mut fleet, 0, check(1, "a", "w1", None))), ["check of a"]);
    assert_eq!(want(&mut fleet, 0, check(1, "b", "w1", None)), []);
    let out = fleet.handle(at(1), Input::Cordon(worker("w2")));
    assert_eq!(offers(&out)[0].place, Some(Place::OtherTree));
}

/// R046: overlapping files of one repository are never given to two units at a time.
#[test]
fn overlapping_files_wait_for_each_other_over_runs() {
    let mut fleet = fleet(&[facts("w1", 9)]);
    let offered = want(&mut fleet, 0, writing(1, "a", &["src/**"]));
    assert_eq!(want(&mut fleet, 0, writing(2, "b", &["**/*.rs"])), []);
    assert_eq!(units(&want(&mut fleet, 0, writing(2, "c", &["docs/*.md"]))), ["c"]);
    let owner = format!("files claimed by {}/a", run(1));
    assert_eq!(reasons(&fleet, 2, "b"), std::slice::from_ref(&owner));
    take(&mut fleet, 1, &offered[0], &lease(1, "a"));
    let claim = HeldClaim {
        run: run(1),
        unit: unit("a"),
        repository: RepositoryId::parse("repo").unwrap(),
        files: vec!["src/**".to_owned()],
    };
    fleet.handle(at(1), Input::ClaimHeld(Box::new(claim)));
    assert_eq!(offers(&fleet.handle(at(2), Input::LeaseGone(lease(1, "a")))), []);
    assert_eq!(reasons(&fleet, 2, "b"), [owner]);
    let out = fleet.handle(at(3), Input::ClaimReleased { run: run(1), unit: unit("a") });
    assert_eq!(units(&offers(&out)), ["b"]);
}

/// Invariant 6: what races on one unit may share its files.
#[test]
fn lanes_of_one_unit_share_their_files() {
    let mut fleet = fleet(&[facts("w1", 2)]);
    let lane = |name: &str| {
        let lane = LaneId::parse(name).unwrap();
        let mut wanted = writing(1, "a", &["src/**"]);
        wanted.id = EffectId::WantSlot(unit("a"), lane.clone());
        wanted.want.kind = WantKind::Attempt { unit: unit("a"), lane };
        wanted
    };
    assert_eq!(want(&mut fleet, 0, lane("x")).len(), 1);
    assert_eq!(want(&mut fleet, 0, lane("y")).len(), 1);
}

/// P035: an offer that nobody takes uses up nothing, and the want stays.
#[test]
fn a_lapsed_offer_frees_slot_and_files_and_is_made_again() {
    let mut fleet = fleet(&[facts("w1", 1)]);
    let first = want(&mut fleet, 0, writing(1, "a", &["**"]));
    assert_eq!(want(&mut fleet, 0, writing(2, "b", &["**"])), []);
    fleet.handle(at(90), beat_of("w1", &[]));
    assert_eq!(offers(&fleet.handle(at(199), Input::Tick)), []);
    let next = offers(&fleet.handle(at(200), Input::Tick));
    assert_eq!(units(&next), ["b"]);
    assert_eq!(reasons(&fleet, 1, "a"), ["its run did not take the slot it was offered"]);
    fleet.handle(at(210), Input::Unwant { run: run(2), id: next_id("b") });
    fleet.handle(at(220), Input::OfferDeclined { token: next[0].token });
    fleet.handle(at(380), beat_of("w1", &[]));
    let again = offers(&fleet.handle(at(400), Input::Tick));
    assert_eq!(units(&again), ["a"]);
    assert!(again[0].token > first[0].token);
}

#[test]
fn an_offer_taken_too_late_stands_only_where_nothing_took_its_place() {
    for others in [true, false] {
        let mut fleet = fleet(&[facts("w1", 1)]);
        let offered = want(&mut fleet, 0, attempt(1, "a"));
        if others {
            want(&mut fleet, 0, attempt(2, "b"));
        }
        fleet.handle(at(200), Input::Tick);
        let out = take(&mut fleet, 201, &offered[0], &lease(1, "a"));
        let lost = vec![(lease(1, "a"), LossReason::NotHeld)];
        assert_eq!(ended(&out), if others { lost } else { vec![] });
        assert_eq!(fleet.explain(&run(1), &unit("a")), None);
    }
}

#[test]
fn a_want_waits_for_its_time() {
    let mut fleet = fleet(&[facts("w1", 1)]);
    let mut wanted = attempt(1, "a");
    wanted.want.not_before = at(150).at;
    assert_eq!(want(&mut fleet, 0, wanted), []);
    assert_eq!(fleet.next_deadline(), Some(150));
    let until = format!("waiting for retry until {}", at(150).at);
    assert_eq!(reasons(&fleet, 1, "a"), [until]);
    assert_eq!(units(&offers(&fleet.handle(at(150), Input::Tick))), ["a"]);
}

#[test]
fn what_no_worker_has_is_named() {
    let mut linux = facts("w1", 0);
    linux.labels = labels(&[("os", "linux")]);
    let mut gpu = facts("w2", 0);
    gpu.labels = labels(&[("gpu", "yes")]);
    gpu.agents = vec![agent("codex")];
    let mut fleet = fleet(&[linux, gpu]);
    let mut ask = |name: &str, of: &[(&str, &str)], agent: Option<&str>| {
        let mut wanted = attempt(1, name);
        wanted.want.labels = labels(of);
        wanted.want.agent = agent.map(str::to_owned);
        want(&mut fleet, 0, wanted);
        reasons(&fleet, 1, name)[0].clone()
    };
    assert_eq!(ask("a", &[("os", "mac")], None), "no worker offers label os=mac");
    assert_eq!(ask("b", &[], Some("claude")), "no worker has agent `claude`");
    let both = &[("os", "linux"), ("gpu", "yes")];
    assert_eq!(ask("c", both, None), "no one worker offers everything it requires");
    assert_eq!(ask("d", &[("gpu", "yes")], Some("codex")), "all capable slots are busy");
    let waiting = fleet.explain(&run(1), &unit("d")).unwrap();
    assert_eq!(waiting.position, Some(4));
    assert_eq!(waiting.reasons[1], "wants ahead of it: 3");
}

/// A run that died with offers in its mailbox gets its slots again when it is folded.
#[test]
fn a_run_that_is_folded_anew_voids_its_offers_and_keeps_its_leases() {
    let mut fleet = fleet(&[facts("w1", 2)]);
    let a = want(&mut fleet, 0, attempt(1, "a"));
    want(&mut fleet, 0, attempt(1, "b"));
    take(&mut fleet, 0, &a[0], &lease(1, "a"));
    let held = HeldLease {
        lease: lease(1, "a"),
        project: ProjectId::parse("p").unwrap(),
        worker: worker("w1"),
        instance: instance(1),
    };
    let wants = vec![attempt(1, "b")];
    let folded = Folded { run: run(1), wants, claims: vec![], leases: vec![held] };
    let out = fleet.handle(at(10), Input::Folded(Box::new(folded)));
    assert_eq!(units(&offers(&out)), ["b"]);
    assert_eq!(fleet.workers()[0].busy, 2);
    let gone = Folded { run: run(1), wants: vec![], claims: vec![], leases: vec![] };
    fleet.handle(at(10), Input::Folded(Box::new(gone)));
    assert_eq!(fleet.workers()[0].busy, 0);
}

fn beat_of(name: &str, live: &[Lease]) -> Input {
    Input::Beat { worker: worker(name), instance: instance(1), beat: Box::new(beat(live)) }
}

fn next_id(name: &str) -> EffectId {
    EffectId::WantSlot(unit(name), LaneId::main())
}

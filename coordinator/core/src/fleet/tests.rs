//! What must hold of the fleet: single cases in `workers` and `places`, random ones in `history`.
#![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]

mod history;
mod places;
mod workers;
mod world;

use std::collections::BTreeMap;

use ganger_shared::event::LossReason;
use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::{
    AttemptId, CheckId, CheckName, Epoch, InstanceId, LaneId, ProjectId, RepositoryId, RunId,
    Subject, UnitId, WorkId, WorkerId,
};
use ganger_shared::limits::Limits;
use ganger_shared::link::{Beat, Lease, Progress};
use ganger_shared::plan::Where;
use ganger_shared::time::{DurationMs, Timestamp};

use super::*;
use crate::run::{EffectId, Offer, SlotWant, WantKind};

fn limits() -> Limits {
    Limits {
        beat_ms: DurationMs(100),
        lease_ms: DurationMs(1_000),
        offer_ms: DurationMs(200),
        ..Limits::default()
    }
}

fn at(ms: u64) -> Now {
    Now { ms, at: Timestamp::from_unix_ms(1_700_000_000_000).plus(DurationMs(ms)) }
}

fn run(n: u8) -> RunId {
    RunId::from_uuid_bytes(&[n; 16])
}

fn unit(name: &str) -> UnitId {
    UnitId::parse(name).unwrap()
}

fn worker(name: &str) -> WorkerId {
    WorkerId::parse(name).unwrap()
}

fn instance(n: u32) -> InstanceId {
    InstanceId::parse(&format!("i{n}")).unwrap()
}

fn facts(name: &str, slots: u32) -> WorkerFacts {
    WorkerFacts {
        worker: worker(name),
        instance: instance(1),
        name: name.to_owned(),
        labels: BTreeMap::new(),
        slots,
        agents: vec![],
        build: "test".to_owned(),
    }
}

fn agent(name: &str) -> AgentFacts {
    AgentFacts { name: name.to_owned(), adapter: name.to_owned(), version: None }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A wish for an attempt, of project `p`.
fn attempt(of: u8, name: &str) -> Wanted {
    let lane = LaneId::main();
    Wanted {
        run: run(of),
        project: ProjectId::parse("p").unwrap(),
        run_priority: 0,
        id: EffectId::WantSlot(unit(name), lane.clone()),
        want: SlotWant {
            kind: WantKind::Attempt { unit: unit(name), lane },
            labels: BTreeMap::new(),
            agent: None,
            claim: None,
            priority: 0,
            since: at(0).at,
            not_before: at(0).at,
        },
    }
}

fn writing(of: u8, name: &str, files: &[&str]) -> Wanted {
    let mut wanted = attempt(of, name);
    let files = files.iter().map(|glob| (*glob).to_owned()).collect();
    wanted.want.claim = Some((RepositoryId::parse("repo").unwrap(), files));
    wanted
}

fn check_id(name: &str) -> CheckId {
    let subject = Subject::Attempt(AttemptId { unit: unit(name), lane: LaneId::main(), n: 1 });
    CheckId { unit: unit(name), check: CheckName::parse("tests").unwrap(), subject, n: 1 }
}

/// A wish for a check of what `author` made.
fn check(of: u8, name: &str, author: &str, place: Option<Where>) -> Wanted {
    let mut wanted = attempt(of, name);
    wanted.id = EffectId::WantCheck(check_id(name));
    wanted.want.kind = WantKind::Check { check: check_id(name), author: worker(author), place };
    wanted
}

fn lease(of: u8, name: &str) -> Lease {
    let attempt = AttemptId { unit: unit(name), lane: LaneId::main(), n: 1 };
    Lease { run: run(of), work: WorkId::Attempt(attempt), epoch: Epoch(1) }
}

fn beat(live: &[Lease]) -> Beat {
    let progress = |lease: &Lease| Progress {
        lease: lease.clone(),
        phase: "running".to_owned(),
        lines: 0,
        quiet_ms: DurationMs(0),
        last_line: String::new(),
    };
    Beat { live: live.iter().map(progress).collect(), busy: 0, sent_at: at(0).at, draining: false }
}

/// A fleet that is open, with these workers attached and reconciled at 0.
fn fleet(workers: &[WorkerFacts]) -> Fleet {
    let mut fleet = Fleet::new(&limits(), 1);
    fleet.handle(at(0), Input::Open);
    for (session, facts) in (1..).zip(workers) {
        attach(&mut fleet, 0, facts, session);
    }
    fleet
}

fn attach(fleet: &mut Fleet, ms: u64, facts: &WorkerFacts, session: u64) -> Vec<Output> {
    let attached = Attached { facts: facts.clone(), session, live: vec![], finished: vec![] };
    let mut out = fleet.handle(at(ms), Input::Attached(Box::new(attached)));
    let (worker, instance) = (facts.worker.clone(), facts.instance.clone());
    out.extend(fleet.handle(at(ms), Input::Reconciled { worker, instance }));
    out
}

fn want(fleet: &mut Fleet, ms: u64, wanted: Wanted) -> Vec<Offer> {
    offers(&fleet.handle(at(ms), Input::Want(Box::new(wanted))))
}

fn offers(outputs: &[Output]) -> Vec<Offer> {
    let offer = |output: &Output| match output {
        Output::Offer { offer, .. } => Some(offer.clone()),
        Output::LeaseEnded { .. }
        | Output::Unheld { .. }
        | Output::Reconcile { .. }
        | Output::Record(_)
        | Output::Refuse { .. }
        | Output::Superseded { .. }
        | Output::StateChanged { .. } => None,
    };
    outputs.iter().filter_map(offer).collect()
}

fn ended(outputs: &[Output]) -> Vec<(Lease, LossReason)> {
    let end = |output: &Output| match output {
        Output::LeaseEnded { lease, reason } => Some((lease.clone(), *reason)),
        Output::Offer { .. }
        | Output::Unheld { .. }
        | Output::Reconcile { .. }
        | Output::Record(_)
        | Output::Refuse { .. }
        | Output::Superseded { .. }
        | Output::StateChanged { .. } => None,
    };
    outputs.iter().filter_map(end).collect()
}

fn states(fleet: &Fleet) -> Vec<String> {
    fleet.workers().into_iter().map(|view| view.state).collect()
}

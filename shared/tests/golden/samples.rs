//! One event of every kind.

use std::collections::BTreeMap;

use ganger_shared::actor::{Actor, Role};
use ganger_shared::delivery::{
    Change, ChangeKind, Changes, CheckResult, CommandEvidence, Delivery, Outcome, Place,
    TreeDelivery,
};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::{
    AttemptLease, CheckLease, CommandRecord, Conflict, Envelope, FleetEvent, HoldReason,
    LossReason, Repository, RetryCause, RunEvent, Submitted, SystemEvent,
};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::{
    AttemptId, CheckId, CommitId, Epoch, IdempotencyKey, InstanceId, RunId, TreeId, UnitId,
    WorkerId,
};
use ganger_shared::ledger::Dimension;
use ganger_shared::link::{Ended, Failed, Started, StopReason, Stopped};
use ganger_shared::plan;
use ganger_shared::time::{DurationMs, Timestamp};
use ganger_shared::verdict::{JudgeKind, Judgement, Verdict};

const AT: i64 = 1_796_000_000_123;

fn at() -> Timestamp {
    Timestamp::from_unix_ms(AT)
}

fn id<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("a sample's id is valid")
}

fn run_id() -> RunId {
    RunId::from_uuid_bytes(&[7; 16])
}

fn commit(digit: char) -> CommitId {
    id(&digit.to_string().repeat(40))
}

fn tree(digit: char) -> TreeId {
    id(&digit.to_string().repeat(40))
}

fn artifact(text: &str) -> ArtifactRef {
    ArtifactRef::of(text.as_bytes())
}

fn attempt() -> AttemptId {
    id("implement/main/1")
}

fn check() -> CheckId {
    id("implement:tests/1@attempt:implement/main/1")
}

fn unit() -> UnitId {
    id("implement")
}

fn evidence() -> CommandEvidence {
    CommandEvidence {
        cmd: "cargo test".into(),
        pass: true,
        exit_code: Some(0),
        log_tail: "ok".into(),
        log: Some(artifact("log")),
        duration_ms: DurationMs(1_500),
    }
}

fn delivery() -> Delivery {
    let change = Change { path: "src/lib.rs".into(), kind: ChangeKind::Modified };
    Delivery {
        tree: Some(TreeDelivery {
            base: commit('a'),
            tree: tree('b'),
            commit: commit('c'),
            bundle: Some(artifact("bundle")),
            patch: Some(artifact("patch")),
            changes: Changes::list([change]),
        }),
        commands: vec![evidence()],
        isolated: true,
        ..Delivery::new("done")
    }
}

fn ended<T>(end: T) -> Ended<T> {
    let output = Some(artifact("output"));
    Ended { end, active_ms: DurationMs(2_000), output, output_truncated: false }
}

fn submitted() -> Submitted {
    Submitted {
        run: run_id(),
        project: id("default"),
        name: "add-flag".into(),
        labels: BTreeMap::from([("team".into(), "tools".into())]),
        goal: "Add a flag.".into(),
        contract: plan::Contract::default(),
        contract_hash: Digest::of(b"contract"),
        plan: artifact("plan"),
        attachments: BTreeMap::from([("script.yaml".into(), artifact("script"))]),
        repository: Some(Repository {
            id: id("repo-1"),
            shown: "/home/anna/wc".into(),
            base: commit('a'),
            base_name: "main".into(),
        }),
        mode: plan::Mode::Autonomous,
        dispatch: plan::Dispatch::Auto,
        priority: 0,
        budgets: plan::Budgets::default(),
        delivery: plan::DeliveryMode::Branch,
        grace_ms: DurationMs(10_000),
        prepare_ms: DurationMs(600_000),
    }
}

fn planned() -> (plan::Task, plan::Unit) {
    let task = serde_json::json!({ "id": "wave-1", "title": "Implement" });
    let unit = serde_json::json!({
        "id": "implement", "task": "wave-1", "kind": "command", "run": "make", "files": ["src/**"],
        "checks": [{ "name": "tests", "run": "cargo test" }],
    });
    (
        serde_json::from_value(task).expect("a sample task reads"),
        serde_json::from_value(unit).expect("a sample unit reads"),
    )
}

fn verdict() -> Verdict {
    Verdict {
        kind: JudgeKind::Policy,
        actor: Actor::Policy(Digest::of(b"contract")),
        attempt: attempt(),
        input_digest: Digest::of(b"shown"),
        verdict: Judgement::Accept,
        reason: "every required check passed (1 of 1)".into(),
        evidence_refs: vec![check()],
        confidence: 100,
        model: None,
        provider: None,
        policy_version: 1,
        timestamp: at(),
        trace_id: "0".repeat(32),
    }
}

fn leases() -> (AttemptLease, CheckLease) {
    let (worker, instance): (WorkerId, InstanceId) = (id("w-1"), id("i-1"));
    let attempt_lease = AttemptLease {
        attempt: attempt(),
        epoch: Epoch(1),
        worker: worker.clone(),
        instance: instance.clone(),
        base: Some(commit('a')),
        allotted_ms: DurationMs(1_800_000),
    };
    let check_lease = CheckLease {
        check: check(),
        epoch: Epoch(1),
        worker,
        instance,
        commit: commit('c'),
        tree: tree('b'),
        place: Place::OtherWorker,
    };
    (attempt_lease, check_lease)
}

fn failed() -> Failed {
    Failed {
        failure: Failure::new(FailureClass::CommandFailed, "exit code 1"),
        left: None,
        usage: ganger_shared::delivery::Usage::default(),
    }
}

/// Every kind, in the order of the enum.
pub fn run() -> Vec<Envelope<RunEvent>> {
    let mut events = before_the_end();
    events.extend(of_attempts());
    events.extend(of_checks_and_branches());
    events.extend(of_the_run());
    envelopes(events)
}

fn envelopes<E>(events: Vec<E>) -> Vec<Envelope<E>> {
    let by = Actor::Principal("anna".into());
    events.into_iter().map(|event| Envelope { at: at(), by: by.clone(), event }).collect()
}

fn before_the_end() -> Vec<RunEvent> {
    let (task, planned) = planned();
    let (lease, _) = leases();
    let key: IdempotencyKey = id("key-1");
    vec![
        RunEvent::RunSubmitted(Box::new(submitted())),
        RunEvent::TaskPlanned { revision: 1, task },
        RunEvent::UnitPlanned { revision: 1, unit: Box::new(planned) },
        RunEvent::RevisionAccepted { revision: 1, units: 1 },
        RunEvent::CommandRecorded(CommandRecord { key, body: Digest::of(b"body") }),
        RunEvent::AttemptLeased(lease),
    ]
}

fn of_attempts() -> Vec<RunEvent> {
    let (attempt, epoch) = (attempt(), Epoch(1));
    let started = Started { pid: 42, isolated: true, containment: "pid_namespace".into() };
    let stopped = Stopped { confirmed: true, usage: ganger_shared::delivery::Usage::default() };
    let id = || attempt.clone();
    vec![
        RunEvent::AttemptAccepted { attempt: id(), epoch },
        RunEvent::AttemptStarted { attempt: id(), epoch, started },
        RunEvent::AttemptStopping {
            attempt: id(),
            epoch,
            reason: StopReason::Cancelled,
            until: at(),
        },
        RunEvent::AttemptDelivered { attempt: id(), epoch, ended: Box::new(ended(delivery())) },
        RunEvent::DeliveryTaken { attempt: id() },
        RunEvent::AttemptFailed { attempt: id(), epoch, ended: Box::new(ended(failed())) },
        RunEvent::AttemptCancelled { attempt: id(), epoch, ended: Some(ended(stopped)) },
        RunEvent::AttemptLost { attempt: id(), epoch, reason: LossReason::LeaseExpired },
        RunEvent::LateResult {
            attempt: id(),
            epoch,
            active_ms: DurationMs(2_000),
            delivery: Some(Box::new(delivery())),
            adopted: true,
        },
        RunEvent::RetryScheduled { unit: unit(), not_before: at(), cause: RetryCause::Lost },
        RunEvent::UnitFailed {
            unit: unit(),
            failure: Failure::new(FailureClass::Timeout, "took longer than 30m"),
        },
    ]
}

fn of_checks_and_branches() -> Vec<RunEvent> {
    let (_, lease) = leases();
    let result = CheckResult {
        outcome: Outcome::Pass,
        not_measured: None,
        evidence: Some(evidence()),
        tree: tree('b'),
        message: None,
    };
    let conflict = Conflict::Files { files: vec!["src/lib.rs".into()] };
    vec![
        RunEvent::CheckLeased(lease),
        RunEvent::CheckMeasured { check: check(), epoch: Epoch(1), result: Box::new(result) },
        RunEvent::CheckLost { check: check(), epoch: Epoch(1), reason: LossReason::NotHeld },
        RunEvent::VerdictGiven(Box::new(verdict())),
        RunEvent::MergePrepared {
            attempt: attempt(),
            parent: commit('d'),
            tree: tree('e'),
            commit: commit('f'),
        },
        RunEvent::IntegrationConflicted { attempt: attempt(), conflict },
        RunEvent::ApplyIntended {
            attempt: attempt(),
            parent: commit('a'),
            tree: tree('b'),
            time_unix: AT / 1_000,
        },
        RunEvent::Applied { attempt: attempt(), commit: commit('c') },
    ]
}

fn of_the_run() -> Vec<RunEvent> {
    let reason = || "no longer needed".to_owned();
    vec![
        RunEvent::UnitCancelled { unit: unit(), confirmed: true, reason: reason() },
        RunEvent::UnitStopping { unit: unit(), reason: reason() },
        RunEvent::RunPaused { reason: reason() },
        RunEvent::RunResumed,
        RunEvent::RunHeld { reason: HoldReason::UnitFailed },
        RunEvent::RunReleased,
        RunEvent::RunBudgetLimited { dimension: Dimension::Attempts },
        RunEvent::RunStopping { reason: reason(), now: false },
        RunEvent::RunAborted,
        RunEvent::RunCompleted { tip: Some(commit('c')) },
    ]
}

fn facts() -> WorkerFacts {
    WorkerFacts {
        worker: id("w-1"),
        instance: id("i-1"),
        name: "one".into(),
        labels: BTreeMap::from([("os".into(), "linux".into())]),
        slots: 4,
        agents: vec![AgentFacts {
            name: "scripted".into(),
            adapter: "scripted".into(),
            version: Some("0.1.0".into()),
        }],
        build: "0.1.0".into(),
    }
}

/// Every kind of fact about the fleet.
pub fn fleet() -> Vec<Envelope<FleetEvent>> {
    let (worker, instance): (WorkerId, InstanceId) = (id("w-1"), id("i-1"));
    envelopes(vec![
        FleetEvent::WorkerEnrolled { facts: Box::new(facts()) },
        FleetEvent::InstanceAttached { worker: worker.clone(), instance: instance.clone() },
        FleetEvent::WorkerLost { worker, instance },
    ])
}

/// Every kind of fact about the coordinator itself.
pub fn system() -> Vec<Envelope<SystemEvent>> {
    let hash = Digest::of(b"token");
    let record = CommandRecord { key: id("key-1"), body: Digest::of(b"body") };
    envelopes(vec![
        SystemEvent::CoordinatorStarted { build: "0.1.0".into(), repairs: vec!["cut".into()] },
        SystemEvent::TokenIssued {
            name: "anna".into(),
            role: Role::Operate,
            hash,
            expires: Some(at()),
        },
        SystemEvent::TokenRevoked { hash },
        SystemEvent::SubmitRecorded { record, run: run_id() },
        SystemEvent::RunQuarantined { run: run_id(), reason: "event 3 does not apply".into() },
        SystemEvent::RunUnquarantined { run: run_id() },
        SystemEvent::ArtifactPurged { sha256: Digest::of(b"artifact"), reason: "secret".into() },
    ])
}

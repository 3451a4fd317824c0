//! Random views, problems and verdicts.

use std::collections::BTreeMap;

use ganger_proto::convert::{Snapshot, SubmittedSource, Watched};
use ganger_shared::event::{Conflict, Repository};
use ganger_shared::ids::Epoch;
use ganger_shared::ledger::{Account, Dimension};
use ganger_shared::problem::{Code, Problem, Severity};
use ganger_shared::verdict::{JudgeKind, Judgement, Verdict};
use ganger_shared::view::{
    AttemptView, CheckView, Explanation, RunRow, RunView, UnitView, WorkerView,
};

use crate::samples::{self, Gen};

pub fn row(g: &mut Gen) -> RunRow {
    RunRow {
        id: g.run(),
        name: g.text(),
        project: g.name(),
        labels: g.named(Gen::text),
        state: g.word(),
        reason: g.maybe(Gen::text),
        counts: g.named(Gen::small),
        submitted_at: g.time(),
        ended_at: g.maybe(Gen::time),
        sequence: g.number(),
        trace_id: g.text(),
    }
}

pub fn run(g: &mut Gen) -> RunView {
    RunView {
        row: row(g),
        goal: g.text(),
        contract_hash: g.digest(),
        plan: g.artifact(),
        revision: g.small(),
        repository: g.maybe(Gen::text),
        repository_id: g.maybe(Gen::text),
        base: g.maybe(Gen::object),
        branch: g.maybe(Gen::text),
        tip: g.maybe(Gen::object),
        delivery: g.text(),
        ledger: ledger(g),
        units: g.many(unit),
        final_checks: g.many(check),
    }
}

fn ledger(g: &mut Gen) -> BTreeMap<Dimension, Account> {
    let mut ledger = BTreeMap::new();
    for dimension in Dimension::ALL {
        let account =
            Account { limit: g.maybe(Gen::number), reserved: g.number(), settled: g.number() };
        g.maybe(|_| ledger.insert(dimension, account));
    }
    ledger
}

pub fn unit(g: &mut Gen) -> UnitView {
    UnitView {
        id: g.name(),
        task: g.maybe(Gen::name),
        kind: g.word(),
        after: g.many(Gen::name),
        state: g.word(),
        reason: g.maybe(Gen::text),
        integration: g.maybe(Gen::text),
        conflict: g.maybe(conflict),
        commit: g.maybe(Gen::object),
        gate: g.maybe(Gen::text),
        waiting_for: g.maybe(Gen::text),
        sequence: g.number(),
        losses: g.small(),
        attempts: g.many(attempt),
    }
}

fn conflict(g: &mut Gen) -> Conflict {
    match g.below(3) {
        0 => Conflict::Files { files: g.many(Gen::text) },
        1 => Conflict::Checks { failed: g.many(Gen::check) },
        _ => Conflict::ForeignTip { found: g.maybe(Gen::object) },
    }
}

pub fn attempt(g: &mut Gen) -> AttemptView {
    AttemptView {
        id: g.attempt(),
        epoch: Epoch(g.number()),
        state: g.word(),
        worker: g.name(),
        base: g.maybe(Gen::object),
        leased_at: g.time(),
        started_at: g.maybe(Gen::time),
        ended_at: g.maybe(Gen::time),
        active_ms: g.maybe(Gen::length),
        delivery: g.maybe(samples::delivery),
        failure: g.maybe(samples::failure),
        output: g.maybe(Gen::artifact),
        checks: g.many(check),
        verdicts: g.many(verdict),
        progress: g.maybe(samples::progress),
    }
}

pub fn check(g: &mut Gen) -> CheckView {
    CheckView {
        id: g.check(),
        required: g.yes(),
        state: g.word(),
        worker: g.maybe(Gen::name),
        place: g.maybe(samples::place),
        tree: g.object(),
        result: g.maybe(samples::check_result),
    }
}

pub fn verdict(g: &mut Gen) -> Verdict {
    Verdict {
        kind: g.pick(&[JudgeKind::Person, JudgeKind::Agent, JudgeKind::Policy]),
        actor: g.actor(),
        attempt: g.attempt(),
        input_digest: g.digest(),
        verdict: g.pick(&[Judgement::Accept, Judgement::Reject, Judgement::Blocked]),
        reason: g.text(),
        evidence_refs: g.many(Gen::check),
        confidence: u8::try_from(g.below(101)).unwrap(),
        model: g.maybe(Gen::text),
        provider: g.maybe(Gen::text),
        policy_version: g.small(),
        timestamp: g.time(),
        trace_id: g.text(),
    }
}

pub fn worker(g: &mut Gen) -> WorkerView {
    WorkerView {
        id: g.name(),
        name: g.text(),
        state: g.word(),
        labels: g.named(Gen::text),
        slots: g.small(),
        busy: g.small(),
        agents: g.many(Gen::text),
        build: g.text(),
        last_beat: g.maybe(Gen::time),
        skew_ms: g.number().cast_signed(),
    }
}

pub fn explanation(g: &mut Gen) -> Explanation {
    Explanation {
        unit: g.name(),
        state: g.word(),
        position: g.maybe(Gen::number),
        reasons: g.many(Gen::text),
    }
}

pub fn problem(g: &mut Gen) -> Problem {
    Problem {
        code: g.pick(&[Code::Syntax, Code::Cycle, Code::NotSupportedYet, Code::Advice]),
        severity: g.pick(&[Severity::Error, Severity::Warning]),
        path: g.text(),
        line: g.maybe(Gen::small),
        column: g.maybe(Gen::small),
        message: g.text(),
        fix: g.text(),
    }
}

pub fn snapshot(g: &mut Gen) -> Snapshot {
    Snapshot {
        row: row(g),
        running: g.many(Gen::name),
        attention: g.maybe(Gen::text),
        blocker: g.maybe(Gen::text),
        next_action: g.maybe(Gen::text),
        ledger: ledger(g),
        questions: g.many(Gen::name),
        updated_at: g.time(),
    }
}

pub fn watched(g: &mut Gen) -> Watched {
    Watched {
        sequence: g.number(),
        at: g.time(),
        by: g.actor(),
        kind: g.word(),
        unit: g.maybe(Gen::name),
        attempt: g.maybe(Gen::attempt),
        summary: g.text(),
        json: g.text(),
    }
}

pub fn source(g: &mut Gen) -> SubmittedSource {
    SubmittedSource {
        repository: Repository {
            id: g.name(),
            shown: g.text(),
            base: g.object(),
            base_name: g.text(),
        },
        bundle: g.maybe(Gen::artifact),
    }
}

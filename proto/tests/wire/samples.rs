//! Random values of the domain, from a seed: every variant and every absence is reached.

use std::collections::BTreeMap;

use ganger_shared::actor::Actor;
use ganger_shared::delivery::{
    Change, ChangeKind, Changes, CheckResult, CommandEvidence, Delivery, NotMeasured, Outcome,
    Place, TreeDelivery, Usage,
};
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::{AttemptId, CheckId, Epoch, LaneId, RunId, Subject, WorkId};
use ganger_shared::link::{
    Anchor, Answer, Beat, CoordinatorSays, Ended, Fact, Failed, Hello, Lease, Progress, Report,
    Started, StopReason, Stopped, Welcome, WorkerSays,
};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{AgentTask, Assignment, Body, CheckTask, Source};
use ganger_shared::time::{DurationMs, Timestamp};

/// A source of values: splitmix64, so that a failing seed says everything.
pub struct Gen(pub u64);

impl Gen {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub fn small(&mut self) -> u32 {
        u32::try_from(self.number() >> 32).unwrap()
    }

    pub fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }

    pub fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.yes() { Some(value(self)) } else { None }
    }

    pub fn many<T>(&mut self, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| value(self)).collect()
    }

    /// Any text: empty, of many lines, outside of ASCII.
    pub fn text(&mut self) -> String {
        let text = self.pick(&["", "a", "two words", "line\nline", "ünï🙂", "\u{0}\u{7f}", "`\"'"]);
        text.repeat(usize::try_from(self.below(3)).unwrap())
    }

    /// A text that is not empty.
    pub fn word(&mut self) -> String {
        self.pick(&["x", "claude", "running", "a b", "🙂"]).to_owned()
    }

    pub fn named<T>(&mut self, mut value: impl FnMut(&mut Self) -> T) -> BTreeMap<String, T> {
        (0..self.below(4)).map(|_| (self.text(), value(self))).collect()
    }

    pub fn time(&mut self) -> Timestamp {
        Timestamp::from_unix_ms(self.number().cast_signed())
    }

    pub fn length(&mut self) -> DurationMs {
        DurationMs(self.number())
    }

    pub fn digest(&mut self) -> Digest {
        Digest::of(&self.number().to_be_bytes())
    }

    pub fn artifact(&mut self) -> ArtifactRef {
        ArtifactRef { sha256: self.digest(), bytes: self.number() }
    }

    /// A commit or tree, of either kind of repository.
    pub fn object<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self) -> T {
        let hex = self.digest().to_string();
        hex[..self.pick(&[40, 64])].parse().unwrap()
    }

    /// An id with the form of a name.
    pub fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self) -> T {
        self.pick(&["a", "implement", "unit-2", "0"]).parse().unwrap()
    }

    pub fn run(&mut self) -> RunId {
        let (high, low) = (self.number().to_be_bytes(), self.number().to_be_bytes());
        RunId::from_uuid_bytes(&[high, low].concat().try_into().unwrap())
    }

    pub fn attempt(&mut self) -> AttemptId {
        let lane = if self.yes() { LaneId::main() } else { self.name() };
        AttemptId { unit: self.name(), lane, n: self.small().max(1) }
    }

    pub fn check(&mut self) -> CheckId {
        let subject = match self.below(3) {
            0 => Subject::Attempt(self.attempt()),
            1 => Subject::Merge(self.attempt()),
            _ => Subject::Final(self.object()),
        };
        CheckId { unit: self.name(), check: self.name(), subject, n: self.small().max(1) }
    }

    pub fn work(&mut self) -> WorkId {
        if self.yes() { WorkId::Attempt(self.attempt()) } else { WorkId::Check(self.check()) }
    }

    pub fn lease(&mut self) -> Lease {
        Lease { run: self.run(), work: self.work(), epoch: Epoch(self.number()) }
    }

    pub fn actor(&mut self) -> Actor {
        match self.below(4) {
            0 => Actor::Principal(self.text()),
            1 => Actor::Policy(self.digest()),
            2 => Actor::Coordinator,
            _ => Actor::Worker(self.text()),
        }
    }

    pub fn anchor(&mut self) -> Anchor {
        Anchor {
            store_id: self.word(),
            generation: self.number(),
            log_seq: self.number(),
            hash: self.digest(),
        }
    }
}

pub fn worker_says(g: &mut Gen) -> WorkerSays {
    match g.below(4) {
        0 => WorkerSays::Hello(Box::new(hello(g))),
        1 => WorkerSays::Beat(Beat {
            live: g.many(progress),
            busy: g.small(),
            sent_at: g.time(),
            draining: g.yes(),
        }),
        2 => WorkerSays::Report(Box::new(Report {
            lease: g.lease(),
            number: g.small(),
            fact: fact(g),
        })),
        _ => WorkerSays::Goodbye { reason: g.text() },
    }
}

pub fn hello(g: &mut Gen) -> Hello {
    Hello {
        protocol_min: g.small(),
        protocol_max: g.small(),
        facts: facts(g),
        live: g.many(Gen::lease),
        finished: g.many(Gen::lease),
        seen: g.maybe(Gen::anchor),
        sent_at: g.time(),
    }
}

fn facts(g: &mut Gen) -> WorkerFacts {
    WorkerFacts {
        worker: g.name(),
        instance: g.name(),
        name: g.text(),
        labels: g.named(Gen::text),
        slots: g.small(),
        agents: g.many(|g| AgentFacts {
            name: g.word(),
            adapter: g.word(),
            version: g.maybe(Gen::text),
        }),
        build: g.text(),
    }
}

pub fn progress(g: &mut Gen) -> Progress {
    Progress {
        lease: g.lease(),
        phase: g.text(),
        lines: g.number(),
        quiet_ms: g.length(),
        last_line: g.text(),
    }
}

fn fact(g: &mut Gen) -> Fact {
    match g.below(6) {
        0 => Fact::Accepted,
        1 => Fact::Started(Started { pid: g.small(), isolated: g.yes(), containment: g.text() }),
        2 => Fact::Delivered(Box::new(ended(g, delivery))),
        3 => Fact::Failed(Box::new(ended(g, |g| Failed {
            failure: failure(g),
            left: g.maybe(delivery),
            usage: usage(g),
        }))),
        4 => Fact::Stopped(ended(g, |g| Stopped { confirmed: g.yes(), usage: usage(g) })),
        _ => Fact::Measured(Box::new(ended(g, check_result))),
    }
}

fn ended<T>(g: &mut Gen, end: impl FnOnce(&mut Gen) -> T) -> Ended<T> {
    Ended {
        end: end(g),
        active_ms: g.length(),
        output: g.maybe(Gen::artifact),
        output_truncated: g.yes(),
    }
}

pub fn failure(g: &mut Gen) -> Failure {
    Failure { class: g.pick(FailureClass::ALL), message: g.text() }
}

fn usage(g: &mut Gen) -> Usage {
    Usage {
        tokens_in: g.maybe(Gen::number),
        tokens_out: g.maybe(|_| 0),
        tokens_cached: g.maybe(Gen::number),
        usd_micros: g.maybe(Gen::number),
    }
}

pub fn delivery(g: &mut Gen) -> Delivery {
    Delivery {
        tree: g.maybe(tree),
        no_change: g.yes(),
        summary: g.text(),
        excerpt: g.text(),
        commands: g.many(evidence),
        usage: usage(g),
        session: g.maybe(Gen::text),
        isolated: g.yes(),
    }
}

fn tree(g: &mut Gen) -> TreeDelivery {
    let kinds = [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted];
    TreeDelivery {
        base: g.object(),
        tree: g.object(),
        commit: g.object(),
        bundle: g.maybe(Gen::artifact),
        patch: g.maybe(Gen::artifact),
        changes: Changes {
            listed: g.many(|g| Change { path: g.word(), kind: g.pick(&kinds) }),
            total: g.number(),
        },
    }
}

fn evidence(g: &mut Gen) -> CommandEvidence {
    CommandEvidence {
        cmd: g.text(),
        pass: g.yes(),
        exit_code: g.maybe(|g| g.pick(&[0, 1, -1, 255])),
        log_tail: g.text(),
        log: g.maybe(Gen::artifact),
        duration_ms: g.length(),
    }
}

pub fn check_result(g: &mut Gen) -> CheckResult {
    let why = [NotMeasured::HarnessDefect, NotMeasured::Timeout, NotMeasured::Withdrawn];
    CheckResult {
        outcome: g.pick(&[Outcome::Pass, Outcome::Fail, Outcome::NotMeasured]),
        not_measured: g.maybe(|g| g.pick(&why)),
        evidence: g.maybe(evidence),
        tree: g.object(),
        message: g.maybe(Gen::text),
    }
}

pub fn place(g: &mut Gen) -> Place {
    g.pick(&[Place::OtherWorker, Place::OtherTree])
}

pub fn coordinator_says(g: &mut Gen) -> CoordinatorSays {
    let reasons = [
        StopReason::Cancelled,
        StopReason::RunStopping,
        StopReason::Timeout,
        StopReason::Revoked,
        StopReason::Withdrawn,
    ];
    let answers = [
        Answer::Recorded,
        Answer::Stale,
        Answer::RunClosed,
        Answer::UnknownRun,
        Answer::RetryLater,
    ];
    match g.below(6) {
        0 => CoordinatorSays::Welcome(Welcome {
            protocol: g.small(),
            beat_ms: g.length(),
            lease_ms: g.length(),
            anchor: g.anchor(),
        }),
        1 => CoordinatorSays::Keep(g.lease()),
        2 => CoordinatorSays::Stop { lease: g.lease(), reason: g.pick(&reasons), now: g.yes() },
        3 => CoordinatorSays::Assign(Box::new(assignment(g))),
        4 => CoordinatorSays::Answered {
            lease: g.lease(),
            number: g.small(),
            answer: g.pick(&answers),
            anchor: g.maybe(Gen::anchor),
        },
        _ => CoordinatorSays::Goodbye { reason: g.text() },
    }
}

fn assignment(g: &mut Gen) -> Assignment {
    Assignment {
        run: g.run(),
        work: g.work(),
        epoch: Epoch(g.number()),
        traceparent: g.text(),
        source: g.maybe(|g| Source { repository: g.name(), commit: g.object() }),
        timeout_ms: g.length(),
        silence_ms: g.maybe(Gen::length),
        grace_ms: g.length(),
        on_disconnect: g.pick(&[OnDisconnect::Continue, OnDisconnect::Stop]),
        env: g.many(Gen::text),
        body: body(g),
    }
}

fn body(g: &mut Gen) -> Body {
    match g.below(3) {
        0 => Body::Command { run: g.text(), files: g.many(Gen::text) },
        1 => Body::Agent(AgentTask {
            agent: g.word(),
            tier: g.maybe(Gen::text),
            goal: g.text(),
            objective: g.text(),
            invariants: g.many(Gen::text),
            language: g.maybe(Gen::text),
            files: g.many(Gen::text),
            script: g.maybe(Gen::artifact),
        }),
        _ => Body::Check(CheckTask {
            run: g.text(),
            expect_exit: g.pick(&[0, 1, -1]),
            tree: g.object(),
            pinned: g.many(Gen::text),
            pinned_from: g.object(),
            place: place(g),
        }),
    }
}

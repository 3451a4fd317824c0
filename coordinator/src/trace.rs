//! The long-lived spans of a run, projected from its events (design section 10).
//!
//! A span is sent when it ends; its ids follow from the journal, so that a restarted coordinator
//! goes on with the same trace. Not here: live spans, which tracing makes.

use std::collections::BTreeSet;

use ganger_coordinator_core::run::{Attempt, Phase, Run, UnitState};
use ganger_shared::delivery::{Delivery, Outcome, Usage};
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{AttemptId, CheckId, UnitId};
use ganger_shared::time::Timestamp;
use ganger_shared::verdict::{Judgement, Verdict};
use ganger_telemetry::names::{attribute, link, span};
use ganger_telemetry::{AttributeValue, Link, Parent, Projector, SpanKey, SpanRecord, SpanStatus};

/// The span of one measuring of a check, below its unit's.
pub fn check_key(id: &CheckId) -> SpanKey {
    SpanKey::Unit(id.unit.to_string()).named(span::CHECK, id.to_string())
}

/// The spans of one run: who sends them, and which units have theirs already.
pub struct Spans {
    projector: Projector,
    /// A unit may end more than once (it fails, and is cancelled then); its span is sent once.
    units: BTreeSet<UnitId>,
}

impl Spans {
    /// The spans of a run without events.
    pub fn new(projector: Projector) -> Self {
        Self { projector, units: BTreeSet::new() }
    }

    /// The units of a folded run that have ended had their spans sent when they did.
    pub fn folded(&mut self, run: &Run) {
        if self.projector.is_on() {
            let ended = run.units().iter().filter(|unit| over(&unit.state));
            self.units = ended.map(|unit| unit.spec.id.clone()).collect();
        }
    }

    /// Sends the spans these events ended. `run` is the state after them.
    pub fn project(&mut self, run: &Run, events: &[Envelope<RunEvent>]) {
        if !self.projector.is_on() {
            return;
        }
        let Some(head) = run.submitted() else { return };
        let trace = head.run.as_str();
        for envelope in events {
            for record in records(run, trace, envelope) {
                self.projector.project(record);
            }
            for (unit, status) in ended_units(run, &envelope.event) {
                if self.units.insert(unit.clone()) {
                    self.projector.project(unit_span(run, trace, &unit, envelope.at, status));
                }
            }
            if let RunEvent::RunSubmitted(_) = envelope.event {
                let attributes = vec![(attribute::RUN, AttributeValue::from(trace.to_owned()))];
                self.projector.run_started(trace, ms(envelope.at), attributes);
            }
        }
    }
}

/// Whether nothing more happens to the unit by itself.
fn over(state: &UnitState) -> bool {
    match state {
        UnitState::Pending
        | UnitState::Ready { .. }
        | UnitState::Running
        | UnitState::Delivered { .. }
        | UnitState::Stopping { .. } => false,
        UnitState::Accepted { .. } => state.done(),
        UnitState::Failed { .. } | UnitState::Cancelled { .. } | UnitState::Skipped { .. } => true,
    }
}

/// The units that an event ended, and how.
fn ended_units(run: &Run, event: &RunEvent) -> Vec<(UnitId, SpanStatus)> {
    let error = |text: &str| SpanStatus::Error(text.to_owned());
    match event {
        RunEvent::Applied { attempt, .. } => vec![(attempt.unit.clone(), SpanStatus::Ok)],
        RunEvent::VerdictGiven(verdict) => {
            let unit = &verdict.attempt.unit;
            let done = run.unit(unit).is_some_and(|unit| unit.state.done());
            if done { vec![(unit.clone(), SpanStatus::Ok)] } else { Vec::new() }
        }
        RunEvent::UnitFailed { unit, failure } => {
            vec![(unit.clone(), error(&failure.class.to_string()))]
        }
        RunEvent::UnitCancelled { unit, .. } => vec![(unit.clone(), error("cancelled"))],
        RunEvent::RunAborted => {
            let cut = run.units().iter().filter(|unit| !unit.attempts.is_empty());
            let cut = cut.filter(|unit| matches!(unit.state, UnitState::Skipped { .. }));
            cut.map(|unit| (unit.spec.id.clone(), error("skipped"))).collect()
        }
        RunEvent::RunSubmitted(_)
        | RunEvent::TaskPlanned { .. }
        | RunEvent::UnitPlanned { .. }
        | RunEvent::RevisionAccepted { .. }
        | RunEvent::CommandRecorded(_)
        | RunEvent::AttemptLeased(_)
        | RunEvent::AttemptAccepted { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::AttemptStopping { .. }
        | RunEvent::AttemptDelivered { .. }
        | RunEvent::AttemptFailed { .. }
        | RunEvent::AttemptCancelled { .. }
        | RunEvent::AttemptLost { .. }
        | RunEvent::DeliveryTaken { .. }
        | RunEvent::LateResult { .. }
        | RunEvent::RetryScheduled { .. }
        | RunEvent::CheckLeased(_)
        | RunEvent::CheckMeasured { .. }
        | RunEvent::CheckLost { .. }
        | RunEvent::MergePrepared { .. }
        | RunEvent::IntegrationConflicted { .. }
        | RunEvent::ApplyIntended { .. }
        | RunEvent::UnitStopping { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed
        | RunEvent::RunHeld { .. }
        | RunEvent::RunReleased
        | RunEvent::RunBudgetLimited { .. }
        | RunEvent::RunStopping { .. }
        | RunEvent::RunCompleted { .. } => Vec::new(),
    }
}

fn records(run: &Run, trace: &str, envelope: &Envelope<RunEvent>) -> Vec<SpanRecord> {
    let at = envelope.at;
    match &envelope.event {
        RunEvent::AttemptLeased(lease) => {
            queue_wait(run, trace, &lease.attempt, at).into_iter().collect()
        }
        RunEvent::AttemptDelivered { attempt, .. }
        | RunEvent::AttemptFailed { attempt, .. }
        | RunEvent::AttemptCancelled { attempt, .. }
        | RunEvent::AttemptLost { attempt, .. } => {
            attempt_span(run, trace, attempt, at).into_iter().collect()
        }
        RunEvent::Applied { attempt, .. } => {
            apply_span(run, trace, attempt, at).into_iter().collect()
        }
        RunEvent::VerdictGiven(verdict) => judge_span(run, trace, verdict).into_iter().collect(),
        RunEvent::CheckMeasured { check, .. } | RunEvent::CheckLost { check, .. } => {
            check_span(run, trace, check, at).into_iter().collect()
        }
        RunEvent::RunCompleted { .. } => vec![run_span(run, trace, at, SpanStatus::Ok)],
        RunEvent::RunAborted => {
            vec![run_span(run, trace, at, SpanStatus::Error("aborted".to_owned()))]
        }
        RunEvent::RunSubmitted(_)
        | RunEvent::TaskPlanned { .. }
        | RunEvent::UnitPlanned { .. }
        | RunEvent::RevisionAccepted { .. }
        | RunEvent::CommandRecorded(_)
        | RunEvent::AttemptAccepted { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::AttemptStopping { .. }
        | RunEvent::DeliveryTaken { .. }
        | RunEvent::LateResult { .. }
        | RunEvent::RetryScheduled { .. }
        | RunEvent::UnitFailed { .. }
        | RunEvent::UnitCancelled { .. }
        | RunEvent::CheckLeased(_)
        | RunEvent::MergePrepared { .. }
        | RunEvent::IntegrationConflicted { .. }
        | RunEvent::ApplyIntended { .. }
        | RunEvent::UnitStopping { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed
        | RunEvent::RunHeld { .. }
        | RunEvent::RunReleased
        | RunEvent::RunBudgetLimited { .. }
        | RunEvent::RunStopping { .. } => Vec::new(),
    }
}

/// Milliseconds since the epoch; no event is from before it.
fn ms(at: Timestamp) -> u64 {
    at.unix_ms().try_into().unwrap_or(0)
}

fn find<'a>(
    run: &'a Run,
    id: &AttemptId,
) -> Option<(&'a ganger_coordinator_core::run::Unit, usize)> {
    let unit = run.unit(&id.unit)?;
    let at = unit.attempts.iter().position(|attempt| attempt.lease.attempt == *id)?;
    Some((unit, at))
}

fn queue_wait(run: &Run, trace: &str, id: &AttemptId, at: Timestamp) -> Option<SpanRecord> {
    let (unit, index) = find(run, id)?;
    let since = match index.checked_sub(1).and_then(|before| unit.attempts[before].ended_at) {
        Some(ended) => ended,
        None => unit.ready_at.unwrap_or(at),
    };
    let key = SpanKey::Unit(id.unit.to_string()).named(span::QUEUE_WAIT, id.to_string());
    let times = (ms(since), ms(at));
    let parent = Parent::Key(SpanKey::Unit(id.unit.to_string()));
    Some(SpanRecord { parent, ..SpanRecord::new(trace, key, span::QUEUE_WAIT, times) })
}

fn attempt_span(run: &Run, trace: &str, id: &AttemptId, at: Timestamp) -> Option<SpanRecord> {
    let (unit, index) = find(run, id)?;
    let attempt = &unit.attempts[index];
    let links = index
        .checked_sub(1)
        .map(|before| {
            let earlier = unit.attempts[before].lease.attempt.to_string();
            Link::to(trace, SpanKey::Attempt(earlier), link::RETRY_OF)
        })
        .into_iter()
        .collect();
    let text = |text: &str| AttributeValue::from(text.to_owned());
    let times = (ms(attempt.leased_at), ms(at));
    let mut attributes = vec![
        (attribute::RUN, text(trace)),
        (attribute::UNIT, text(id.unit.as_str())),
        (attribute::ATTEMPT, text(&id.to_string())),
        (attribute::WORKER, text(attempt.lease.worker.as_str())),
    ];
    attributes.extend(attempt.delivery().into_iter().flat_map(delivered));
    Some(SpanRecord {
        parent: Parent::Key(SpanKey::Unit(id.unit.to_string())),
        status: status(attempt),
        attributes,
        links,
        ..SpanRecord::new(trace, SpanKey::Attempt(id.to_string()), span::ATTEMPT, times)
    })
}

/// What a delivery says of itself; what is not known is left out, never 0.
fn delivered(delivery: &Delivery) -> Vec<(&'static str, AttributeValue)> {
    let Usage { tokens_in, tokens_out, tokens_cached, usd_micros } = delivery.usage;
    let counts = [
        (attribute::INPUT_TOKENS, tokens_in),
        (attribute::OUTPUT_TOKENS, tokens_out),
        (attribute::CACHE_READ_TOKENS, tokens_cached),
        (attribute::COST, usd_micros),
    ];
    let count = |(key, count): (_, Option<u64>)| {
        Some((key, AttributeValue::from(i64::try_from(count?).unwrap_or(i64::MAX))))
    };
    let session = delivery.session.clone();
    let session = session.map(|session| (attribute::CONVERSATION, AttributeValue::from(session)));
    let excerpt = (attribute::RESULT_EXCERPT, AttributeValue::from(delivery.excerpt.clone()));
    counts.into_iter().filter_map(count).chain(session).chain([excerpt]).collect()
}

/// The time from the end of an attempt to what was judged of it.
fn judge_span(run: &Run, trace: &str, verdict: &Verdict) -> Option<SpanRecord> {
    let (unit, index) = find(run, &verdict.attempt)?;
    let attempt = &unit.attempts[index];
    let end = verdict.timestamp;
    let times = (ms(attempt.ended_at.unwrap_or(end)), ms(end));
    // By its own place: several may be of one batch.
    let place = attempt.verdicts.iter().position(|other| other == verdict)? + 1;
    let nth = format!("{}:{place}", verdict.attempt);
    let key = SpanKey::Unit(verdict.attempt.unit.to_string());
    let outcome = match verdict.verdict {
        Judgement::Accept => "accept",
        Judgement::Reject => "reject",
        Judgement::Blocked => "blocked",
    };
    let attributes = vec![(attribute::OUTCOME, AttributeValue::from(outcome))];
    let record = SpanRecord::new(trace, key.clone().named(span::JUDGE, nth), span::JUDGE, times);
    Some(SpanRecord { parent: Parent::Key(key), attributes, ..record })
}

/// The time from acceptance to the commit on the branch.
fn apply_span(run: &Run, trace: &str, id: &AttemptId, at: Timestamp) -> Option<SpanRecord> {
    let (unit, index) = find(run, id)?;
    let accepted = unit.attempts[index].verdicts.last()?.timestamp;
    let key = SpanKey::Unit(id.unit.to_string());
    let of = key.clone().named(span::APPLY, id.to_string());
    let record = SpanRecord::new(trace, of, span::APPLY, (ms(accepted), ms(at)));
    Some(SpanRecord { parent: Parent::Key(key), status: SpanStatus::Ok, ..record })
}

/// A measuring's span; one that was lost is found by its number alone.
fn check_span(run: &Run, trace: &str, id: &CheckId, at: Timestamp) -> Option<SpanRecord> {
    let measuring = run.measuring(id)?;
    let leased = measuring.leased_at?;
    let status = match measuring.result.as_ref().filter(|_| measuring.id == *id) {
        Some(result) => match result.outcome {
            Outcome::Pass => SpanStatus::Ok,
            Outcome::Fail => SpanStatus::Error("fail".to_owned()),
            Outcome::NotMeasured => SpanStatus::Error("not_measured".to_owned()),
        },
        None => SpanStatus::Error("lost".to_owned()),
    };
    let attributes = vec![(attribute::CHECK, AttributeValue::from(id.check.to_string()))];
    let parent = Parent::Key(SpanKey::Unit(id.unit.to_string()));
    let times = (ms(leased), ms(at));
    let record = SpanRecord::new(trace, check_key(id), span::CHECK, times);
    Some(SpanRecord { parent, status, attributes, ..record })
}

fn status(attempt: &Attempt) -> SpanStatus {
    match &attempt.phase {
        Phase::Delivered { .. } => SpanStatus::Ok,
        Phase::Failed { ended } => SpanStatus::Error(ended.end.failure.class.to_string()),
        Phase::Cancelled { .. } => SpanStatus::Error("cancelled".to_owned()),
        Phase::Lost { .. } => SpanStatus::Error("lost".to_owned()),
        Phase::Leased | Phase::Preparing | Phase::Running | Phase::Stopping { .. } => {
            SpanStatus::Unset
        }
    }
}

fn unit_span(
    run: &Run,
    trace: &str,
    unit: &UnitId,
    at: Timestamp,
    status: SpanStatus,
) -> SpanRecord {
    let start = run.unit(unit).and_then(|unit| unit.ready_at).unwrap_or(at);
    let times = (ms(start), ms(at));
    let attributes = vec![(attribute::UNIT, AttributeValue::from(unit.to_string()))];
    let key = SpanKey::Unit(unit.to_string());
    let record = SpanRecord::new(trace, key, span::UNIT, times);
    SpanRecord { parent: Parent::Key(SpanKey::Run), status, attributes, ..record }
}

fn run_span(run: &Run, trace: &str, at: Timestamp, status: SpanStatus) -> SpanRecord {
    let start = run.row().map_or(at, |row| row.submitted_at);
    let times = (ms(start), ms(at));
    let attributes = vec![(attribute::RUN, AttributeValue::from(trace.to_owned()))];
    let record = SpanRecord::new(trace, SpanKey::Run, span::RUN, times);
    SpanRecord { status, attributes, ..record }
}

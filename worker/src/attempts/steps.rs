//! The steps of one attempt, each as a task that tells the attempt's actor how it went.
//!
//! A task is dropped when its step is given up. Spans hang under the assignment's `traceparent` and
//! end with their step, so that a long run is visible before its end. Not here: when a step begins.

use std::sync::Arc;

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::spec::{Assignment, Body};
use ganger_telemetry::RemoteParent;
use ganger_telemetry::names::{attribute, operation, span};
use ractor::ActorRef;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span, field};

use super::attempt::AttemptMessage;
use super::board::Observed;
use super::port::{EVENTS_WAITING_MAX, ExecEnd, ExecEvent, Finish, Keep, Room, Site};
use crate::time::Timer;
use crate::{evidence, executor, workspace};

/// A step under way; dropping it gives it up.
pub(super) type Step = AbortOnDropHandle<()>;

/// What every step of one attempt needs.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) site: Site,
    pub(super) assignment: Arc<Assignment>,
    pub(super) timer: Timer,
    /// Whom to tell.
    pub(super) attempt: ActorRef<AttemptMessage>,
}

impl Stage {
    /// Makes the tree.
    pub(super) fn prepare(&self) -> Step {
        let stage = self.clone();
        let work = async move {
            let made = workspace::prepare(&stage.site, &stage.assignment).await;
            stage.tell(AttemptMessage::Prepared(made));
        };
        self.task(span::WORKSPACE, work)
    }

    /// Starts the program, then follows what its executor tells until the end.
    pub(super) fn execute(&self, room: Arc<Room>, observed: watch::Sender<Observed>) -> Step {
        let stage = self.clone();
        let work = async move {
            let (tell, events) = mpsc::channel(EVENTS_WAITING_MAX);
            let running = executor::start(&stage.site, &stage.assignment, &room, tell).await;
            let started = running.is_ok();
            stage.tell(AttemptMessage::Spawned(running.map(Box::new)));
            if started {
                stage.follow(events, observed).await;
            }
        };
        self.task(&work_name(&self.assignment), work)
    }

    /// Collects what the attempt hands in.
    pub(super) fn collect(&self, room: Arc<Room>, finish: Finish) -> Step {
        let stage = self.clone();
        let work = async move {
            let evidence = evidence::collect(&stage.site, &stage.assignment, &room, &finish).await;
            stage.tell(AttemptMessage::Collected(Box::new(evidence)));
        };
        self.task("evidence", work)
    }

    /// Removes the attempt's directory, or keeps its tree.
    pub(super) fn discard(&self, keep: Keep) -> Step {
        let stage = self.clone();
        let work = async move {
            let discarded = workspace::discard(&stage.site, &stage.assignment, keep).await;
            if let Err(failure) = discarded {
                tracing::warn!(work = %stage.assignment.work, %failure.message, "left a directory");
            }
            stage.tell(AttemptMessage::Discarded);
        };
        AbortOnDropHandle::new(tokio::spawn(work))
    }

    async fn follow(&self, mut events: mpsc::Receiver<ExecEvent>, seen: watch::Sender<Observed>) {
        while let Some(event) = events.recv().await {
            match event {
                ExecEvent::Started { session, model } => {
                    let here = Span::current();
                    session.map(|session| here.record(attribute::CONVERSATION, session));
                    model.map(|model| here.record(attribute::RESPONSE_MODEL, model));
                    self.tell(AttemptMessage::Ready);
                }
                ExecEvent::Activity { lines, last_line } => self.heard(&seen, lines, last_line),
                ExecEvent::Text { text } => self.heard(&seen, 0, text),
                ExecEvent::ToolStart { name, .. } => self.heard(&seen, 0, name),
                ExecEvent::ToolEnd { .. }
                | ExecEvent::Permission { .. }
                | ExecEvent::Usage(_)
                | ExecEvent::Context { .. }
                | ExecEvent::Retry { .. }
                | ExecEvent::RateLimit { .. }
                | ExecEvent::Artifact { .. } => self.alive(&seen),
                ExecEvent::Ended(end) => return self.ended(end),
            }
        }
        self.ended(Box::new(ended_without_a_word()));
    }

    /// Progress goes on the board, not through the mailbox: an agent may print without end.
    fn heard(&self, seen: &watch::Sender<Observed>, lines: u64, last_line: String) {
        let now_ms = self.timer.now().mono_ms;
        seen.send_modify(|observed| observed.heard(now_ms, lines, last_line));
    }

    fn alive(&self, seen: &watch::Sender<Observed>) {
        let now_ms = self.timer.now().mono_ms;
        seen.send_modify(|observed| observed.heard_ms = now_ms);
    }

    fn ended(&self, end: Box<ExecEnd>) {
        if let Some(failure) = &end.failure {
            Span::current().record(attribute::ERROR_TYPE, failure.class.as_str());
        }
        let at_ms = self.timer.now().mono_ms;
        self.tell(AttemptMessage::Exited { end, at_ms });
    }

    fn task(&self, name: &str, work: impl Future<Output = ()> + Send + 'static) -> Step {
        let span = self.span(name);
        AbortOnDropHandle::new(tokio::spawn(work.instrument(span)))
    }

    fn span(&self, name: &str) -> Span {
        let assignment = &self.assignment;
        let span = tracing::info_span!(
            "step",
            otel.name = name,
            { attribute::RUN } = %assignment.run,
            { attribute::ATTEMPT } = %assignment.work,
            { attribute::EPOCH } = assignment.epoch.0,
            { attribute::WORKER } = %self.site.worker,
            { attribute::OPERATION } = field::Empty,
            { attribute::AGENT_NAME } = field::Empty,
            { attribute::CONVERSATION } = field::Empty,
            { attribute::RESPONSE_MODEL } = field::Empty,
            { attribute::ERROR_TYPE } = field::Empty,
        );
        if let (Body::Agent(task), true) = (&assignment.body, name.starts_with(span::INVOKE_AGENT))
        {
            span.record(attribute::OPERATION, operation::INVOKE_AGENT);
            span.record(attribute::AGENT_NAME, &task.agent);
        }
        // A malformed context only costs the parent, and so does telemetry that is off.
        if let Ok(parent) = RemoteParent::parse(&assignment.traceparent) {
            let _ = parent.adopt(&span);
        }
        span
    }

    /// The actor may be gone: then nobody needs to know.
    fn tell(&self, message: AttemptMessage) {
        let _ = self.attempt.cast(message);
    }
}

/// The name of the span in which the work itself is done.
fn work_name(assignment: &Assignment) -> String {
    match &assignment.body {
        Body::Agent(task) => span::invoke_agent(&task.agent),
        Body::Command { .. } => "command".to_owned(),
        Body::Check(_) => span::CHECK.to_owned(),
    }
}

fn ended_without_a_word() -> ExecEnd {
    let message = "the executor ended without saying how";
    ExecEnd {
        failure: Some(Failure::new(FailureClass::Unknown, message)),
        exit: None,
        confirmed: false,
        summary: String::new(),
        no_change: false,
        denied: Vec::new(),
        usage: ganger_shared::delivery::Usage::default(),
        session: None,
        duration_ms: ganger_shared::time::DurationMs(0),
        captures: Vec::new(),
    }
}

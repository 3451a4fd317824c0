//! One run's actor: takes waiting commands, decides, writes, and only then tells anyone.
//!
//! Policy: it has no children. When its journal refuses a batch it folds again from what is written,
//! and after a while hands out all that is owed; when it panics, `Runs` starts it anew, which is the
//! same thing.

mod fold;
mod hand_out;
mod message;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ganger_coordinator_core::run::{Command, Decided, Reply, Run, RunState};
use ganger_shared::digest::Digest;
use ganger_shared::event::{Envelope, RunEvent};
use ganger_shared::ids::{IdempotencyKey, RunId};
use ganger_shared::limits;
use ganger_shared::link::Answer;
use ganger_shared::rejection::Rejection;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

pub use message::{Asked, Outcome, ReplyTo, RunMessage, Seen, Watching};

use crate::house::House;
use crate::journal::{AppendError, StreamName};
use crate::runs::RunsMessage;
use crate::trace;

/// How long a refused run leaves the journal alone before it hands out again what it owes; among
/// that is what those said who do not repeat themselves.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// The actor.
pub struct RunActor;

/// What it is started with.
pub struct Arguments {
    /// The run, new or to be folded.
    pub id: RunId,
    /// Whom it may tell.
    pub house: House,
}

/// What it owns.
pub struct State {
    id: RunId,
    stream: StreamName,
    house: House,
    run: Run,
    waiting: VecDeque<Asked>,
    flush_due: bool,
    watchers: broadcast::Sender<Arc<Seen>>,
    spans: trace::Spans,
    snapshots: snapshot::Snapshots,
    announced: Option<RunState>,
    alarm: Option<JoinHandle<Result<(), ractor::MessagingErr<RunMessage>>>>,
    /// The alarm is for `HandOut`: nothing else is due before.
    refused: bool,
}

impl Actor for RunActor {
    type Msg = RunMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<RunMessage>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let stream = StreamName::run(arguments.id.as_str()).expect("a run id is plain");
        let (watchers, _) = broadcast::channel(limits::WATCH_QUEUE);
        let spans = trace::Spans::new(arguments.house.projector.clone());
        Ok(State {
            id: arguments.id,
            stream,
            house: arguments.house,
            run: Run::default(),
            waiting: VecDeque::new(),
            flush_due: false,
            watchers,
            spans,
            snapshots: snapshot::Snapshots::default(),
            announced: None,
            alarm: None,
            refused: false,
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<RunMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.fold().await?;
        state.announce();
        state.hand_out_all(&myself);
        state.set_alarm(&myself);
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<RunMessage>,
        message: RunMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RunMessage::Ask(asked) => state.ask(&myself, *asked).await?,
            RunMessage::Flush => state.flush(&myself).await?,
            RunMessage::HandOut => state.hand_out_again(&myself),
            RunMessage::Attached { worker } => state.hand_out_to(&worker),
            RunMessage::View(port) => drop(port.send(state.run.view())),
            RunMessage::Row(port) => drop(port.send(state.run.row())),
            RunMessage::Called { key, port } => drop(port.send(state.called(&key))),
            RunMessage::Explain { unit, port } => drop(port.send(state.explain(&unit))),
            #[cfg(test)]
            RunMessage::Break => panic!("a test broke it"),
            RunMessage::Watch(port) => drop(port.send(state.watch())),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<RunMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.stop_alarm();
        Ok(())
    }
}

impl State {
    /// Commands wait until the mailbox has handed over what was there before, so that one batch,
    /// and one sync, serves them all.
    async fn ask(
        &mut self,
        myself: &ActorRef<RunMessage>,
        asked: Asked,
    ) -> Result<(), ActorProcessingErr> {
        self.waiting.push_back(asked);
        if self.flush_due {
            return Ok(());
        }
        self.flush_due = myself.cast(RunMessage::Flush).is_ok();
        // An actor that is drained takes no more messages, and still answers those it has.
        if self.flush_due { Ok(()) } else { self.flush(myself).await }
    }

    async fn flush(&mut self, myself: &ActorRef<RunMessage>) -> Result<(), ActorProcessingErr> {
        self.flush_due = false;
        while !self.waiting.is_empty() {
            let batch = self.waiting.len().min(limits::BATCH);
            let batch = self.waiting.drain(..batch).collect();
            self.decide(myself, batch).await?;
        }
        if self.run.submitted().is_none() {
            // Its submit was refused; whoever tries again begins it again.
            myself.stop(None);
        }
        Ok(())
    }

    async fn decide(
        &mut self,
        myself: &ActorRef<RunMessage>,
        batch: Vec<Asked>,
    ) -> Result<(), ActorProcessingErr> {
        let before = self.run.sequence();
        let (commands, replies) = self.commands(batch);
        let decided = self.run.decide_all(commands);
        match self.append(before, &decided).await {
            Ok(()) => {
                self.publish(before, &decided.events);
                // Before the answers: a caller that asks for its run next must find it.
                self.announce();
                self.answer(replies, decided.replies);
                self.hand_out(myself, &decided.events, decided.moved);
                self.set_alarm(myself);
                self.snapshot_if_due();
                Ok(())
            }
            Err(error) => self.refused(myself, replies, error).await,
        }
    }

    fn commands(&self, batch: Vec<Asked>) -> (Vec<Command>, Vec<ReplyTo>) {
        let (now, mono_ms) = (self.house.clock.utc(), self.house.clock.mono_ms());
        batch
            .into_iter()
            .filter_map(|asked| self.unless_lapsed(asked, mono_ms))
            .map(|asked| (Command { now, by: asked.by, verb: asked.verb }, asked.reply))
            .unzip()
    }

    /// An offer that is too old is declined: the fleet may have given the slot to someone else.
    fn unless_lapsed(&self, asked: Asked, mono_ms: u64) -> Option<Asked> {
        match asked.reply {
            ReplyTo::Fleet { token, lapses_ms } if mono_ms >= lapses_ms => {
                self.answer_offer(token, Reply::Declined);
                None
            }
            ReplyTo::Fleet { .. }
            | ReplyTo::Nobody
            | ReplyTo::Caller(_)
            | ReplyTo::Worker(_)
            | ReplyTo::Session(_)
            | ReplyTo::Unheld(_) => Some(asked),
        }
    }

    async fn append(&self, before: u64, decided: &Decided) -> Result<(), AppendError> {
        if decided.events.is_empty() {
            return Ok(());
        }
        let bodies: Vec<String> = decided.events.iter().map(body).collect();
        let stream = &self.stream;
        let essential = decided.events.iter().any(|envelope| essential(&envelope.event));
        if essential {
            self.house.store.append_essential(stream, before, bodies).await?;
        } else {
            self.house.store.append(stream, before, bodies).await?;
        }
        Ok(())
    }

    /// Nothing of the batch happened: everyone is told so, and the state is folded anew.
    async fn refused(
        &mut self,
        myself: &ActorRef<RunMessage>,
        replies: Vec<ReplyTo>,
        error: AppendError,
    ) -> Result<(), ActorProcessingErr> {
        let reason = error.to_string();
        tracing::warn!(run = %self.id, %reason, "the journal refused a batch");
        for reply in replies {
            let rejection = Rejection::Journal { reason: reason.clone() };
            self.answer_one(reply, Reply::Rejected(rejection));
        }
        match error {
            AppendError::Failed { .. } | AppendError::Closed { .. } => {
                self.house.runs.cast(RunsMessage::JournalFailed { reason })?;
                Err(error.into())
            }
            AppendError::WrongSeq { .. }
            | AppendError::Empty { .. }
            | AppendError::TooLarge { .. }
            | AppendError::BatchTooLarge { .. }
            | AppendError::NotJson { .. }
            | AppendError::DiskFull { .. }
            | AppendError::Full { .. } => {
                self.fold().await?;
                self.rest(myself);
                Ok(())
            }
        }
    }

    /// A lease that ended, an order that was carried out: those who said so do not say it again.
    /// What is owed and held because it was not recorded is handed out again, but not at once: a
    /// journal that has no room has none a moment later either.
    fn rest(&mut self, myself: &ActorRef<RunMessage>) {
        if self.refused {
            return;
        }
        self.stop_alarm();
        self.refused = true;
        self.alarm = Some(myself.send_after(AFTER_REFUSAL, || RunMessage::HandOut));
    }

    fn hand_out_again(&mut self, myself: &ActorRef<RunMessage>) {
        self.refused = false;
        self.hand_out_all(myself);
        self.set_alarm(myself);
    }

    fn publish(&mut self, before: u64, events: &[Envelope<RunEvent>]) {
        self.spans.project(&self.run, events);
        for (seq, envelope) in (before + 1..).zip(events) {
            // Nobody watching is no error.
            let _ = self.watchers.send(Arc::new(Seen { seq, envelope: envelope.clone() }));
        }
    }

    fn answer(&self, replies: Vec<ReplyTo>, outcomes: Vec<Reply>) {
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            self.answer_one(reply, outcome);
        }
    }

    fn answer_one(&self, reply: ReplyTo, outcome: Reply) {
        match reply {
            ReplyTo::Nobody => {}
            // A caller that stopped waiting loses the answer, not the act.
            ReplyTo::Caller(port) => {
                drop(port.send(Outcome { run: self.id.clone(), reply: outcome }));
            }
            ReplyTo::Worker(report) => {
                let answer = match outcome {
                    Reply::Answered(answer) => answer,
                    Reply::Rejected(_)
                    | Reply::Done { .. }
                    | Reply::Leased(_)
                    | Reply::Declined
                    | Reply::Reconciled { .. } => Answer::RetryLater,
                };
                report.answer(answer, Some(self.house.store.tip()));
            }
            ReplyTo::Fleet { token, .. } => self.answer_offer(token, outcome),
            ReplyTo::Session(inquiry) => inquiry.answer(outcome),
            ReplyTo::Unheld(session) => session.unheld(outcome),
        }
    }

    fn called(&self, key: &IdempotencyKey) -> Option<(Digest, u64)> {
        let (_, body) = self.run.calls().find(|(other, _)| *other == key)?;
        Some((*body, self.run.sequence()))
    }

    fn watch(&self) -> Watching {
        Watching {
            sequence: self.run.sequence(),
            over: self.run.state().terminal(),
            events: self.watchers.subscribe(),
        }
    }

    fn stop_alarm(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            alarm.abort();
        }
    }

    fn set_alarm(&mut self, myself: &ActorRef<RunMessage>) {
        if self.refused {
            return;
        }
        self.stop_alarm();
        self.alarm = self.run.next_deadline().map(|due| {
            let wait = due.since(self.house.clock.utc());
            myself.send_after(wait.to_std(), || RunMessage::Ask(Box::new(Asked::tick())))
        });
    }
}

fn body(envelope: &Envelope<RunEvent>) -> String {
    serde_json::to_string(envelope).expect("an event is plain data with text keys")
}

/// What must be recorded even on a disk that is nearly full: everything that ends something.
fn essential(event: &RunEvent) -> bool {
    match event {
        RunEvent::AttemptStopping { .. }
        | RunEvent::AttemptDelivered { .. }
        | RunEvent::AttemptFailed { .. }
        | RunEvent::AttemptCancelled { .. }
        | RunEvent::AttemptLost { .. }
        | RunEvent::LateResult { .. }
        | RunEvent::CheckMeasured { .. }
        | RunEvent::CheckLost { .. }
        | RunEvent::UnitFailed { .. }
        | RunEvent::UnitCancelled { .. }
        | RunEvent::UnitStopping { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunHeld { .. }
        | RunEvent::RunStopping { .. }
        | RunEvent::RunAborted
        | RunEvent::RunCompleted { .. } => true,
        RunEvent::RunSubmitted(_)
        | RunEvent::TaskPlanned { .. }
        | RunEvent::UnitPlanned { .. }
        | RunEvent::RevisionAccepted { .. }
        | RunEvent::CommandRecorded(_)
        | RunEvent::AttemptLeased(_)
        | RunEvent::AttemptAccepted { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::DeliveryTaken { .. }
        | RunEvent::RetryScheduled { .. }
        | RunEvent::CheckLeased(_)
        | RunEvent::VerdictGiven(_)
        | RunEvent::MergePrepared { .. }
        | RunEvent::IntegrationConflicted { .. }
        | RunEvent::ApplyIntended { .. }
        | RunEvent::Applied { .. }
        | RunEvent::RunResumed
        | RunEvent::RunReleased
        | RunEvent::RunBudgetLimited { .. } => false,
    }
}

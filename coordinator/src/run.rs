//! One run's actor: takes waiting commands, decides, writes, and only then tells anyone.
//!
//! Policy: it has no children. When its journal refuses a batch it folds again from what is written;
//! when it panics, `Runs` starts it anew, which is the same thing.

mod fold;
mod hand_out;
mod message;

use std::collections::VecDeque;
use std::sync::Arc;

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

/// Events between two snapshots of a run's state.
const SNAPSHOT_EVERY: u64 = 512;

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
    snapshot_at: u64,
    announced: Option<RunState>,
    alarm: Option<JoinHandle<Result<(), ractor::MessagingErr<RunMessage>>>>,
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
        Ok(State {
            id: arguments.id,
            stream,
            house: arguments.house,
            run: Run::default(),
            waiting: VecDeque::new(),
            flush_due: false,
            watchers,
            snapshot_at: 0,
            announced: None,
            alarm: None,
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<RunMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.fold()?;
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
            RunMessage::Ask(asked) => state.ask(&myself, *asked)?,
            RunMessage::Flush => state.flush(&myself).await?,
            RunMessage::Attached { worker } => state.hand_out_to(&worker),
            RunMessage::View(port) => drop(port.send(state.run.view())),
            RunMessage::Row(port) => drop(port.send(state.run.row())),
            RunMessage::Called { key, port } => drop(port.send(state.called(&key))),
            RunMessage::Explain { unit, port } => drop(port.send(state.explain(&unit))),
            RunMessage::Watch(port) => drop(port.send(state.watch())),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<RunMessage>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(alarm) = state.alarm.take() {
            alarm.abort();
        }
        Ok(())
    }
}

impl State {
    /// Commands wait until the mailbox has handed over what was there before, so that one batch,
    /// and one sync, serves them all.
    fn ask(&mut self, myself: &ActorRef<RunMessage>, asked: Asked) -> Result<(), ActorProcessingErr> {
        self.waiting.push_back(asked);
        self.want_flush(myself)
    }

    fn want_flush(&mut self, myself: &ActorRef<RunMessage>) -> Result<(), ActorProcessingErr> {
        if !self.flush_due {
            self.flush_due = true;
            myself.cast(RunMessage::Flush)?;
        }
        Ok(())
    }

    async fn flush(&mut self, myself: &ActorRef<RunMessage>) -> Result<(), ActorProcessingErr> {
        self.flush_due = false;
        let batch: Vec<Asked> =
            self.waiting.drain(..self.waiting.len().min(limits::BATCH)).collect();
        if !self.waiting.is_empty() {
            self.want_flush(myself)?;
        }
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
            Err(error) => self.refused(myself, replies, error),
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
            | ReplyTo::Worker { .. }
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
    fn refused(
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
                self.fold()?;
                self.set_alarm(myself);
                Ok(())
            }
        }
    }

    fn publish(&self, before: u64, events: &[Envelope<RunEvent>]) {
        trace::project(&self.house.projector, &self.run, events);
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
            ReplyTo::Caller(port) => drop(port.send(Outcome { run: self.id.clone(), reply: outcome })),
            ReplyTo::Worker { session, lease, number, .. } => {
                let answer = match outcome {
                    Reply::Answered(answer) => answer,
                    Reply::Rejected(_)
                    | Reply::Done { .. }
                    | Reply::Leased(_)
                    | Reply::Declined
                    | Reply::Reconciled { .. } => Answer::RetryLater,
                };
                session.answered(lease, number, answer, Some(self.house.store.tip()));
            }
            ReplyTo::Fleet { token, .. } => self.answer_offer(token, outcome),
            ReplyTo::Session(session) => session.reconciled(outcome),
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

    fn set_alarm(&mut self, myself: &ActorRef<RunMessage>) {
        if let Some(alarm) = self.alarm.take() {
            alarm.abort();
        }
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

//! The worker's side of its link to the coordinator. Policy: supervises nobody; one connection is
//! one task, whose end, even by a defect, only means that the link dials again.
//!
//! Dials for ever with a jittered, growing wait; ends only by leaving, or when the coordinator
//! refuses for good. Not here: what is said on a connection (`session.rs`).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ganger_shared::fleet::WorkerFacts;
use ganger_shared::link::{PROTOCOL, PROTOCOL_MIN, Welcome};
use ganger_shared::time::DurationMs;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr, RpcReplyPort};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use crate::attempts::AttemptsMessage;
use crate::attempts::board::Board;
use crate::config::{Config, OnRefused};
use crate::outbox::Outbox;
use crate::root::RootMessage;
use crate::time::Timer;

mod beats;
pub mod dial;
mod heard;
mod sending;
mod session;

use session::Session;

/// A failing coordinator is complained about this often.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

/// Why the link does not dial any more.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The coordinator does not take the token.
    #[error(
        "attach to {server}: the token in {} was refused ({message}); put a token of role worker there",
        token_file.display()
    )]
    TokenRefused {
        /// The coordinator.
        server: String,
        /// Where the token stands.
        token_file: PathBuf,
        /// The coordinator's words.
        message: String,
    },
    /// There is no token to show.
    #[error(transparent)]
    Token(#[from] dial::TokenError),
    /// The two builds have no protocol in common.
    #[error(
        "attach to {server}: it speaks another protocol than {PROTOCOL_MIN} to {PROTOCOL} ({message}); update the older side"
    )]
    Protocol {
        /// The coordinator.
        server: String,
        /// What it said.
        message: String,
    },
}

/// How one connection ended.
#[derive(Debug)]
pub enum SessionEnd {
    /// The coordinator said goodbye.
    CoordinatorLeft {
        /// Why.
        reason: String,
    },
    /// We did.
    Left,
    /// It ended without a goodbye, or never began.
    Lost {
        /// How it showed.
        why: String,
    },
    /// Dialling again as we are changes nothing.
    Refused(LinkError),
}

/// What the link hears.
pub enum LinkMessage {
    /// Dial.
    Dial,
    /// The coordinator welcomed us.
    Welcomed(Box<Welcome>),
    /// The connection is over.
    Ended(Result<SessionEnd, JoinError>),
    /// Say goodbye and dial no more.
    Leave(RpcReplyPort<()>),
}

/// What the link is begun with.
pub struct Arguments {
    /// What the worker was told.
    pub config: std::sync::Arc<Config>,
    /// What it says of itself.
    pub facts: WorkerFacts,
    /// What it owes.
    pub outbox: Outbox,
    /// Whom to tell of work.
    pub attempts: ActorRef<AttemptsMessage>,
    /// What the beats say.
    pub board: watch::Receiver<Board>,
    /// Whether there is a coordinator, for everybody who waits for one.
    pub attached: watch::Sender<bool>,
    /// The clocks.
    pub timer: Timer,
    /// Whom to tell of the end.
    pub root: ActorRef<RootMessage>,
}

/// The actor.
pub struct Link;

/// What it owns.
pub struct State {
    arguments: Arguments,
    phase: Phase,
    /// How long leases outlive a loss, once a coordinator has said so.
    lease_ms: Option<DurationMs>,
    /// Dials since the last welcome.
    failures: u32,
    complained: Option<Instant>,
    goodbye: watch::Sender<bool>,
    leaving: Option<RpcReplyPort<()>>,
}

enum Phase {
    /// The next dial is set.
    Waiting { _dial: AbortOnDropHandle<Result<(), MessagingErr<LinkMessage>>> },
    /// A connection is made or stands.
    Connected { _session: AbortOnDropHandle<()> },
    /// No more.
    Over,
}

impl Actor for Link {
    type Msg = LinkMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        myself.cast(LinkMessage::Dial)?;
        Ok(State {
            arguments,
            phase: Phase::Over,
            lease_ms: None,
            failures: 0,
            complained: None,
            goodbye: watch::Sender::new(false),
            leaving: None,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: LinkMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LinkMessage::Dial => state.dial(&myself),
            LinkMessage::Welcomed(welcome) => state.welcomed(&welcome),
            LinkMessage::Ended(end) => state.ended(&myself, end),
            LinkMessage::Leave(done) => state.leave(done),
        }
        Ok(())
    }
}

impl State {
    fn dial(&mut self, myself: &ActorRef<LinkMessage>) {
        if self.leaving.is_some() {
            return;
        }
        let Arguments { config, facts, outbox, attempts, board, timer, .. } = &self.arguments;
        let session = Session {
            config: config.clone(),
            facts: facts.clone(),
            outbox: outbox.clone(),
            attempts: attempts.clone(),
            board: board.clone(),
            timer: *timer,
            link: myself.clone(),
            goodbye: self.goodbye.subscribe(),
        };
        let link = myself.clone();
        let run = AbortOnDropHandle::new(tokio::spawn(session.run()));
        // A defect in a session is an end like any other; nobody else sees the panic of a task.
        let told = tokio::spawn(async move {
            let end = run.await;
            let _ = link.cast(LinkMessage::Ended(end));
        });
        self.phase = Phase::Connected { _session: AbortOnDropHandle::new(told) };
    }

    fn welcomed(&mut self, welcome: &Welcome) {
        tracing::info!(server = self.arguments.config.server, after = self.failures, "attached");
        self.lease_ms = Some(welcome.lease_ms);
        self.failures = 0;
        self.complained = None;
        self.arguments.attached.send_replace(true);
        let _ = self.arguments.attempts.cast(AttemptsMessage::Attached);
    }

    fn ended(&mut self, myself: &ActorRef<LinkMessage>, end: Result<SessionEnd, JoinError>) {
        self.lost_contact();
        match end {
            Ok(SessionEnd::Left) => return self.over(),
            Ok(SessionEnd::Refused(error)) => return self.refused(myself, error),
            Ok(SessionEnd::CoordinatorLeft { reason }) => {
                tracing::info!(reason, "the coordinator left; dialling again");
            }
            Ok(SessionEnd::Lost { why }) => self.complain(&why),
            Err(defect) => tracing::error!(%defect, "a connection ended by a defect of the worker"),
        }
        self.again(myself);
    }

    fn lost_contact(&mut self) {
        self.arguments.attached.send_replace(false);
        if let Some(lease_ms) = self.lease_ms {
            let _ = self.arguments.attempts.cast(AttemptsMessage::CutOff { lease_ms });
        }
    }

    fn refused(&mut self, myself: &ActorRef<LinkMessage>, error: LinkError) {
        match self.arguments.config.on_refused {
            OnRefused::Retry => {
                self.complain(&error.to_string());
                self.again(myself);
            }
            OnRefused::End => {
                let _ = self.arguments.root.cast(RootMessage::LinkRefused(error));
                self.over();
            }
        }
    }

    fn again(&mut self, myself: &ActorRef<LinkMessage>) {
        if self.leaving.is_some() {
            return self.over();
        }
        let bounds = &self.arguments.config.bounds;
        let most = bounds.redial_max_ms.0.max(1);
        let grown =
            bounds.redial_min_ms.0.saturating_mul(1 << self.failures.min(16)).clamp(1, most);
        self.failures = self.failures.saturating_add(1);
        // Half of it is chance, so that a fleet does not come back as one. The seed of a fresh hash
        // state is chance enough for that.
        let chance = RandomState::new().hash_one(self.failures);
        let wait = Duration::from_millis(grown / 2 + chance % (grown / 2 + 1));
        let dial = myself.send_after(wait, || LinkMessage::Dial);
        self.phase = Phase::Waiting { _dial: AbortOnDropHandle::new(dial) };
    }

    /// Says why there is no coordinator, but not at every dial.
    fn complain(&mut self, why: &str) {
        let server = &self.arguments.config.server;
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::warn!(server, why, dials = self.failures, "no coordinator; dialling again");
        } else {
            tracing::debug!(server, why, dials = self.failures, "no coordinator");
        }
    }

    fn leave(&mut self, done: RpcReplyPort<()>) {
        self.leaving = Some(done);
        match self.phase {
            Phase::Connected { .. } => drop(self.goodbye.send_replace(true)),
            Phase::Waiting { .. } | Phase::Over => self.over(),
        }
    }

    fn over(&mut self) {
        self.phase = Phase::Over;
        if let Some(done) = self.leaving.take() {
            // Who asked may have lost patience.
            let _ = done.send(());
        }
    }
}

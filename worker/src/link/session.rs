//! One connection, from the dial to its end: hello, welcome, every unanswered report, then both ways
//! until somebody says goodbye. Every end without a goodbye is a loss.
//!
//! Not here: dialling again, and what the coordinator's words lead to (`heard.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ganger_proto::{Refusal, v1};
use ganger_shared::fleet::WorkerFacts;
use ganger_shared::link::{CoordinatorSays, Hello, PROTOCOL, PROTOCOL_MIN, Welcome, WorkerSays};
use ganger_shared::spec::Assignment;
use ractor::ActorRef;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status, Streaming};

pub(super) use super::SessionEnd;
use super::beats::Beats;
use super::dial::{Authority, endpoint};
use super::heard::lost;
use super::sending::Sending;
use super::{LinkError, LinkMessage};
use crate::attempts::AttemptsMessage;
use crate::attempts::board::Board;
use crate::config::Config;
use crate::outbox::{AcceptError, Accepting, Outbox, Owed};
use crate::time::Timer;

/// Messages that may wait for the network.
const OUT_WAITING_MAX: usize = 64;
/// Assignments that may be on their way to the disk; more are not read meanwhile.
const ACCEPTING_MAX: usize = 256;
/// How long `retry_later` is.
const RETRY_LATER: Duration = Duration::from_secs(1);
/// How long a goodbye waits for the coordinator to end the stream.
const FAREWELL: Duration = Duration::from_secs(2);
/// The coordinator's word for a worker whose protocol it does not speak.
const PROTOCOL_WORD: &str = "protocol_mismatch";

/// What one connection needs.
pub(super) struct Session {
    pub(super) config: Arc<Config>,
    pub(super) facts: WorkerFacts,
    pub(super) outbox: Outbox,
    pub(super) attempts: ActorRef<AttemptsMessage>,
    pub(super) board: watch::Receiver<Board>,
    pub(super) timer: Timer,
    pub(super) link: ActorRef<LinkMessage>,
    /// True once we are to say goodbye.
    pub(super) goodbye: watch::Receiver<bool>,
}

/// A connection that was welcomed.
pub(super) struct Live<'a> {
    pub(super) session: &'a Session,
    pub(super) sending: Sending,
    /// Assignments on their way to the disk, oldest first.
    pub(super) accepting: VecDeque<(Box<Assignment>, Accepting)>,
    out: mpsc::Sender<v1::WorkerMessage>,
    inbound: Streaming<v1::CoordinatorMessage>,
}

impl Session {
    /// Dials, and stays until the end.
    pub(super) async fn run(self) -> SessionEnd {
        let greet = Duration::from_millis(self.config.bounds.greet_ms.0);
        let (out, waiting) = mpsc::channel(OUT_WAITING_MAX);
        let greeted = timeout(greet, self.greet(&out, waiting)).await;
        let (welcome, inbound) = match greeted {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(end)) => return end,
            Err(_) => return lost("it did not greet in time"),
        };
        if self.outbox.shown(welcome.anchor.clone()).await.is_err() {
            return lost("the outbox has failed");
        }
        let _ = self.link.cast(LinkMessage::Welcomed(Box::new(welcome.clone())));
        let beats = Beats {
            board: self.board.clone(),
            owed: self.outbox.owed(),
            slots: self.config.slots,
            timer: self.timer,
            out: out.clone(),
        };
        let beats = AbortOnDropHandle::new(tokio::spawn(beats.beat(welcome)));
        let (sending, accepting) = (Sending::default(), VecDeque::new());
        Live { session: &self, sending, accepting, out, inbound }.live(beats).await
    }

    async fn greet(
        &self,
        out: &mpsc::Sender<v1::WorkerMessage>,
        waiting: mpsc::Receiver<v1::WorkerMessage>,
    ) -> Result<(Welcome, Streaming<v1::CoordinatorMessage>), SessionEnd> {
        let config = &self.config;
        let authority = Authority::new(&config.token_file);
        let endpoint = endpoint(&config.server).map_err(|error| lost(&error.to_string()))?;
        let channel = endpoint.connect().await.map_err(|error| lost(&chain(&error)))?;
        let clients = authority.clients(channel).map_err(|e| SessionEnd::Refused(e.into()))?;
        // The hello waits in the stream before the stream is opened: it is always the first word.
        out.try_send(WorkerSays::Hello(Box::new(self.hello())).into())
            .map_err(|_| lost("the stream was closed before the hello"))?;
        let attached = clients.link().attach(ReceiverStream::new(waiting)).await;
        let mut inbound = attached.map_err(|status| self.ended_by(&status))?.into_inner();
        let first = inbound.message().await.map_err(|status| self.ended_by(&status))?;
        let first = first.ok_or_else(|| lost("the stream ended before a welcome"))?;
        match CoordinatorSays::try_from(first).map_err(|error| lost(&error.to_string()))? {
            CoordinatorSays::Welcome(welcome) => self.check(welcome).map(|hi| (hi, inbound)),
            CoordinatorSays::Goodbye { reason } => Err(SessionEnd::CoordinatorLeft { reason }),
            CoordinatorSays::Keep(_)
            | CoordinatorSays::Stop { .. }
            | CoordinatorSays::Assign(_)
            | CoordinatorSays::Answered { .. } => Err(lost("it spoke before its welcome")),
        }
    }

    fn hello(&self) -> Hello {
        let owed = Arc::clone(&self.outbox.owed().borrow());
        Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL,
            facts: self.facts.clone(),
            live: owed.live.clone(),
            finished: owed.finished.clone(),
            seen: owed.seen.clone(),
            sent_at: self.timer.now().wall,
        }
    }

    fn check(&self, welcome: Welcome) -> Result<Welcome, SessionEnd> {
        if (PROTOCOL_MIN..=PROTOCOL).contains(&welcome.protocol) {
            return Ok(welcome);
        }
        let message = format!("its welcome says {}", welcome.protocol);
        Err(SessionEnd::Refused(self.other_protocol(message)))
    }

    fn other_protocol(&self, message: String) -> LinkError {
        LinkError::Protocol { server: self.config.server.clone(), message }
    }

    /// What the end of a stream by a status means.
    fn ended_by(&self, status: &Status) -> SessionEnd {
        let refusal = Refusal::from(status);
        if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) {
            return SessionEnd::Refused(LinkError::TokenRefused {
                server: self.config.server.clone(),
                token_file: self.config.token_file.clone(),
                message: refusal.message,
            });
        }
        if refusal.ours && refusal.code == PROTOCOL_WORD {
            return SessionEnd::Refused(self.other_protocol(refusal.message));
        }
        lost(&format!("{:?}: {}", status.code(), refusal.message))
    }
}

impl Live<'_> {
    async fn live(mut self, mut beats: AbortOnDropHandle<&'static str>) -> SessionEnd {
        let end = self.until_the_end(&mut beats).await;
        // What is on its way to the disk is ours from then on: nobody will assign it again, so it
        // begins even though its connection is gone.
        if self.all_accepted().await.is_err() {
            return lost("the outbox has failed");
        }
        if let Some(end) = end {
            return end;
        }
        drop(beats);
        self.farewell().await
    }

    /// Both ways until the end; nothing where we are asked to leave.
    async fn until_the_end(
        &mut self,
        beats: &mut AbortOnDropHandle<&'static str>,
    ) -> Option<SessionEnd> {
        let mut owed = self.session.outbox.owed();
        let mut goodbye = self.session.goodbye.clone();
        let mut retry = interval(RETRY_LATER);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.sending.is_due(&self.owed());
            tokio::select! {
                said = self.inbound.message(), if self.accepting.len() < ACCEPTING_MAX => {
                    if let Some(end) = self.said(said).await {
                        return Some(end);
                    }
                }
                held = oldest(&mut self.accepting) => if self.accepted(held).await.is_err() {
                    return Some(lost("the outbox has failed"));
                },
                room = self.out.clone().reserve_owned(), if due => match room {
                    Ok(room) => self.send(room),
                    Err(_) => return Some(lost("the control stream was closed")),
                },
                changed = owed.changed() => if changed.is_err() {
                    return Some(lost("the outbox has failed"));
                },
                _ = retry.tick() => self.sending.retry(),
                why = &mut *beats => return Some(match why {
                    Ok(why) => lost(why),
                    Err(defect) => lost(&format!("the beats ended by a defect: {defect}")),
                }),
                () = asked(&mut goodbye) => return None,
            }
        }
    }

    async fn said(
        &mut self,
        said: Result<Option<v1::CoordinatorMessage>, Status>,
    ) -> Option<SessionEnd> {
        match said {
            Ok(Some(message)) => match CoordinatorSays::try_from(message) {
                Ok(says) => self.hear(says).await,
                Err(malformed) => Some(lost(&malformed.to_string())),
            },
            Ok(None) => Some(lost("the stream ended without a goodbye")),
            Err(status) => Some(self.session.ended_by(&status)),
        }
    }

    fn send(&mut self, room: mpsc::OwnedPermit<v1::WorkerMessage>) {
        let owed = self.owed();
        if let Some(report) = self.sending.next(&owed) {
            room.send(WorkerSays::Report(Box::new(report)).into());
        }
    }

    /// Says goodbye and waits a moment for the coordinator to have heard it.
    async fn farewell(self) -> SessionEnd {
        let Self { out, mut inbound, .. } = self;
        let goodbye = WorkerSays::Goodbye { reason: "the worker's process ends".to_owned() };
        let said = async {
            if out.send(goodbye.into()).await.is_ok() {
                drop(out);
                while let Ok(Some(_)) = inbound.message().await {}
            }
        };
        // A coordinator that does not end the stream has still heard why we do.
        let _ = timeout(FAREWELL, said).await;
        SessionEnd::Left
    }

    pub(super) fn owed(&self) -> Arc<Owed> {
        Arc::clone(&self.session.outbox.owed().borrow())
    }
}

/// Waits for the oldest assignment that is on its way to the disk, if there is one.
async fn oldest(accepting: &mut VecDeque<(Box<Assignment>, Accepting)>) -> Result<(), AcceptError> {
    match accepting.front_mut() {
        Some((_, held)) => held.accepted().await,
        None => std::future::pending().await,
    }
}

/// Waits until we are to say goodbye; a link that is gone does not ask, it drops us.
async fn asked(goodbye: &mut watch::Receiver<bool>) {
    if goodbye.wait_for(|leave| *leave).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// An error with all its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

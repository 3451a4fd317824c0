//! One attached worker: what it says goes to the run it is about, what it is told goes out in order.
//!
//! Policy: it has no children; when it dies its stream ends and the worker dials again. Nothing
//! waits here: a full way out means that the worker does not read, and ends the session.

use std::sync::Arc;

use ganger_coordinator_core::run::{Reply, Verb};
use ganger_shared::actor::Actor as By;
use ganger_shared::ids::{InstanceId, WorkerId};
use ganger_shared::link::{
    Anchor, Answer, CoordinatorSays, Hello, Lease, PROTOCOL, Report, StopReason, Welcome,
    WorkerSays,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::fleet::FleetMessage;
use crate::house::House;
use crate::run::{Asked, ReplyTo};
use crate::runs::RunsMessage;

/// Reports and beats of one worker that may be under way at once; a report is until its answer is
/// on the stream.
pub const INBOUND: usize = 256;
/// Messages that may wait for a worker to read them: every answer it has asked for, and a word on
/// each of more leases than a worker has.
pub const OUTBOUND: usize = INBOUND + 768;

/// What a worker is told; the place of the report it answers is free once it is on the stream.
pub struct Told {
    /// What.
    pub says: CoordinatorSays,
    /// A place to give back.
    pub place: Option<OwnedSemaphorePermit>,
}

/// The way out to one worker; never waits.
#[derive(Clone)]
pub struct Outbound {
    queue: mpsc::Sender<Told>,
    ended: CancellationToken,
}

impl Outbound {
    /// A way out and its reading end; `ended` is cancelled when the way is full.
    pub fn new(ended: CancellationToken) -> (Self, mpsc::Receiver<Told>) {
        let (queue, read) = mpsc::channel(OUTBOUND);
        (Self { queue, ended }, read)
    }

    /// Says something, or ends a session whose worker does not read.
    pub fn say(&self, says: CoordinatorSays) {
        self.tell(Told { says, place: None });
    }

    fn tell(&self, told: Told) {
        if self.queue.try_send(told).is_err() && !self.ended.is_cancelled() {
            tracing::warn!(limit = OUTBOUND, "a worker does not read what it is told; hanging up");
            self.ended.cancel();
        }
    }

    /// Ends the session.
    pub fn hang_up(&self) {
        self.ended.cancel();
    }
}

/// How runs reach the session that brought them something.
#[derive(Clone)]
pub struct SessionHandle {
    actor: ActorRef<SessionMessage>,
    outbound: Outbound,
}

impl SessionHandle {
    /// The handle of this session.
    pub fn new(actor: ActorRef<SessionMessage>, outbound: Outbound) -> Self {
        Self { actor, outbound }
    }

    /// What a run said to a lease the fleet does not know.
    pub fn unheld(&self, reply: Reply) {
        if let Reply::Reconciled { revoke, .. } = reply {
            for lease in revoke {
                let reason = StopReason::Revoked;
                self.outbound.say(CoordinatorSays::Stop { lease, reason, now: true });
            }
        }
    }

    /// How many runs will say something to the inventory, and what no run knows.
    pub fn expect(&self, runs: usize, unknown: Vec<Lease>) {
        self.tell(SessionMessage::Expect { runs, unknown });
    }

    fn tell(&self, message: SessionMessage) {
        if self.actor.cast(message).is_err() {
            tracing::debug!("a session ended before it was answered");
        }
    }
}

/// A report under way. It is answered once: with `retry_later` if nobody comes to it, because the
/// run's actor died with the report in its mailbox.
pub struct Reported {
    outbound: Outbound,
    lease: Lease,
    number: u32,
    /// Gone once it is answered.
    place: Option<OwnedSemaphorePermit>,
}

impl Reported {
    /// The report of this number on this lease, which takes a place among those under way.
    pub fn new(outbound: Outbound, report: &Report, place: OwnedSemaphorePermit) -> Self {
        let (lease, number) = (report.lease.clone(), report.number);
        Self { outbound, lease, number, place: Some(place) }
    }

    /// Says what became of it.
    pub fn answer(mut self, answer: Answer, anchor: Option<Anchor>) {
        self.say(answer, anchor);
    }

    fn say(&mut self, answer: Answer, anchor: Option<Anchor>) {
        let Some(place) = self.place.take() else { return };
        let (lease, number) = (self.lease.clone(), self.number);
        let says = CoordinatorSays::Answered { lease, number, answer, anchor };
        self.outbound.tell(Told { says, place: Some(place) });
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        self.say(Answer::RetryLater, None);
    }
}

/// One run's part of a worker's inventory, under way. A run that does not speak, because its actor
/// died or its journal refused, ends the session: the worker dials again and is asked about anew.
pub struct Inquiry {
    /// Gone once it is answered.
    session: Option<SessionHandle>,
}

impl Inquiry {
    /// An inquiry for this session.
    pub fn new(session: SessionHandle) -> Self {
        Self { session: Some(session) }
    }

    /// Says what the run said.
    pub fn answer(mut self, reply: Reply) {
        match reply {
            Reply::Reconciled { keep, revoke } => {
                if let Some(session) = self.session.take() {
                    session.tell(SessionMessage::Reconciled { keep, revoke });
                }
            }
            Reply::Rejected(_)
            | Reply::Done { .. }
            | Reply::Leased(_)
            | Reply::Declined
            | Reply::Answered(_) => {}
        }
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            session.outbound.hang_up();
        }
    }
}

/// What a session is told.
pub enum SessionMessage {
    /// The worker said something; its place in the queue comes with it.
    Heard(Box<WorkerSays>, OwnedSemaphorePermit),
    /// The stream ended.
    Ended,
    /// See [`SessionHandle::expect`].
    Expect {
        /// How many.
        runs: usize,
        /// Leases no run knows.
        unknown: Vec<Lease>,
    },
    /// What one run said to the worker's inventory.
    Reconciled {
        /// What goes on.
        keep: Vec<Lease>,
        /// What is to stop.
        revoke: Vec<Lease>,
    },
}

/// The actor.
pub struct SessionActor;

/// What it is started with.
pub struct Arguments {
    /// Whom it may tell.
    pub house: House,
    /// What the worker said first.
    pub hello: Hello,
    /// The way out.
    pub outbound: Outbound,
}

/// What it owns.
pub struct State {
    house: House,
    worker: WorkerId,
    instance: InstanceId,
    outbound: Outbound,
    said_goodbye: bool,
    /// Runs that have not yet said what to keep; `None` until it is known how many there are.
    awaited: Option<usize>,
    heard_from: usize,
}

impl Actor for SessionActor {
    type Msg = SessionMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _myself: ActorRef<SessionMessage>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let Arguments { house, hello, outbound } = arguments;
        outbound.say(CoordinatorSays::Welcome(Welcome {
            protocol: PROTOCOL.min(hello.protocol_max),
            beat_ms: house.limits.beat_ms,
            lease_ms: house.limits.lease_ms,
            anchor: house.store.tip(),
        }));
        let (worker, instance) = (hello.facts.worker.clone(), hello.facts.instance.clone());
        Ok(State {
            house,
            worker,
            instance,
            outbound,
            said_goodbye: false,
            awaited: None,
            heard_from: 0,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMessage>,
        message: SessionMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionMessage::Heard(says, place) => state.heard(*says, place)?,
            SessionMessage::Ended => state.ended(&myself)?,
            SessionMessage::Expect { runs, unknown } => state.expect(runs, unknown)?,
            SessionMessage::Reconciled { keep, revoke } => state.reconciled(keep, revoke)?,
        }
        Ok(())
    }
}

impl State {
    fn heard(
        &mut self,
        says: WorkerSays,
        place: OwnedSemaphorePermit,
    ) -> Result<(), ActorProcessingErr> {
        match says {
            WorkerSays::Hello(_) => {
                tracing::warn!(worker = %self.worker, "said hello twice; hanging up");
                self.outbound.hang_up();
            }
            WorkerSays::Beat(beat) => self.house.fleet.cast(FleetMessage::Beat {
                worker: self.worker.clone(),
                instance: self.instance.clone(),
                beat: Box::new(beat),
                place,
            })?,
            WorkerSays::Report(report) => self.report(*report, place)?,
            WorkerSays::Goodbye { reason } => {
                tracing::info!(worker = %self.worker, %reason, "a worker leaves");
                self.said_goodbye = true;
            }
        }
        Ok(())
    }

    fn report(
        &self,
        report: Report,
        place: OwnedSemaphorePermit,
    ) -> Result<(), ActorProcessingErr> {
        let run = report.lease.run.clone();
        let reply = ReplyTo::Worker(Reported::new(self.outbound.clone(), &report, place));
        let by = By::Worker(self.worker.to_string());
        let asked = Asked { by, verb: Verb::Report(Box::new(report)), reply };
        self.house.runs.cast(RunsMessage::Tell { run, asked: Box::new(asked) })?;
        Ok(())
    }

    fn expect(&mut self, runs: usize, unknown: Vec<Lease>) -> Result<(), ActorProcessingErr> {
        self.awaited = Some(runs);
        for lease in unknown {
            self.revoke(lease);
        }
        self.open_if_reconciled()
    }

    fn reconciled(
        &mut self,
        keep: Vec<Lease>,
        revoke: Vec<Lease>,
    ) -> Result<(), ActorProcessingErr> {
        self.heard_from += 1;
        for lease in keep {
            self.outbound.say(CoordinatorSays::Keep(lease));
        }
        for lease in revoke {
            self.revoke(lease);
        }
        self.open_if_reconciled()
    }

    fn revoke(&self, lease: Lease) {
        let reason = StopReason::Revoked;
        self.outbound.say(CoordinatorSays::Stop { lease, reason, now: true });
    }

    /// Once every run has spoken, the worker's slots are open and runs tell it what they owe it.
    fn open_if_reconciled(&mut self) -> Result<(), ActorProcessingErr> {
        if self.awaited == Some(self.heard_from) {
            let (worker, instance) = (self.worker.clone(), self.instance.clone());
            self.house.fleet.cast(FleetMessage::Reconciled { worker: worker.clone(), instance })?;
            self.house.runs.cast(RunsMessage::Attached { worker })?;
        }
        Ok(())
    }

    fn ended(&self, myself: &ActorRef<SessionMessage>) -> Result<(), ActorProcessingErr> {
        self.house.fleet.cast(FleetMessage::Detached {
            worker: self.worker.clone(),
            goodbye: self.said_goodbye,
            session: myself.get_id().pid(),
        })?;
        myself.stop(None);
        Ok(())
    }
}

/// The places for reports under way of one worker.
pub fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(INBOUND))
}

//! The durable outbox: one thread owns the log and the state it folds to; everybody else asks it.
//!
//! A lease is on the disk before anything is done for it, a report before it is sent. What is owed
//! is shown to all as one value (`Owed`). Not here: what may be accepted or forgotten; the core
//! decides. When the log fails, the thread ends and everybody hears `Gone`: never a second fsync.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ganger_log::{OpenError, Options, ReadError};
use ganger_shared::link::{Anchor, Answer, Fact, Lease};
use ganger_shared::spec::Assignment;
use ganger_worker_core::outbox::{self as core, NotAccepted, NotReported, Unanswered};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

mod keeper;
mod reserve;

use keeper::Keeper;

/// Orders that may wait for the thread; whoever orders more waits.
const ORDERS_WAITING_MAX: usize = 256;
/// A segment of the log; small, so that answered reports leave the disk soon.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Why an outbox could not be opened.
#[derive(Debug, Error)]
pub enum OpenOutboxError {
    /// The log could not be opened.
    #[error("open the outbox")]
    Log(#[from] OpenError),
    /// The log could not be read.
    #[error("read the outbox")]
    Read(#[from] ReadError),
    /// A line is whole but no record that this build knows.
    #[error("read the outbox: line {log_seq} in {} is no record of this build", dir.display())]
    Record {
        /// The outbox's directory.
        dir: PathBuf,
        /// The line.
        log_seq: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Its thread could not be started.
    #[error("start the outbox's thread")]
    Thread(#[source] std::io::Error),
}

/// The outbox does not answer any more: its disk failed. The worker must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write the outbox: it has failed")]
pub struct Gone;

/// Why a lease was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AcceptError {
    /// It may not begin.
    #[error(transparent)]
    Not(#[from] NotAccepted),
    /// The disk is so full that only the reports of what runs are still written.
    #[error("accept a lease: the disk is full")]
    DiskFull,
    /// The outbox has failed.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// Why a fact was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportError {
    /// Its lease is not live.
    #[error(transparent)]
    Not(#[from] NotReported),
    /// The outbox has failed.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// What is owed at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owed {
    /// Unanswered reports in the order they were made.
    pub unanswered: Vec<Arc<Unanswered>>,
    /// Leases accepted and not ended.
    pub live: Vec<Lease>,
    /// Leases ended here whose reports are not all answered.
    pub finished: Vec<Lease>,
    /// The furthest place in a journal that was shown.
    pub seen: Option<Anchor>,
    /// No lease is taken at present.
    pub full: bool,
    /// More waits than a coordinator that answers can have caused.
    pub overfull: bool,
}

/// What the thread is asked to do.
enum Order {
    Accept(Box<Assignment>, oneshot::Sender<Result<(), AcceptError>>),
    Report(Lease, Box<Fact>, oneshot::Sender<Result<(), NotReported>>),
    Decline(Lease, Box<Fact>, oneshot::Sender<bool>),
    Answered(Lease, u32, Answer, Option<Anchor>),
    Shown(Anchor),
}

/// A lease on its way to the disk.
#[derive(Debug)]
pub struct Accepting {
    answer: oneshot::Receiver<Result<(), AcceptError>>,
}

impl Accepting {
    /// Waits until the lease is held, or is not; may be dropped and called again until it returns.
    pub async fn accepted(&mut self) -> Result<(), AcceptError> {
        (&mut self.answer).await.map_err(|_| Gone)?
    }
}

/// A way to the outbox; cheap to clone. The thread ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Outbox {
    orders: mpsc::Sender<Order>,
    owed: watch::Receiver<Arc<Owed>>,
}

impl Outbox {
    /// Opens the outbox in `dir`, or makes it, and starts its thread.
    ///
    /// Blocks on the disk. Leases that are live in what it returns were held by a process that is
    /// no more.
    pub fn open(dir: &Path, reports_max: usize) -> Result<Self, OpenOutboxError> {
        let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
        Self::open_with(dir, reports_max, options)
    }

    pub(crate) fn open_with(
        dir: &Path,
        reports_max: usize,
        options: Options,
    ) -> Result<Self, OpenOutboxError> {
        let (keeper, owed) = Keeper::open(dir, reports_max, options)?;
        let (orders, waiting) = mpsc::channel(ORDERS_WAITING_MAX);
        std::thread::Builder::new()
            .name("outbox".to_owned())
            .spawn(move || keeper.keep(waiting))
            .map_err(OpenOutboxError::Thread)?;
        Ok(Self { orders, owed })
    }

    /// Holds a lease: durable, and its `Accepted` reported, when this returns.
    pub async fn accept(&self, assignment: Assignment) -> Result<(), AcceptError> {
        self.begin_accept(assignment).await?.accepted().await
    }

    /// The same in two steps, so that many leases are held by one write to the disk.
    pub async fn begin_accept(&self, assignment: Assignment) -> Result<Accepting, Gone> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Accept(Box::new(assignment), reply)).await?;
        Ok(Accepting { answer })
    }

    /// Reports a fact about a live lease: durable when this returns.
    pub async fn report(&self, lease: &Lease, fact: Fact) -> Result<(), ReportError> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Report(lease.clone(), Box::new(fact), reply)).await?;
        Ok(answer.await.map_err(|_| Gone)??)
    }

    /// Ends a lease that never began here; false where something is known of it.
    pub async fn decline(&self, lease: &Lease, fact: Fact) -> Result<bool, Gone> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Decline(lease.clone(), Box::new(fact), reply)).await?;
        answer.await.map_err(|_| Gone)
    }

    /// Takes an answer and the place in the journal that came with it; does not wait for the disk:
    /// what is forgotten by a crash is answered again.
    pub async fn answered(
        &self,
        lease: Lease,
        number: u32,
        answer: Answer,
        anchor: Option<Anchor>,
    ) -> Result<(), Gone> {
        self.order(Order::Answered(lease, number, answer, anchor)).await
    }

    /// Remembers a place in the coordinator's journal, if it is further than any before.
    pub async fn shown(&self, anchor: Anchor) -> Result<(), Gone> {
        self.order(Order::Shown(anchor)).await
    }

    /// What is owed, now and as it changes. The sender goes with the thread.
    pub fn owed(&self) -> watch::Receiver<Arc<Owed>> {
        self.owed.clone()
    }

    /// Ends when the outbox has failed.
    pub async fn failed(&self) -> Gone {
        let mut owed = self.owed.clone();
        while owed.changed().await.is_ok() {}
        Gone
    }

    /// Gives this way to the outbox up and waits until its thread has let go of the log, which it
    /// does once everybody else has given theirs up too.
    pub async fn closed(self) {
        let Self { orders, mut owed } = self;
        drop(orders);
        while owed.changed().await.is_ok() {}
    }

    async fn order(&self, order: Order) -> Result<(), Gone> {
        self.orders.send(order).await.map_err(|_| Gone)
    }
}

/// What the state owes, as it is shown.
fn owed(state: &core::Outbox, tight: bool) -> Owed {
    Owed {
        unanswered: state.unanswered(),
        live: state.live(),
        finished: state.finished(),
        seen: state.seen().cloned(),
        full: tight || state.is_full(),
        overfull: state.is_overfull(),
    }
}

#[cfg(test)]
mod tests;

//! The worker as a whole. Policy: one for all. When the attempts or the link die by a defect, or the
//! outbox fails, the process ends with an error and whoever keeps it running starts it anew; a
//! restart is the same fold of the same outbox. Nothing is restarted inside.
//!
//! Not here: what the parts do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::time::DurationMs;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::attempts::{self, Attempts, AttemptsMessage};
use crate::config::{Config, InvalidConfig};
use crate::identity::IdentityError;
use crate::link::{self, Link, LinkError, LinkMessage};
use crate::outbox::{Gone, OpenOutboxError, Outbox};
use crate::process::SweepError;
use crate::time::Timer;

mod leave;
mod start;

use start::Started;

/// How long stopped parts may hold on to what they had.
const LETTING_GO: Duration = Duration::from_secs(5);

/// Why a worker ended that was not asked to.
#[derive(Debug, Error)]
pub enum RunError {
    /// It was told what cannot be.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// It does not know who it is, or somebody else is it.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its directory could not be made ready.
    #[error("make {} ready", path.display())]
    Directory {
        /// What.
        path: std::path::PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What an earlier process left behind could not be swept up.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// Its outbox could not be opened.
    #[error(transparent)]
    OpenOutbox(#[from] OpenOutboxError),
    /// Its outbox failed.
    #[error(transparent)]
    Outbox(#[from] Gone),
    /// The coordinator refused it for good.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A part of it died by a defect.
    #[error("run the worker: its {part} died: {why}")]
    Died {
        /// Which part.
        part: &'static str,
        /// As it was told.
        why: String,
    },
}

/// What the root hears.
pub enum RootMessage {
    /// End in good order.
    Leave,
    /// The coordinator refused us for good.
    LinkRefused(LinkError),
    /// The outbox has failed.
    OutboxFailed(Gone),
    /// Everything that had to be said is said.
    Farewell,
}

/// The actor.
struct Root;

struct Arguments {
    started: Started,
    /// Where the end is told.
    ended: oneshot::Sender<Result<(), RunError>>,
}

struct State {
    attempts: ActorRef<AttemptsMessage>,
    link: ActorRef<LinkMessage>,
    outbox: Outbox,
    leave_ms: DurationMs,
    ended: Option<oneshot::Sender<Result<(), RunError>>>,
    /// Tells when the outbox fails.
    _watch: AbortOnDropHandle<()>,
    leaving: Option<AbortOnDropHandle<()>>,
}

/// Runs a worker until `shutdown` comes, or it cannot go on.
///
/// On `shutdown` its attempts are ended and reported, then it says goodbye.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), RunError> {
    config.check()?;
    let started = start::start(Arc::new(config)).await?;
    // Held until all is over: the next process on this directory finds nothing of us alive.
    let _identity = Arc::clone(&started.identity);
    report_orphans(&started.outbox).await?;
    let outbox = started.outbox.clone();
    let (ended, mut end) = oneshot::channel();
    let arguments = Arguments { started, ended };
    let died = |why: String| RunError::Died { part: "root", why };
    let (root, handle) =
        Actor::spawn(None, Root, arguments).await.map_err(|error| died(error.to_string()))?;
    let early = tokio::select! {
        () = shutdown => None,
        result = &mut end => Some(result),
    };
    let result = if let Some(result) = early {
        result
    } else {
        let _ = root.cast(RootMessage::Leave);
        end.await
    };
    let joined = handle.await;
    // Parts that were stopped let go of it a moment later; the next worker on this directory, even
    // one in this process, must find it free.
    if tokio::time::timeout(LETTING_GO, outbox.closed()).await.is_err() {
        tracing::warn!("a part of the worker still holds the outbox");
    }
    match (result, joined) {
        (Ok(result), _) => result,
        (Err(_), joined) => Err(died(format!("it ended without a word ({joined:?})"))),
    }
}

/// Leases of a process that is no more: its attempts ended with it (design section 6). Their
/// processes were swept before; whatever they had reported is still in the outbox and goes first.
async fn report_orphans(outbox: &Outbox) -> Result<(), Gone> {
    let orphans = outbox.owed().borrow().live.clone();
    for lease in orphans {
        tracing::warn!(run = %lease.run, work = %lease.work, "a restart ended this");
        let failure = Failure::new(
            FailureClass::WorkerRestarted,
            "the worker's process was started anew, which ends its attempts",
        );
        match outbox.report(&lease, attempts::failed(failure)).await {
            Ok(()) | Err(crate::outbox::ReportError::Not(_)) => {}
            Err(crate::outbox::ReportError::Gone(gone)) => return Err(gone),
        }
    }
    Ok(())
}

impl Actor for Root {
    type Msg = RootMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let Arguments { started, ended } = arguments;
        let Started { identity: _, outbox, site, facts, attached } = started;
        let (timer, board) = (Timer::start(), watch::Sender::default());
        let seen = board.subscribe();
        let (outbox_too, config) = (outbox.clone(), Arc::clone(&site.config));
        let leave_ms = config.bounds.leave_ms;
        let begin = attempts::Arguments { site, outbox: outbox.clone(), timer, board };
        let (attempts, _) =
            Attempts::spawn_linked(None, Attempts, begin, myself.get_cell()).await?;
        let dial = link::Arguments {
            config,
            facts,
            outbox: outbox.clone(),
            attempts: attempts.clone(),
            board: seen,
            attached,
            timer,
            root: myself.clone(),
        };
        let (link, _) = Link::spawn_linked(None, Link, dial, myself.get_cell()).await?;
        let watch = tokio::spawn(async move {
            let gone = outbox_too.failed().await;
            let _ = myself.cast(RootMessage::OutboxFailed(gone));
        });
        let (ended, leaving) = (Some(ended), None);
        Ok(State {
            attempts,
            link,
            outbox,
            leave_ms,
            ended,
            _watch: AbortOnDropHandle::new(watch),
            leaving,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: RootMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RootMessage::Leave => state.leave(&myself),
            RootMessage::LinkRefused(error) => state.end(&myself, Err(error.into())),
            RootMessage::OutboxFailed(gone) => state.end(&myself, Err(gone.into())),
            RootMessage::Farewell => state.end(&myself, Ok(())),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                state.died(&myself, cell.get_id(), "it ended".to_owned());
            }
            SupervisionEvent::ActorFailed(cell, why) => {
                state.died(&myself, cell.get_id(), why.to_string());
            }
        }
        Ok(())
    }
}

impl State {
    /// In a task, so that the death of a part is heard while we wait for its farewell.
    fn leave(&mut self, myself: &ActorRef<RootMessage>) {
        let (attempts, link) = (self.attempts.clone(), self.link.clone());
        let farewell = leave::leave(attempts, link, self.outbox.clone(), self.leave_ms);
        let root = myself.clone();
        self.leaving = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            farewell.await;
            let _ = root.cast(RootMessage::Farewell);
        })));
    }

    fn died(&mut self, root: &ActorRef<RootMessage>, id: ractor::ActorId, why: String) {
        let part = if id == self.link.get_id() { "link" } else { "attempts" };
        self.end(root, Err(RunError::Died { part, why }));
    }

    /// The first end is the end; the children go with us.
    fn end(&mut self, myself: &ActorRef<RootMessage>, result: Result<(), RunError>) {
        if let Some(ended) = self.ended.take() {
            // `run` waits for it; a dropped `run` needs nothing.
            let _ = ended.send(result);
        }
        myself.stop(None);
    }
}

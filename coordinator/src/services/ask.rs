//! Asking the actors from a call of the API: who is gone is unavailable, who refuses says why.
//!
//! Not here: what any one service asks for.

use ganger_coordinator_core::run::{Call, Reply, Verb};
use ganger_proto::{read, status};
use ganger_shared::digest::Digest;
use ganger_shared::ids::{IdempotencyKey, RunId};
use ganger_shared::rejection::Rejection;
use ganger_shared::view::{RunRow, RunView};
use ganger_telemetry::context;
use ganger_telemetry::names::span;
use prost::Message;
use ractor::ActorRef;
use tokio::sync::oneshot;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tracing::Span;

use super::{Api, Principal};
use crate::fleet::FleetMessage;
use crate::run::{Asked, Outcome, ReplyTo, RunMessage};
use crate::runs::RunsMessage;

/// Nobody answers any more: the caller dials again.
pub(super) fn gone() -> Status {
    status::plain(Code::Unavailable, status::DRAINING, "the coordinator is ending")
}

/// A defect of ours, or of the disk below us.
pub(super) fn internal(what: &dyn std::fmt::Display) -> Status {
    status::plain(Code::Internal, status::INTERNAL, &what.to_string())
}

/// Work on files, where blocking is allowed.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, Status>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(|error| internal(&error))
}

/// Sends a message that carries the port of its answer, and waits for that.
pub(super) async fn ask<M, T>(
    actor: &ActorRef<M>,
    message: impl FnOnce(oneshot::Sender<T>) -> M,
) -> Result<T, Status>
where
    M: ractor::Message,
{
    let (port, answer) = oneshot::channel();
    actor.cast(message(port)).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())
}

impl Api {
    /// Asks the actor of all runs.
    pub(super) async fn ask_runs<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> RunsMessage,
    ) -> Result<T, Status> {
        ask(&self.house.runs, message).await
    }

    /// Asks the fleet.
    pub(super) async fn ask_fleet<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> FleetMessage,
    ) -> Result<T, Status> {
        ask(&self.house.fleet, message).await
    }

    /// The actor of a run, by its id or the beginning of it.
    pub(super) async fn find(&self, name: &str) -> Result<ActorRef<RunMessage>, Status> {
        let name = name.to_owned();
        let found = self.ask_runs(|port| RunsMessage::Find { name, port }).await?;
        found.map_err(|rejection| status::of(&rejection))
    }

    /// A run, whole.
    pub(super) async fn view(&self, name: &str) -> Result<RunView, Status> {
        let actor = self.find(name).await?;
        view_of(&actor, name).await
    }

    /// Gives a run a command for a caller, and waits until it is written down.
    pub(super) async fn command(
        &self,
        principal: &Principal,
        name: &str,
        verb: Verb,
    ) -> Result<Done, Status> {
        let actor = self.find(name).await?;
        let by = principal.actor();
        let outcome = ask(&actor, |port| {
            RunMessage::Ask(Box::new(Asked { by, verb, reply: ReplyTo::Caller(port) }))
        });
        done(outcome.await?)
    }
}

/// A run as its actor has it.
pub(super) async fn view_of(actor: &ActorRef<RunMessage>, name: &str) -> Result<RunView, Status> {
    ask(actor, RunMessage::View).await?.ok_or_else(|| unknown(name))
}

/// A run's row as its actor has it.
pub(super) async fn row_of(actor: &ActorRef<RunMessage>, name: &str) -> Result<RunRow, Status> {
    ask(actor, RunMessage::Row).await?.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Status {
    status::of(&Rejection::UnknownRun { run: name.to_owned() })
}

/// A command that was carried out.
pub(super) struct Done {
    /// The run it was given to.
    pub run: RunId,
    /// The run's sequence after it.
    pub sequence: u64,
    /// It was carried out before, under the same key.
    pub replayed: bool,
}

/// What a run answered to a caller's command.
pub(super) fn done(outcome: Outcome) -> Result<Done, Status> {
    let Outcome { run, reply } = outcome;
    match reply {
        Reply::Done { sequence, replayed } => Ok(Done { run, sequence, replayed }),
        Reply::Rejected(rejection) => Err(status::of(&rejection)),
        Reply::Leased(_) | Reply::Declined | Reply::Answered(_) | Reply::Reconciled { .. } => {
            Err(internal(&format!("run {run} answered a caller as if it were a worker")))
        }
    }
}

/// What makes a call safe to repeat. `body` is the request without its key.
pub(super) fn call<M: Message>(
    method: &str,
    key: &str,
    body: &M,
    expected: Option<u64>,
) -> Result<Call, Status> {
    let key: IdempotencyKey = read::text("idempotency_key", key)?;
    Ok(Call { key, body: body_digest(method, body), expected })
}

/// The digest of a request's body; the method is part of it, for requests that look alike.
pub(super) fn body_digest<M: Message>(method: &str, body: &M) -> Digest {
    let mut bytes = method.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(body.encode_to_vec());
    Digest::of(&bytes)
}

/// What is in the schema and not built.
pub(super) fn not_yet(what: &'static str) -> Status {
    status::of(&Rejection::NotSupportedYet { what })
}

/// The live span of a call, below the caller's.
pub(super) fn live(method: &'static str, metadata: &MetadataMap) -> Span {
    let span = tracing::info_span!(span::SERVER_CALL, otel.kind = "server", rpc.method = method);
    if let Err(error) = context::adopt_caller(&span, metadata) {
        tracing::debug!(%error, method, "a call's span stands by itself");
    }
    span
}

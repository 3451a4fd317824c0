//! The workers' door: one stream each, from `Hello` to `Goodbye`.
//!
//! Every end without a `Goodbye` is a loss of the connection, never of the work.

use std::time::Duration;

use ganger_proto::{status, v1};
use ganger_shared::actor::Role;
use ganger_shared::link::{CoordinatorSays, Hello, PROTOCOL, PROTOCOL_MIN, WorkerSays};
use ractor::ActorRef;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, Streaming};

use super::ask::blocking;
use super::{Api, principal};
use crate::fleet::FleetMessage;
use crate::journal::Standing;
use crate::session::{Outbound, SessionMessage, Told, places};

/// How long a stream may take to say `Hello`.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

type ToWorker = Result<v1::CoordinatorMessage, Status>;

/// The service.
pub struct Link {
    api: Api,
}

impl Link {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api }
    }
}

#[tonic::async_trait]
impl v1::link_service_server::LinkService for Link {
    type AttachStream = ReceiverStream<ToWorker>;

    async fn attach(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        principal(request.extensions(), Role::Worker)?;
        let mut inbound = request.into_inner();
        let hello = hello(&mut inbound).await?;
        speaks_with(&hello)?;
        self.not_behind(&hello).await?;
        let ended = CancellationToken::new();
        let (outbound, read) = Outbound::new(ended.clone());
        let session = self.attach_to_fleet(hello, outbound.clone()).await?;
        let (send, receive) = mpsc::channel(1);
        self.api.streams.spawn(pump_out(read, send, ended.clone()));
        let ending = self.api.ending.clone();
        self.api.streams.spawn(pump_in(inbound, session, outbound, (ended, ending)));
        Ok(Response::new(ReceiverStream::new(receive)))
    }
}

impl Link {
    /// A journal that is shorter than what a worker was shown has lost something.
    async fn not_behind(&self, hello: &Hello) -> Result<(), Status> {
        let Some(seen) = &hello.seen else { return Ok(()) };
        let (store, anchor) = (self.api.house.store.clone(), seen.clone());
        let standing = blocking(move || store.check_anchor(&anchor))
            .await?
            .map_err(|error| status::plain(Code::Internal, "journal", &error.to_string()))?;
        let fine = match standing {
            Standing::Ahead | Standing::Same => true,
            Standing::Behind | Standing::Forked => self.api.config.accept_loss,
        };
        if fine {
            return Ok(());
        }
        let why = format!(
            "journal_behind: worker `{}` has seen entry {} of store {}, this journal does not hold it; \
             start with --accept-loss to go on without what is missing",
            hello.facts.name, seen.log_seq, seen.store_id
        );
        // The first word is enough; the coordinator ends.
        let _ = self.api.fatal.try_send(why.clone());
        Err(status::plain(Code::FailedPrecondition, "journal_behind", &why))
    }

    async fn attach_to_fleet(
        &self,
        hello: Hello,
        outbound: Outbound,
    ) -> Result<ActorRef<SessionMessage>, Status> {
        let (port, answer) = oneshot::channel();
        let message = FleetMessage::Attach { hello: Box::new(hello), outbound, port };
        let gone = || status::plain(Code::Unavailable, "ending", "the coordinator is ending");
        self.api.house.fleet.cast(message).map_err(|_| gone())?;
        answer
            .await
            .map_err(|_| gone())?
            .map_err(|why| status::plain(Code::FailedPrecondition, "worker_refused", &why))
    }
}

async fn hello(inbound: &mut Streaming<v1::WorkerMessage>) -> Result<Hello, Status> {
    let late = || status::plain(Code::DeadlineExceeded, "no_hello", "no Hello within 10 s");
    let first =
        tokio::time::timeout(HELLO_WITHIN, inbound.message()).await.map_err(|_| late())??;
    let first = first.ok_or_else(|| {
        status::plain(Code::InvalidArgument, "no_hello", "the stream had no Hello")
    })?;
    match WorkerSays::try_from(first)? {
        WorkerSays::Hello(hello) => Ok(*hello),
        WorkerSays::Beat(_) | WorkerSays::Report(_) | WorkerSays::Goodbye { .. } => {
            Err(status::plain(Code::InvalidArgument, "no_hello", "the first message is Hello"))
        }
    }
}

fn speaks_with(hello: &Hello) -> Result<(), Status> {
    if hello.protocol_min <= PROTOCOL && hello.protocol_max >= PROTOCOL_MIN {
        return Ok(());
    }
    let why = format!(
        "worker `{}` ({}) speaks protocol {} to {}, this coordinator {PROTOCOL_MIN} to {PROTOCOL}; \
         use builds at most one release apart",
        hello.facts.name, hello.facts.build, hello.protocol_min, hello.protocol_max
    );
    Err(status::plain(Code::FailedPrecondition, "protocol_mismatch", &why))
}

/// From the session's bounded queue onto the stream.
async fn pump_out(
    mut read: mpsc::Receiver<Told>,
    send: mpsc::Sender<ToWorker>,
    ended: CancellationToken,
) {
    loop {
        let told = tokio::select! {
            biased;
            () = ended.cancelled() => break,
            told = read.recv() => told,
        };
        let Some(Told { says, place: _until_sent }) = told else { break };
        if send.send(Ok(says.into())).await.is_err() {
            ended.cancel();
            break;
        }
    }
    // What was said before the end, a Goodbye above all, still goes out.
    while let Ok(told) = read.try_recv() {
        if send.send(Ok(told.says.into())).await.is_err() {
            break;
        }
    }
}

/// From the stream to the session; a place in the queue is taken first, so that a worker cannot
/// fill a mailbox.
async fn pump_in(
    mut inbound: Streaming<v1::WorkerMessage>,
    session: ActorRef<SessionMessage>,
    outbound: Outbound,
    (ended, ending): (CancellationToken, CancellationToken),
) {
    let places = places();
    loop {
        let place_and_message = async {
            let place = places.clone().acquire_owned().await.expect("nobody closes it");
            (place, inbound.message().await)
        };
        let (place, message) = tokio::select! {
            biased;
            () = ended.cancelled() => break,
            () = ending.cancelled() => {
                let reason = "the coordinator is ending".to_owned();
                outbound.say(CoordinatorSays::Goodbye { reason });
                break;
            }
            both = place_and_message => both,
        };
        match message.map(|message| message.map(WorkerSays::try_from)) {
            Ok(Some(Ok(says))) => {
                if session.cast(SessionMessage::Heard(Box::new(says), place)).is_err() {
                    break;
                }
            }
            Ok(Some(Err(malformed))) => {
                tracing::warn!(%malformed, "a worker said what cannot be read; hanging up");
                break;
            }
            Ok(None) | Err(_) => break,
        }
    }
    if session.cast(SessionMessage::Ended).is_err() {
        tracing::debug!("the session ended before its stream");
    }
    ended.cancel();
}

//! The coordinator's side of the link, played by a test word by word over a real gRPC server.
//!
//! It decides nothing: each connection is handed to the test, which hears and says what it wants.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use ganger_proto::{auth, server, v1};
use ganger_shared::digest::Digest;
use ganger_shared::link::{
    Anchor, Answer, Beat, CoordinatorSays, Fact, Hello, PROTOCOL, Report, Welcome, WorkerSays,
};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use crate::artifacts::Artifacts;

/// The token a worker must show.
pub const TOKEN: &str = "the-token";
/// A wait for something that will come; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A listening coordinator.
pub struct Coordinator {
    pub address: String,
    pub artifacts: Artifacts,
    connections: mpsc::Receiver<Connection>,
    refused: watch::Receiver<u32>,
    server: JoinHandle<()>,
}

/// One attached worker.
pub struct Connection {
    inbound: Streaming<v1::WorkerMessage>,
    out: mpsc::Sender<Result<v1::CoordinatorMessage, Status>>,
    /// The beats that came while something else was waited for.
    pub beats: Vec<Beat>,
    anchors: u64,
}

struct Link {
    connections: mpsc::Sender<Connection>,
    refused: watch::Sender<u32>,
}

type Said = Pin<Box<dyn Stream<Item = Result<v1::CoordinatorMessage, Status>> + Send>>;

#[tonic::async_trait]
impl v1::link_service_server::LinkService for Link {
    type AttachStream = Said;

    async fn attach(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Said>, Status> {
        if auth::token(request.metadata()) != Some(TOKEN) {
            self.refused.send_modify(|refused| *refused += 1);
            return Err(ganger_proto::status::plain(
                tonic::Code::Unauthenticated,
                ganger_proto::status::UNAUTHENTICATED,
                "this token is not known here",
            ));
        }
        let (out, said) = mpsc::channel(64);
        let inbound = request.into_inner();
        let connection = Connection { inbound, out, beats: vec![], anchors: 0 };
        // A test that does not take its connections wants none.
        let _ = self.connections.try_send(connection);
        Ok(Response::new(Box::pin(ReceiverStream::new(said))))
    }
}

impl Coordinator {
    /// Listens on a free port, or on the one of an address that was used before.
    pub async fn listen(dir: &Path, address: Option<&str>) -> Self {
        let wanted = address.map_or("127.0.0.1:0", |address| address.trim_start_matches("http://"));
        let listener = TcpListener::bind(wanted).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (connections, taken) = mpsc::channel(8);
        let artifacts = Artifacts::new(dir);
        let (count, refused) = watch::channel(0);
        let server = tonic::transport::Server::builder()
            .add_service(server::link(Link { connections, refused: count }))
            .add_service(server::artifacts(artifacts.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self { address, artifacts, connections: taken, refused, server }
    }

    /// The next connection.
    pub async fn connection(&mut self) -> Connection {
        within(self.connections.recv()).await.unwrap()
    }

    /// Waits until a token was refused.
    pub async fn refused(&mut self) {
        self.refused.wait_for(|refused| *refused > 0).await.unwrap();
    }

    /// The next connection, after its greeting.
    pub async fn attached(&mut self) -> (Connection, Hello) {
        let mut connection = self.connection().await;
        let hello = connection.hello().await;
        connection.say(CoordinatorSays::Welcome(welcome())).await;
        (connection, hello)
    }

    /// Is gone, with all its connections, as if its process were killed.
    pub async fn vanish(self) {
        self.server.abort();
        let _ = self.server.await;
    }
}

/// Beats of 50 ms and leases of one second.
pub fn welcome() -> Welcome {
    Welcome {
        protocol: PROTOCOL,
        beat_ms: DurationMs(50),
        lease_ms: DurationMs(1_000),
        anchor: anchor(1),
    }
}

pub fn anchor(log_seq: u64) -> Anchor {
    Anchor { store_id: "store".to_owned(), generation: 0, log_seq, hash: Digest::of(b"") }
}

impl Connection {
    /// Says one thing.
    pub async fn say(&mut self, says: CoordinatorSays) {
        within(self.out.send(Ok(says.into()))).await.unwrap();
    }

    /// Ends the connection with a status.
    pub async fn refuse(self, status: Status) {
        self.out.send(Err(status)).await.unwrap();
    }

    pub async fn assign(&mut self, assignment: &Assignment) {
        self.say(CoordinatorSays::Assign(Box::new(assignment.clone()))).await;
    }

    /// The next thing said; `None` at the end of the stream.
    pub async fn hear(&mut self) -> Option<WorkerSays> {
        let message = within(self.inbound.message()).await.ok()??;
        Some(WorkerSays::try_from(message).unwrap())
    }

    /// The next thing said that is no beat.
    pub async fn hear_word(&mut self) -> Option<WorkerSays> {
        let word = async {
            loop {
                match self.hear().await {
                    Some(WorkerSays::Beat(beat)) => self.beats.push(beat),
                    other => return other,
                }
            }
        };
        within(word).await
    }

    pub async fn hello(&mut self) -> Hello {
        match self.hear().await {
            Some(WorkerSays::Hello(hello)) => *hello,
            other => panic!("a hello comes first, not {other:?}"),
        }
    }

    pub async fn beat(&mut self) -> Beat {
        match self.hear().await {
            Some(WorkerSays::Beat(beat)) => beat,
            other => panic!("a beat was waited for, {other:?} came"),
        }
    }

    /// The next report, not answered.
    pub async fn report(&mut self) -> Report {
        match self.hear_word().await {
            Some(WorkerSays::Report(report)) => *report,
            other => panic!("a report was waited for, {other:?} came"),
        }
    }

    pub async fn answer(&mut self, report: &Report, answer: Answer) {
        self.anchors += 1;
        let anchor = Some(anchor(1 + self.anchors));
        let (lease, number) = (report.lease.clone(), report.number);
        self.say(CoordinatorSays::Answered { lease, number, answer, anchor }).await;
    }

    /// The next report, recorded.
    pub async fn recorded(&mut self) -> Report {
        let report = self.report().await;
        self.answer(&report, Answer::Recorded).await;
        report
    }

    /// Records reports until one ends its lease.
    pub async fn ending(&mut self) -> Report {
        loop {
            let report = self.recorded().await;
            match report.fact {
                Fact::Accepted | Fact::Started(_) => {}
                Fact::Delivered(_) | Fact::Failed(_) | Fact::Stopped(_) | Fact::Measured(_) => {
                    return report;
                }
            }
        }
    }
}

/// What comes, or the end of the test.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it comes in time")
}

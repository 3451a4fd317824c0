//! The journal on the wire: its lines as they were written, and the proof that they are.

use std::path::PathBuf;

use ganger_proto::{read, status, v1};
use ganger_shared::actor::Role;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

use super::ask::{blocking, gone, internal};
use super::{Api, principal};
use crate::journal::{Bad, ExportError, Exported, StreamName, exported, verify};

/// Events read ahead of the network.
const AHEAD: usize = 64;

type Answer = Result<v1::JournalServiceExportResponse, Status>;

/// The service.
pub struct Journals {
    api: Api,
}

impl Journals {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    fn dir(&self) -> PathBuf {
        self.api.config.data.join("journal")
    }

    /// A stream of this journal, by name.
    fn stream(&self, name: &str) -> Result<Option<(StreamName, u64)>, Status> {
        let Some(stream) = read::text_or_empty::<StreamName>("stream", name)? else {
            return Ok(None);
        };
        let known = self.api.house.store.streams(name);
        let known = known.into_iter().find(|(other, _)| *other == stream);
        let unknown = || {
            let message = format!("no stream `{name}`: `run/<whole id>`, `fleet` or `system`");
            status::plain(Code::NotFound, "unknown_stream", &message)
        };
        known.map(Some).ok_or_else(unknown)
    }
}

/// Reads the log to its end, or until nobody wants more; blocks on the disk and on the receiver.
fn send(
    dir: &std::path::Path,
    (stream, after): (Option<&StreamName>, u64),
    receiver: &mpsc::Sender<Answer>,
) -> Result<(), ExportError> {
    for event in exported(dir, stream, after)? {
        let Exported { log_seq, stream, seq, hash, line } = event?;
        let event = line.into_bytes();
        let (sequence, hash) = (seq, hash.to_string());
        let answer = v1::JournalServiceExportResponse { log_seq, stream, sequence, hash, event };
        if receiver.blocking_send(Ok(answer)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn damage(bad: &Bad) -> v1::Damage {
    v1::Damage {
        log_seq: bad.log_seq,
        stream: bad.stream.clone().unwrap_or_default(),
        sequence: bad.seq.unwrap_or_default(),
        reason: bad.to_string(),
    }
}

#[tonic::async_trait]
impl v1::journal_service_server::JournalService for Journals {
    type ExportStream = ReceiverStream<Answer>;

    async fn export(
        &self,
        request: Request<v1::JournalServiceExportRequest>,
    ) -> Result<Response<Self::ExportStream>, Status> {
        principal(request.extensions(), Role::Operate)?;
        let v1::JournalServiceExportRequest { stream, after_sequence } = request.into_inner();
        let stream = self.stream(&stream)?.map(|(stream, _)| stream);
        let (told, receive) = mpsc::channel(AHEAD);
        let (dir, ending) = (self.dir(), self.api.ending.clone());
        self.api.streams.spawn(async move {
            let receiver = told.clone();
            let reading =
                blocking(move || send(&dir, (stream.as_ref(), after_sequence), &receiver));
            let end = tokio::select! {
                biased;
                () = ending.cancelled() => Some(gone()),
                read = reading => match read {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(internal(&error)),
                    Err(status) => Some(status),
                },
            };
            if let Some(status) = end {
                // A receiver that went away is not told.
                drop(told.try_send(Err(status)));
            }
        });
        Ok(Response::new(ReceiverStream::new(receive)))
    }

    /// All streams are one log, so all of it is read whichever is asked for; the first bad event of
    /// the log is named, since nothing after it is proved.
    async fn verify(
        &self,
        request: Request<v1::JournalServiceVerifyRequest>,
    ) -> Result<Response<v1::JournalServiceVerifyResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        let stream = self.stream(&request.into_inner().stream)?;
        let dir = self.dir();
        let report = blocking(move || verify(&dir)).await?.map_err(|error| internal(&error))?;
        let events = match (&stream, &report.first_bad) {
            (Some((_, events)), None) => *events,
            (None, _) | (Some(_), Some(_)) => report.events,
        };
        Ok(Response::new(v1::JournalServiceVerifyResponse {
            events,
            anchor: Some(self.api.house.store.tip().into()),
            damage: report.first_bad.as_ref().map(damage),
        }))
    }
}

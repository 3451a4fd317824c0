//! Stream `system`: what happened to the coordinator itself.

use ganger_shared::event::{Envelope, SystemEvent};
use thiserror::Error;

use crate::journal::{AppendError, EventStore, ReadError, StreamName};

/// Attempts to append before giving up: another writer of this stream may be between ours.
const TRIES: usize = 8;

/// Why the stream cannot be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// It cannot be read.
    #[error("read stream system")]
    Read(#[from] ReadError),
    /// It cannot be written.
    #[error("append to stream system")]
    Append(#[from] AppendError),
    /// An event is not one this build knows.
    #[error("event {seq} of stream system is not readable: {source}")]
    Unreadable {
        /// Its place.
        seq: u64,
        /// Why.
        source: serde_json::Error,
    },
}

/// Events from number `from` on, at most `limit`.
pub fn read(
    store: &EventStore,
    from: u64,
    limit: usize,
) -> Result<Vec<(u64, Envelope<SystemEvent>)>, Error> {
    store
        .read(&StreamName::system(), from, limit)?
        .into_iter()
        .map(|stored| {
            let seq = stored.seq;
            serde_json::from_str(&stored.body)
                .map(|event| (seq, event))
                .map_err(|source| Error::Unreadable { seq, source })
        })
        .collect()
}

/// Appends at the end of the stream, wherever that is by then.
pub async fn append(store: &EventStore, events: Vec<Envelope<SystemEvent>>) -> Result<(), Error> {
    let stream = StreamName::system();
    let bodies: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string(event).expect("an event is plain data with text keys"))
        .collect();
    let tip = store.streams(stream.as_str()).first().map_or(0, |(_, seq)| *seq);
    let mut expected = tip;
    for _ in 1..TRIES {
        match store.append_essential(&stream, expected, bodies.clone()).await {
            Err(AppendError::WrongSeq { actual, .. }) => expected = actual,
            other => return other.map(|_| ()).map_err(Error::from),
        }
    }
    store.append_essential(&stream, expected, bodies).await?;
    Ok(())
}

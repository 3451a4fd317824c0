//! Writing a journal's events out, one line of JSON each, exactly as they are stored.
//!
//! A line carries stream, number, both hashes and the body, so an export proves itself: see
//! `record` for the bytes the hash covers. It may run beside a coordinator; events appended
//! meanwhile may be missing. Not here: checking; that is `verify`.

use std::io::{self, Write};
use std::path::Path;

use ganger_log::{Frames, ReadError};
use ganger_shared::digest::Digest;
use thiserror::Error;

use super::StreamName;
use super::files::Files;
use super::record::{self, Line};

/// Why an export is not complete.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The log could not be read to its end.
    #[error("export the journal: {0}")]
    Read(#[from] ReadError),
    /// A line of the log is not one of ours.
    #[error("export the journal: log_seq {log_seq} is not an event")]
    NotAnEvent {
        /// Its place.
        log_seq: u64,
    },
    /// The receiver of the export failed.
    #[error("write the export")]
    Write(#[from] io::Error),
}

/// Writes the events of one stream, or of all, in the order of the log; returns how many.
pub fn export(
    dir: &Path,
    only: Option<&StreamName>,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let mut written = 0;
    for frame in Frames::of_dir(&Files::of(dir).log, 1)? {
        let frame = frame?;
        match record::parse(&frame.payload) {
            Some(Line::Event(event)) => {
                if only.is_none_or(|stream| stream.as_str() == event.stream) {
                    out.write_all(frame.payload.as_bytes())?;
                    out.write_all(b"\n")?;
                    written += 1;
                }
            }
            Some(Line::Store(_)) => {}
            None => {
                return Err(ExportError::NotAnEvent { log_seq: frame.log_seq });
            }
        }
    }
    out.flush()?;
    Ok(written)
}

/// One event of an export, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Its place in the log.
    pub log_seq: u64,
    /// Its stream.
    pub stream: String,
    /// Its number in the stream.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// The line as it was written.
    pub line: String,
}

/// The events of one stream after a number, or of all after a place in the log.
pub fn exported(
    dir: &Path,
    only: Option<&StreamName>,
    after: u64,
) -> Result<impl Iterator<Item = Result<Exported, ExportError>>, ExportError> {
    let only = only.map(|stream| stream.as_str().to_owned());
    let first = if only.is_some() { 1 } else { after.saturating_add(1) };
    let frames = Frames::of_dir(&Files::of(dir).log, first)?;
    Ok(frames.filter_map(move |frame| {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Some(Err(error.into())),
        };
        let log_seq = frame.log_seq;
        match record::parse(&frame.payload) {
            Some(Line::Event(event)) => {
                let wanted =
                    only.as_ref().is_none_or(|name| *name == event.stream && event.seq > after);
                let (stream, seq, hash) = (event.stream.to_owned(), event.seq, event.hash);
                let line = frame.payload.clone();
                wanted.then_some(Ok(Exported { log_seq, stream, seq, hash, line }))
            }
            Some(Line::Store(_)) => None,
            None => Some(Err(ExportError::NotAnEvent { log_seq })),
        }
    }))
}

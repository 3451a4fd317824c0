//! Writing a journal's events out, one line of JSON each, exactly as they are stored.
//!
//! A line carries stream, number, both hashes and the body, so an export proves itself: see
//! `record` for the bytes the hash covers. It may run beside a coordinator; events appended
//! meanwhile may be missing. Not here: checking; that is `verify`.

use std::io::{self, Write};
use std::path::Path;

use ganger_log::{Frames, ReadError};
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

//! The last words of a program, without secrets: five lines, five hundred characters (R108).
//!
//! Redacted first and cut then: half a value is one that nothing can recognise.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ganger_shared::redact::Redactor;

use crate::output::{Capture, Stream, log_tail};

/// Read from the end of a file: what a value cut by its beginning leaves is far from the tail.
const WINDOW_BYTES: u64 = 64 << 10;

/// The end of standard error where there is any, else of standard output.
pub(crate) fn of(captures: &[Capture], redactor: &Redactor) -> String {
    let end = |wanted: Stream| {
        let capture = captures.iter().find(|capture| capture.stream == wanted)?;
        Some(end_of(capture, redactor))
    };
    let both = [end(Stream::Stderr), end(Stream::Stdout)];
    both.into_iter().flatten().find(|tail| !tail.is_empty()).unwrap_or_default()
}

/// The end of one output.
pub(crate) fn end_of(capture: &Capture, redactor: &Redactor) -> String {
    // Past its bound the file does not hold the end; the pump remembered it.
    let window = match capture.truncated() {
        None => window(&capture.path).unwrap_or_else(|_| capture.tail.clone().into_bytes()),
        Some(_) => whole_lines(&capture.tail).as_bytes().to_vec(),
    };
    log_tail(&redactor.bytes(&window))
}

fn window(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(WINDOW_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(WINDOW_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Without the first line, which may be the rest of one that was cut.
fn whole_lines(tail: &str) -> &str {
    tail.split_once('\n').map_or(tail, |(_, rest)| rest)
}

//! A program's output on its way to the disk and to whoever follows it line by line.
//!
//! Always drained, whatever comes: any bytes, lines without end, more than the file may hold. The
//! file keeps the raw bytes, the lines are text for reading. What the lines mean is not known
//! here, and nothing here goes through an actor's mailbox.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

mod lines;
mod tail;

pub use lines::{Cut, LineCutter};
pub use tail::{TAIL_CHARS_MAX, TAIL_LINES_MAX, log_tail};

use tail::Tail;

/// Which of a program's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error; never counted as progress.
    Stderr,
}

/// One line of output as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it was written.
    pub stream: Stream,
    /// Its text without the line end; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// What is missing at its end, if it was too long.
    pub cut: Option<Cut>,
}

/// How much of an output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The longest line that is passed on whole, in bytes.
    pub line_bytes_max: usize,
    /// The largest file, in bytes.
    pub file_bytes_max: u64,
    /// How many lines may wait for a slow follower before the program has to wait.
    pub lines_waiting_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { line_bytes_max: 1 << 20, file_bytes_max: 64 << 20, lines_waiting_max: 32 }
    }
}

/// What was kept of one output, once it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Which output.
    pub stream: Stream,
    /// The file with its raw bytes.
    pub path: PathBuf,
    /// How many bytes the program wrote.
    pub bytes_written: u64,
    /// How many of them the file holds.
    pub bytes_kept: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The last lines, for evidence records.
    pub tail: String,
}

/// The named outcome of an output that did not fit into its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTruncated {
    /// What the file holds.
    pub bytes_kept: u64,
    /// What was drained and dropped after it.
    pub bytes_dropped: u64,
}

impl Capture {
    /// Whether, and by how much, the file is shorter than the output.
    pub fn truncated(&self) -> Option<OutputTruncated> {
        let bytes_dropped = self.bytes_written - self.bytes_kept;
        (bytes_dropped > 0)
            .then_some(OutputTruncated { bytes_kept: self.bytes_kept, bytes_dropped })
    }
}

/// Why an output could not be kept. The program's output is drained all the same.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file could not be made or written.
    #[error("keep output in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The program's end of the stream broke.
    #[error("read output for {}", path.display())]
    Read {
        /// The file it was for.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The pump was stopped before the end of the output.
    #[error("finish output in {}: the pump was stopped", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

/// Moves one output to its file and to one follower until it ends.
#[derive(Debug)]
pub struct OutputPump {
    path: PathBuf,
    task: JoinHandle<Result<Capture, OutputError>>,
}

impl OutputPump {
    /// Starts pumping into a new file.
    ///
    /// A follower that is slow makes the program wait: a protocol must not lose lines. One that
    /// drops its receiver is forgotten, and the output goes on to the file alone.
    pub async fn start(
        source: impl AsyncRead + Send + Unpin + 'static,
        stream: Stream,
        path: &Path,
        bounds: Bounds,
    ) -> Result<(Self, mpsc::Receiver<Line>), OutputError> {
        let file = File::create(path)
            .await
            .map_err(|source| OutputError::File { path: path.to_owned(), source })?;
        let (lines, follower) = mpsc::channel(bounds.lines_waiting_max);
        let sink = Sink::new(file, path.to_owned(), bounds.file_bytes_max);
        let course = Course { stream, sink, cutter: LineCutter::new(bounds.line_bytes_max), lines };
        let task = tokio::spawn(course.run(source));
        Ok((Self { path: path.to_owned(), task }, follower))
    }

    /// Waits for the end of the output; the file is then complete and synced.
    pub async fn finish(mut self) -> Result<Capture, OutputError> {
        let ended = (&mut self.task).await;
        ended.unwrap_or_else(|_| Err(OutputError::Stopped { path: self.path.clone() }))
    }
}

impl Drop for OutputPump {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Read at once; also the size of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

struct Course {
    stream: Stream,
    sink: Sink,
    cutter: LineCutter,
    lines: mpsc::Sender<Line>,
}

impl Course {
    async fn run(mut self, mut source: impl AsyncRead + Unpin) -> Result<Capture, OutputError> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = source.read(&mut chunk).await;
            let count = read.map_err(|source| self.sink.read_error(source))?;
            if count == 0 {
                break;
            }
            self.sink.take(&chunk[..count]).await;
            self.pass_on(&chunk[..count]).await;
        }
        if let Some((text, cut)) = self.cutter.finish() {
            let _ = self.lines.send(Line { stream: self.stream, text, cut }).await;
        }
        self.sink.finish(self.stream).await
    }

    async fn pass_on(&mut self, mut bytes: &[u8]) {
        while let Some(((text, cut), rest)) = self.cutter.take(bytes) {
            // A follower that has gone is no reason to stop draining.
            let _ = self.lines.send(Line { stream: self.stream, text, cut }).await;
            bytes = rest;
        }
    }
}

/// The file, its digest and its tail.
struct Sink {
    file: File,
    path: PathBuf,
    room: u64,
    written: u64,
    kept: u64,
    digest: Sha256,
    tail: Tail,
    failed: Option<std::io::Error>,
}

impl Sink {
    fn new(file: File, path: PathBuf, room: u64) -> Self {
        let (digest, tail) = (Sha256::new(), Tail::default());
        Self { file, path, room, written: 0, kept: 0, digest, tail, failed: None }
    }

    /// Keeps what fits. A disk error is remembered and told at the end: draining goes on.
    async fn take(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.tail.take(bytes);
        let room = usize::try_from(self.room - self.kept).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        if fits.is_empty() || self.failed.is_some() {
            return;
        }
        match self.file.write_all(fits).await {
            Ok(()) => {
                self.digest.update(fits);
                self.kept += fits.len() as u64;
            }
            Err(error) => self.failed = Some(error),
        }
    }

    async fn finish(mut self, stream: Stream) -> Result<Capture, OutputError> {
        let synced = match self.failed.take() {
            Some(error) => Err(error),
            None => match self.file.flush().await {
                Ok(()) => self.file.sync_all().await,
                Err(error) => Err(error),
            },
        };
        synced.map_err(|source| OutputError::File { path: self.path.clone(), source })?;
        Ok(Capture {
            stream,
            path: self.path,
            bytes_written: self.written,
            bytes_kept: self.kept,
            sha256: hex::encode(self.digest.finalize()),
            tail: self.tail.text(),
        })
    }

    fn read_error(&self, source: std::io::Error) -> OutputError {
        OutputError::Read { path: self.path.clone(), source }
    }
}

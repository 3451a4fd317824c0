//! The output of an attempt: redacted on the worker's disk, then handed over as one artifact.
//!
//! The raw files are replaced, so no value outlives the attempt anywhere (R164). What is kept beside
//! each other on the disk is `stdout.txt`, `stderr.txt` and `exit_code.txt` (R194).

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use ganger_shared::digest::ArtifactRef;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::redact::Redactor;

use super::Case;
use crate::attempts::port::ExecEnd;
use crate::executor::{failed, file_failed, tail};
use crate::output::{Capture, Stream};

/// Between the two outputs in the artifact.
const DIVIDER: &[u8] = b"\n--- stderr ---\n";
const CHUNK: usize = 64 << 10;

/// What was kept of an attempt's output.
pub(super) struct Output {
    /// The artifact; absent where nothing was printed.
    pub(super) artifact: Option<ArtifactRef>,
    /// There was more.
    pub(super) truncated: bool,
    /// Its end, without secrets (R108).
    pub(super) tail: String,
}

/// Redacts what was captured and hands it over.
pub(super) async fn hand_over(case: &Case<'_>, end: Option<&ExecEnd>) -> Result<Output, Failure> {
    let Some(end) = end else {
        return Ok(Output { artifact: None, truncated: false, tail: String::new() });
    };
    let (dir, exit) = (case.room.evidence.clone(), end.exit);
    let (captures, redactor) = (end.captures.clone(), case.redactor.clone());
    let written = tokio::task::spawn_blocking(move || {
        if let Some(exit) = exit {
            let path = dir.join("exit_code.txt");
            fs::write(&path, format!("{}\n", exit.shell_code()))
                .map_err(|error| file_failed("write", &path, &error))?;
        }
        for capture in captures.iter().filter(|capture| capture.bytes_kept > 0) {
            redact(&capture.path, &redactor)
                .map_err(|error| file_failed("redact", &capture.path, &error))?;
        }
        let tail = tail::of(&captures, &redactor);
        let path = dir.join("output.txt");
        let bytes = join(&captures, &path).map_err(|error| file_failed("write", &path, &error))?;
        Ok::<_, Failure>(((bytes > 0).then_some(path), tail))
    });
    let (path, tail) = written.await.expect("copying files does not panic")?;
    let artifact = match path {
        Some(path) => Some(upload(case, &path).await?),
        None => None,
    };
    let truncated = end.captures.iter().any(|capture| capture.truncated().is_some());
    Ok(Output { artifact, truncated, tail })
}

/// Hands a file over to the coordinator.
pub(super) async fn upload(case: &Case<'_>, path: &Path) -> Result<ArtifactRef, Failure> {
    let uploaded = case.site.bulk.upload(path).await;
    uploaded.map_err(|error| failed(FailureClass::OutputRegistrationFailed, &error))
}

/// Replaces a file by itself without secrets.
fn redact(path: &Path, redactor: &Redactor) -> io::Result<()> {
    let clean: PathBuf = path.with_extension("redacted");
    let mut from = BufReader::with_capacity(CHUNK, File::open(path)?);
    let mut to = BufWriter::new(File::create(&clean)?);
    let mut stream = redactor.stream();
    let (mut chunk, mut out) = (vec![0; CHUNK], Vec::new());
    loop {
        let count = from.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        stream.take(&chunk[..count], &mut out);
        to.write_all(&out)?;
        out.clear();
    }
    stream.finish(&mut out);
    to.write_all(&out)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(&clean, path)
}

/// Adds one output, and says how much of it is missing.
fn append(capture: &Capture, file: &mut File) -> io::Result<u64> {
    let bytes = io::copy(&mut File::open(&capture.path)?, file)?;
    let Some(truncated) = capture.truncated() else { return Ok(bytes) };
    let note = format!("\n--- {} more bytes were not kept ---\n", truncated.bytes_dropped);
    file.write_all(note.as_bytes())?;
    Ok(bytes + note.len() as u64)
}

/// Writes both outputs into one file; gives its length. It lasts until it is handed over.
fn join(captures: &[Capture], to: &Path) -> io::Result<u64> {
    if captures.iter().all(|capture| capture.bytes_kept == 0) {
        return Ok(0);
    }
    let of = |wanted| captures.iter().find(|capture| capture.stream == wanted);
    let mut file = File::create(to)?;
    let mut bytes = 0;
    if let Some(stdout) = of(Stream::Stdout) {
        bytes += append(stdout, &mut file)?;
    }
    if let Some(stderr) = of(Stream::Stderr).filter(|stderr| stderr.bytes_kept > 0) {
        if bytes > 0 {
            file.write_all(DIVIDER)?;
            bytes += DIVIDER.len() as u64;
        }
        bytes += append(stderr, &mut file)?;
    }
    Ok(bytes)
}

//! Runs one call: feeds it, reads it, and ends it when it is over, too long or too loud.
//!
//! What is called, and with which options, is decided in `command`.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, timeout};

use super::{Answer, Call, Input, Overflow};
use crate::error::Error;

/// How much of standard error is kept: its end, where git says why it gave up.
const MESSAGE_MAX: usize = 64 << 10;
const READ_AT_ONCE: usize = 128 << 10;
/// How long an ended git may take to be gone; it only takes this long in a stuck file system.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A started git, ended with its whole process group if it is dropped before it has ended.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn end(&self) {
        // No id any more: it was waited for, and its number may be somebody else's.
        let group = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = group {
            // The only failure is that nobody is left in the group.
            let _nobody_left = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }

    async fn end_and_wait(mut self) {
        self.end();
        // Whoever outlives this is reaped by the runtime.
        let _gone = timeout(GONE_WITHIN, self.0.wait()).await;
    }
}

/// What was read so far; outside of the reading, so that a cut keeps it.
#[derive(Default)]
struct Read {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    written: u64,
}

/// Why the conversation with git stopped before its end.
enum Stop {
    Overflow,
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

pub(super) async fn run(mut call: Call<'_>) -> Result<Answer, Error> {
    let (operation, dir) = (call.operation, call.place.dir.clone());
    let since = Instant::now();
    let mut running = start(&mut call)?;
    let mut read = Read::default();
    let (max, deadline, overflow) = (call.answer_max, call.deadline, call.overflow);
    let ended = timeout(deadline, converse(&mut running.0, call, &mut read)).await;
    tracing::debug!(operation, dir = %dir.display(), took = ?since.elapsed(), "git");
    match ended {
        Ok(Ok(status)) => Ok(answer(read, status.code(), false)),
        Ok(Err(Stop::Overflow)) => {
            running.end_and_wait().await;
            match overflow {
                Overflow::Refuse => Err(Error::OutputTooLarge { operation, dir, max }),
                Overflow::Truncate => Ok(answer(read, None, true)),
            }
        }
        Ok(Err(Stop::Broken(source))) => Err(Error::Files { operation, path: dir, source }),
        Err(_elapsed) => {
            running.end_and_wait().await;
            Err(Error::Deadline { operation, dir, after: deadline })
        }
    }
}

fn start(call: &mut Call<'_>) -> Result<Running, Error> {
    let mut command = call.command();
    command.stdin(match std::mem::replace(&mut call.input, Input::Nothing) {
        Input::Nothing => Stdio::null(),
        Input::File(file) => Stdio::from(file),
        Input::Bytes(bytes) => {
            call.input = Input::Bytes(bytes);
            Stdio::piped()
        }
    });
    command.spawn().map(Running).map_err(|source| Error::NotStarted {
        operation: call.operation,
        dir: call.place.dir.clone(),
        program: call.git.program().to_owned(),
        source,
    })
}

async fn converse(child: &mut Child, call: Call<'_>, read: &mut Read) -> Result<ExitStatus, Stop> {
    let stdin = child.stdin.take();
    let stdout = child.stdout.take().expect("stdout was piped when git was started");
    let stderr = child.stderr.take().expect("stderr was piped when git was started");
    let Read { stdout: kept, stderr: said, written } = read;
    let (max, file) = (call.answer_max, call.into_file);
    let answer = async {
        match file {
            Some(file) => copy(stdout, File::from_std(file), max, written).await,
            None => keep(stdout, kept, max).await,
        }
    };
    tokio::try_join!(feed(stdin, call.input), answer, keep_end(stderr, said))?;
    Ok(child.wait().await?)
}

async fn feed(stdin: Option<ChildStdin>, input: Input) -> Result<(), Stop> {
    if let (Some(mut stdin), Input::Bytes(bytes)) = (stdin, input) {
        // A git that stops reading says why by its exit code and on its standard error.
        let _closed_early = stdin.write_all(&bytes).await;
    }
    Ok(())
}

async fn keep(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>, max: u64) -> Result<(), Stop> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut buffer = vec![0; READ_AT_ONCE];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let room = max - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
        if count > room {
            return Err(Stop::Overflow);
        }
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut file: File,
    max: u64,
    written: &mut u64,
) -> Result<(), Stop> {
    let mut buffer = vec![0; READ_AT_ONCE];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            file.flush().await?;
            return Ok(());
        }
        *written += count as u64;
        if *written > max {
            return Err(Stop::Overflow);
        }
        file.write_all(&buffer[..count]).await?;
    }
}

async fn keep_end(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>) -> Result<(), Stop> {
    let mut buffer = vec![0; 4 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > MESSAGE_MAX {
            kept.drain(..kept.len() - MESSAGE_MAX / 2);
        }
    }
}

fn answer(read: Read, code: Option<i32>, truncated: bool) -> Answer {
    let message = last_words(&String::from_utf8_lossy(&read.stderr));
    Answer { code, stdout: read.stdout, message, truncated, written: read.written }
}

/// The last line with text; before it the last `error:` line, which names the file where the last
/// line (`fatal: adding files failed`) often does not.
fn last_words(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let last = lines().next().unwrap_or("nothing");
    match lines().find(|line| line.starts_with("error: ")) {
        Some(error) if error != last => format!("{error}; {last}"),
        Some(_) | None => last.to_owned(),
    }
}

//! Starting one program: checks, streams, record, shim, in that order. What happens after the
//! start is `keeper.rs`.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

use super::keeper::{Keeper, next};
use super::record::{ProcessRecord, RecordError};
use super::table::{self, Fingerprint, MARKER};
use super::wire::{Job, LINE_BYTES_MAX, Orders, Report, SHIM_ARGUMENT, Streams, hand_over, line};
use super::{
    LaunchError, Phase, ProcessTree, START_PATIENCE, STDIN_BYTES_MAX, Spawn, SpawnError, Started,
    Stdin, TreeHandle,
};
use crate::isolation::Hold;

/// Rungs that may wait for the shim; a caller that sends more waits.
const RUNGS_WAITING_MAX: usize = 8;

pub(super) async fn start(shim: &Path, spawn: Spawn) -> Result<ProcessTree, SpawnError> {
    check(&spawn)?;
    let attempt = spawn.attempt.clone();
    let prepare = |what: &str, source| SpawnError::Prepare {
        attempt: attempt.clone(),
        what: what.to_owned(),
        source,
    };
    let (streams, ends) = streams(&spawn.stdin).map_err(|error| prepare("the streams", error))?;
    let boot_id = table::boot_id().map_err(|error| prepare("the boot id", error))?;
    let mut record = intent(&spawn, boot_id);
    let job = job(&spawn, &record.marker)?;
    write(&record, &spawn.records).await?;

    let (ours, theirs) = UnixStream::pair().map_err(|error| prepare("the socket", error))?;
    let mut child =
        start_shim(shim, &record.marker, theirs).map_err(|error| prepare("the shim", error))?;
    record.shim = child.id().and_then(|pid| Fingerprint::of(pid.cast_signed()));
    let begun = async {
        write(&record, &spawn.records).await?;
        tokio::time::timeout(START_PATIENCE, instruct(ours, streams, &job))
            .await
            .unwrap_or_else(|_| Err(silent("no answer in time")))
            .map_err(|failure| failure.into_error(&attempt))
    };
    let (reports, orders, started) = match begun.await {
        Ok(begun) => begun,
        Err(error) => return Err(give_up(error, &mut child, &record, &spawn.records).await),
    };
    record.init = started.init;
    record.program = Some(started.program);
    if let Err(error) = write(&record, &spawn.records).await {
        drop((reports, orders));
        return Err(give_up(error, &mut child, &record, &spawn.records).await);
    }
    let (rungs, rungs_waiting) = mpsc::channel(RUNGS_WAITING_MAX);
    let (phase, phase_seen) = watch::channel(Phase::Running);
    let records = spawn.records;
    let keeper =
        Keeper { shim: child, reports, orders, rungs: rungs_waiting, phase, record, records };
    Ok(ProcessTree {
        started,
        stdin: ends.stdin,
        stdout: Some(ends.stdout),
        stderr: Some(ends.stderr),
        handle: TreeHandle { rungs, phase: phase_seen },
        keeper: tokio::spawn(keeper.keep()),
    })
}

fn check(spawn: &Spawn) -> Result<(), SpawnError> {
    let attempt = || spawn.attempt.clone();
    if spawn.argv.first().is_none_or(String::is_empty) {
        return Err(SpawnError::NoProgram { attempt: attempt() });
    }
    let refused = |name: &&String| {
        name.is_empty() || name.contains(['=', '\0']) || name.starts_with("GANGER_")
    };
    if let Some(name) = spawn.env.keys().find(refused) {
        return Err(SpawnError::EnvironmentName { attempt: attempt(), name: name.clone() });
    }
    match &spawn.stdin {
        Stdin::Bytes(bytes) if bytes.len() > STDIN_BYTES_MAX => Err(SpawnError::TooLarge {
            attempt: attempt(),
            what: "bytes of standard input",
            limit: STDIN_BYTES_MAX,
        }),
        Stdin::Null | Stdin::Bytes(_) | Stdin::File(_) | Stdin::Pipe => Ok(()),
    }
}

/// The worker's ends of the program's streams.
struct Ends {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

fn streams(stdin: &Stdin) -> io::Result<(Streams, Ends)> {
    let (stdout_end, stdout) = io::pipe()?;
    let (stderr_end, stderr) = io::pipe()?;
    let (stdin, stdin_end): (OwnedFd, _) = match stdin {
        Stdin::Null => (File::open("/dev/null")?.into(), None),
        Stdin::Bytes(bytes) => (in_memory(bytes)?.into(), None),
        Stdin::File(path) => (File::open(path)?.into(), None),
        Stdin::Pipe => {
            let (read, write) = io::pipe()?;
            (read.into(), Some(pipe::Sender::from_owned_fd(write.into())?))
        }
    };
    let ends = Ends {
        stdin: stdin_end,
        stdout: pipe::Receiver::from_owned_fd(stdout_end.into())?,
        stderr: pipe::Receiver::from_owned_fd(stderr_end.into())?,
    };
    Ok((Streams { stdin, stdout: stdout.into(), stderr: stderr.into() }, ends))
}

/// A prompt may hold secrets and has no business on a disk.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let mut file = File::from(memfd_create(c"stdin", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn intent(spawn: &Spawn, boot_id: String) -> ProcessRecord {
    let marker = uuid::Uuid::now_v7().simple().to_string();
    let cgroup = match &spawn.containment.hold {
        Hold::Cgroup { parent } => Some(crate::shim::leaf(parent, &marker)),
        Hold::PidNamespace { .. } | Hold::Descendants => None,
    };
    ProcessRecord {
        attempt: spawn.attempt.clone(),
        marker,
        boot_id,
        shim: None,
        init: None,
        program: None,
        cgroup,
    }
}

fn job(spawn: &Spawn, marker: &str) -> Result<Vec<u8>, SpawnError> {
    let mut env = spawn.env.clone();
    env.insert(MARKER.to_owned(), marker.to_owned());
    let orders = Orders {
        argv: spawn.argv.clone(),
        cwd: spawn.cwd.clone(),
        env,
        containment: spawn.containment.clone(),
        marker: marker.to_owned(),
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
    };
    line(&Job::Attempt(orders)).map_err(|source| {
        let attempt = spawn.attempt.clone();
        if source.kind() == io::ErrorKind::FileTooLarge {
            let what = "bytes of arguments and environment";
            SpawnError::TooLarge { attempt, what, limit: LINE_BYTES_MAX }
        } else {
            SpawnError::Prepare { attempt, what: "the orders for the shim".to_owned(), source }
        }
    })
}

async fn write(record: &ProcessRecord, records: &Path) -> Result<(), SpawnError> {
    let (copy, directory): (_, PathBuf) = (record.clone(), records.to_owned());
    let written = tokio::task::spawn_blocking(move || copy.write(&directory)).await;
    let result = written.unwrap_or_else(|panic| {
        let path = record.path(records);
        Err(RecordError { deed: "write", path, source: io::Error::other(panic) })
    });
    result.map_err(|source| SpawnError::Record { attempt: record.attempt.clone(), source })
}

fn start_shim(shim: &Path, marker: &str, socket: UnixStream) -> io::Result<Child> {
    Command::new(shim)
        .arg(SHIM_ARGUMENT)
        .env_clear()
        .env(MARKER, marker)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .spawn()
}

/// What can go wrong while the shim gets its orders.
enum Failure {
    Silent(String),
    Launch(LaunchError),
}

impl Failure {
    fn into_error(self, attempt: &str) -> SpawnError {
        let attempt = attempt.to_owned();
        match self {
            Self::Silent(detail) => SpawnError::Silent { attempt, detail },
            Self::Launch(source) => SpawnError::Launch { attempt, source },
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn silent(detail: impl ToString) -> Failure {
    Failure::Silent(detail.to_string())
}

type Begun = (Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf, Started);

async fn instruct(socket: UnixStream, streams: Streams, job: &[u8]) -> Result<Begun, Failure> {
    hand_over(&socket, &streams).map_err(silent)?;
    // Our copies must go, or the output would never end.
    drop(streams);
    socket.set_nonblocking(true).map_err(silent)?;
    let (read, mut orders) = tokio::net::UnixStream::from_std(socket).map_err(silent)?.into_split();
    orders.write_all(job).await.map_err(silent)?;
    let mut reports = BufReader::new(read).lines();
    match next(&mut reports).await {
        Some(Report::Started(started)) => Ok((reports, orders, started)),
        Some(Report::Failed(error)) => Err(Failure::Launch(error)),
        Some(Report::Exited(_) | Report::Empty { .. }) => Err(silent("an end before the start")),
        None => Err(silent("it ended without a word")),
    }
}

/// Nothing may stay behind a failed start: the shim has lost its socket and ends by itself.
async fn give_up(
    error: SpawnError,
    shim: &mut Child,
    record: &ProcessRecord,
    records: &Path,
) -> SpawnError {
    if tokio::time::timeout(START_PATIENCE, shim.wait()).await.is_ok() {
        // Kept if the shim hangs, so that the next sweep looks again.
        let _ = record.remove(records);
    }
    error
}

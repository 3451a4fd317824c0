//! The processes of attempts: started, watched, ended. Nowhere else does the worker do this.
//!
//! Every program runs under a shim of its own (`shim.rs`), which dies with us and takes the whole
//! tree with it. This room gives the rungs of the stop ladder; *when* to climb it is decided in
//! the worker's core. Reading the program's output is `output.rs`; git is started elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::isolation::Containment;

pub(crate) mod inside;
mod keeper;
mod record;
mod rounds;
mod start;
mod sweep;
pub(crate) mod table;
pub(crate) mod wire;

pub use record::{ProcessRecord, RecordError};
pub(crate) use rounds::end_all;
pub use sweep::{SweepError, Swept, SweptOutcome, sweep};
pub use table::{Fingerprint, MARKER, boot_id};
pub use wire::{Rung, SHIM_ARGUMENT};

/// The longest standard input given as bytes; longer ones are files or pipes.
pub const STDIN_BYTES_MAX: usize = 16 << 20;

/// How long the shim may take to start the program.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long survivors of SIGKILL are waited for before they are reported as such.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// A program to start for an attempt.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// Whose program it is; only recorded and reported.
    pub attempt: String,
    /// The program and its arguments. Never a prompt: arguments are visible to the whole host.
    pub argv: Vec<String>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// Its whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// What it reads.
    pub stdin: Stdin,
    /// What holds it and what it sees.
    pub containment: Containment,
    /// The worker's directory of process records, out of every attempt's sight.
    pub records: PathBuf,
}

/// A program's standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// These bytes, then the end; they are never on a disk.
    Bytes(Vec<u8>),
    /// A file of the worker.
    File(PathBuf),
    /// A pipe, whose other end is `ProcessTree::take_stdin`.
    Pipe,
}

/// What is known of a program that has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The program, as the host sees it.
    pub program: Fingerprint,
    /// The first process of its PID namespace, if it has one.
    pub init: Option<Fingerprint>,
    /// Its cgroup leaf, if it has one.
    pub cgroup: Option<PathBuf>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// The one number a shell would show: the code, or 128 and the signal.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// The end of a whole tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// True if it was seen that no process of the tree is left.
    pub confirmed: bool,
    /// Those that outlived SIGKILL for as long as we waited.
    pub survivors: Vec<i32>,
}

/// How far a tree has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The program runs.
    Running,
    /// The program has ended; the rest of its tree is being ended.
    Exited(Exit),
    /// Nothing is left, or what is left is named.
    Ended {
        /// How the program ended; `None` if the shim was killed before it could say.
        exit: Option<Exit>,
        /// What is known of the whole tree.
        stopped: Stopped,
    },
}

/// Where the shim failed before the program ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {detail}")]
pub struct LaunchError {
    /// The step, in a few words.
    pub step: String,
    /// What went wrong, with the paths inside.
    pub detail: String,
}

impl LaunchError {
    #[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
    pub(crate) fn new(step: &str, detail: impl ToString) -> Self {
        Self { step: step.to_owned(), detail: detail.to_string() }
    }
}

/// Why a program did not start. After any of these nothing of it is left running.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No program was named.
    #[error("start a program for attempt {attempt}: its argument list is empty")]
    NoProgram {
        /// Whose.
        attempt: String,
    },
    /// The environment names something an agent must not have, or that no process can have.
    #[error("start a program for attempt {attempt}: environment name {name:?} is not allowed")]
    EnvironmentName {
        /// Whose.
        attempt: String,
        /// The name.
        name: String,
    },
    /// Arguments and environment, or standard input, exceed their limit.
    #[error("start a program for attempt {attempt}: {what} exceed {limit} bytes")]
    TooLarge {
        /// Whose.
        attempt: String,
        /// Which part.
        what: &'static str,
        /// Its limit.
        limit: usize,
    },
    /// A pipe, file or socket could not be made.
    #[error("prepare {what} of attempt {attempt}")]
    Prepare {
        /// Whose.
        attempt: String,
        /// Which.
        what: String,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The record could not be made durable, so nothing was started.
    #[error("record the processes of attempt {attempt}")]
    Record {
        /// Whose.
        attempt: String,
        /// Why.
        #[source]
        source: RecordError,
    },
    /// The host does not allow the containment, or the program cannot be run.
    #[error("launch the program of attempt {attempt}")]
    Launch {
        /// Whose.
        attempt: String,
        /// Where and why.
        #[source]
        source: LaunchError,
    },
    /// The shim said nothing in time, or ended without a word.
    #[error("hear from the shim of attempt {attempt}: {detail}")]
    Silent {
        /// Whose.
        attempt: String,
        /// What was heard instead.
        detail: String,
    },
}

/// Why a rung could not be climbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The tree has ended, which is what was wanted.
    #[error("signal the tree: it has already ended")]
    AlreadyEnded,
}

/// One running program with everything it started.
///
/// Dropping it is, for this tree, the worker's death: the shim kills all of it. The record then
/// stays behind for the next `sweep`.
#[derive(Debug)]
pub struct ProcessTree {
    started: Started,
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    handle: TreeHandle,
    keeper: JoinHandle<()>,
}

/// A cheap way to signal a tree and to wait for it; it does not keep the tree alive.
#[derive(Clone, Debug)]
pub struct TreeHandle {
    rungs: mpsc::Sender<Rung>,
    phase: watch::Receiver<Phase>,
}

impl ProcessTree {
    /// Starts a program under a shim of its own.
    ///
    /// `shim` is an executable that calls `shim::main` when its only argument is
    /// `SHIM_ARGUMENT`: normally `/proc/self/exe`.
    pub async fn spawn(shim: &Path, spawn: Spawn) -> Result<Self, SpawnError> {
        start::start(shim, spawn).await
    }

    /// What was started.
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// The writing end of `Stdin::Pipe`, once; dropping it is the end of the input.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// The program's standard output, once. Give it to an `OutputPump`: undrained output blocks.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// The program's standard error, once.
    pub fn take_stderr(&mut self) -> Option<pipe::Receiver> {
        self.stderr.take()
    }

    /// A handle for those who signal and wait.
    pub fn handle(&self) -> TreeHandle {
        self.handle.clone()
    }

    /// Waits until the program has ended; `None` if nobody can say how.
    pub async fn exited(&mut self) -> Option<Exit> {
        self.handle.exited().await
    }

    /// Waits until the whole tree has ended.
    pub async fn ended(&mut self) -> (Option<Exit>, Stopped) {
        self.handle.ended().await
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl TreeHandle {
    /// How far the tree is now.
    pub fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// SIGINT to the program's process group.
    pub async fn interrupt(&self) -> Result<(), SignalError> {
        self.climb(Rung::Interrupt).await
    }

    /// SIGTERM to the program's process group.
    pub async fn terminate(&self) -> Result<(), SignalError> {
        self.climb(Rung::Terminate).await
    }

    /// SIGKILL to every process of the tree, wherever it has moved itself.
    pub async fn kill(&self) -> Result<(), SignalError> {
        self.climb(Rung::Kill).await
    }

    /// One rung of the stop ladder.
    pub async fn climb(&self, rung: Rung) -> Result<(), SignalError> {
        self.rungs.send(rung).await.map_err(|_| SignalError::AlreadyEnded)
    }

    /// Waits until the program has ended; `None` if nobody can say how.
    pub async fn exited(&mut self) -> Option<Exit> {
        match self.reach(|phase| *phase != Phase::Running).await {
            Phase::Running => None,
            Phase::Exited(exit) => Some(exit),
            Phase::Ended { exit, .. } => exit,
        }
    }

    /// Waits until the whole tree has ended.
    pub async fn ended(&mut self) -> (Option<Exit>, Stopped) {
        match self.reach(|phase| matches!(phase, Phase::Ended { .. })).await {
            Phase::Ended { exit, stopped } => (exit, stopped),
            // The tree was dropped: the shim is killing it, but nobody is left to see it.
            Phase::Running => (None, Stopped { confirmed: false, survivors: vec![] }),
            Phase::Exited(exit) => (Some(exit), Stopped { confirmed: false, survivors: vec![] }),
        }
    }

    async fn reach(&mut self, wanted: impl FnMut(&Phase) -> bool) -> Phase {
        let reached = self.phase.wait_for(wanted).await.map(|phase| phase.clone());
        reached.unwrap_or_else(|_| self.phase())
    }
}

/// Makes this process the foster parent of orphans, so that the tree of a killed shim stays ours.
///
/// Call it once, early in a worker. Without it everything still works but the last resort.
pub fn adopt_orphans() -> std::io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(std::io::Error::from)
}

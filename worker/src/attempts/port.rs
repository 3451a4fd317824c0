//! What an attempt asks of the rooms that do the work, and what they tell it.
//!
//! Plain values between `attempts` (decides when) and `workspace`, `executor` and `evidence` (do
//! it). `steps.rs` calls exactly these, each in a task of its own that may be dropped at any await:
//!
//! ```text
//! workspace::prepare(&Site, &Assignment)                              -> Result<Room, Failure>
//! executor::start(&Site, &Assignment, &Room, mpsc::Sender<ExecEvent>) -> Result<Running, Failure>
//! evidence::collect(&Site, &Assignment, &Room, &Finish)               -> Evidence
//! workspace::discard(&Site, &Assignment, Keep)                        -> Result<(), Failure>
//! executor::agents(&Config)                                           -> Vec<AgentFacts>
//! workspace::keep_orphans(&Site, &[Lease])                            -> Vec<PathBuf>
//! ```
//!
//! `discard` also prepares trees ahead for the attempts to come, so no slot may wait for it.
//! `keep_orphans` is for the worker's start: rooms of no live lease are kept for people from then
//! on, and directories that nobody knows are named.
//!
//! `prepare` and `start` clean up after themselves when dropped half way; `discard` finds what is
//! left by the lease alone. Large things never come through here: only paths and digests.

use std::path::PathBuf;
use std::sync::Arc;

use ganger_shared::delivery::Usage;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::WorkerId;
use ganger_shared::link::{Lease, Started};
use ganger_shared::spec::Assignment;
use ganger_shared::time::DurationMs;
use tokio::sync::mpsc;

use crate::bulk::Bulk;
use crate::config::Config;
use crate::isolation::Host;
use crate::output::Capture;
use crate::process::{Exit, TreeHandle};

pub use ganger_worker_core::attempt::{Ending, Evidence, Handed};

/// Events of one executor that may wait for its attempt; a full channel makes the executor wait.
pub const EVENTS_WAITING_MAX: usize = 64;
/// Commands that may wait for an executor; more are refused.
pub const COMMANDS_WAITING_MAX: usize = 16;

/// What every step may use: one per worker, cheap to clone.
#[derive(Clone, Debug)]
pub struct Site {
    /// What the worker was told.
    pub config: Arc<Config>,
    /// Who the worker is.
    pub worker: WorkerId,
    /// What its host allows.
    pub host: Arc<Host>,
    /// Artifacts and sources, to and from the coordinator.
    pub bulk: Bulk,
}

impl Site {
    /// Bare mirrors of repositories, one directory each.
    pub fn mirrors(&self) -> PathBuf {
        self.config.data_dir.join("mirrors")
    }

    /// Directories of attempts and checks, one per lease.
    pub fn attempts(&self) -> PathBuf {
        self.config.data_dir.join("attempts")
    }

    /// The directory of one lease: its name holds run, work and epoch, so none is used twice.
    pub fn attempt(&self, lease: &Lease) -> PathBuf {
        let work = lease.work.to_string().replace(['/', ':', '@'], "~");
        self.attempts().join(format!("{}~{work}~{}", lease.run, lease.epoch))
    }

    /// Records of started programs, for the sweep at the next start.
    pub fn records(&self) -> PathBuf {
        self.config.data_dir.join("processes")
    }

    /// A place for files that live for one transfer.
    pub fn transfers(&self) -> PathBuf {
        self.config.data_dir.join("transfers")
    }
}

/// The lease an assignment is held under.
pub fn lease_of(assignment: &Assignment) -> Lease {
    Lease { run: assignment.run.clone(), work: assignment.work.clone(), epoch: assignment.epoch }
}

/// The place an attempt works in, as `workspace::prepare` made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Everything of this lease is below this directory.
    pub dir: PathBuf,
    /// The tree it works in; the program starts there.
    pub tree: PathBuf,
    /// Its own HOME.
    pub home: PathBuf,
    /// Its own temporary directory.
    pub tmp: PathBuf,
    /// Output, envelopes and logs; not in the attempt's sight.
    pub evidence: PathBuf,
    /// Host-side git over the tree: `GIT_DIR`, index and config that are ours; absent without a
    /// source.
    pub git: Option<PathBuf>,
}

/// A started executor.
///
/// Dropping it ends the executor and, with its process tree, everything it started.
#[derive(Debug)]
pub struct Running {
    /// How it was started, as reported to the coordinator.
    pub started: Started,
    /// Where commands go.
    pub commands: mpsc::Sender<ExecCommand>,
    /// The tree's rungs; absent for an executor without a process.
    pub tree: Option<TreeHandle>,
    /// The task that drives it, ended by dropping this.
    pub driver: tokio_util::task::AbortOnDropHandle<()>,
}

/// What an executor tells; the same for every kind of agent (design section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecEvent {
    /// The agent speaks its protocol; a plain program is there at once.
    Started {
        /// Its session, where it has one.
        session: Option<String>,
        /// The model that answers, where it says so.
        model: Option<String>,
    },
    /// It printed something.
    Activity {
        /// Lines since the last event of this kind.
        lines: u64,
        /// The last of them, cut to 200 bytes.
        last_line: String,
    },
    /// A tool is being used.
    ToolStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A tool is done.
    ToolEnd {
        /// The call.
        id: String,
        /// Whether it did what it was asked.
        ok: bool,
    },
    /// The agent asks whether it may; the executor's policy has already answered.
    Permission {
        /// The tool.
        tool: String,
        /// What was answered.
        allowed: bool,
    },
    /// What was used so far, all sessions of this attempt together; never falls.
    Usage(Usage),
    /// How full the agent's context is.
    Context {
        /// 0 to 100.
        percent: u8,
    },
    /// The agent tries something again by itself.
    Retry {
        /// Why.
        class: FailureClass,
        /// How long it waits before.
        wait_ms: DurationMs,
    },
    /// Its provider asked to slow down.
    RateLimit {
        /// How long, where it says so.
        wait_ms: Option<DurationMs>,
    },
    /// A piece of the agent's words, cut to 200 bytes; the whole is in the output.
    Text {
        /// The words.
        text: String,
    },
    /// It made a file worth keeping.
    Artifact {
        /// Where it is.
        path: PathBuf,
    },
    /// It is over, the tree of processes included. Always the last, always sent unless dropped.
    Ended(Box<ExecEnd>),
}

/// What an executor is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecCommand {
    /// Go on with this.
    Prompt {
        /// What to do.
        text: String,
    },
    /// The answer to a question.
    Answer {
        /// Of which question.
        id: String,
        /// The answer.
        text: String,
    },
    /// The first rung of the stop ladder: by the agent's protocol, else SIGINT.
    Interrupt,
    /// Something to mind from now on.
    Steer {
        /// What.
        text: String,
    },
    /// Make room in the context.
    Compact,
    /// End in good order once the present turn is done.
    Stop,
}

/// How an executor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecEnd {
    /// `None`: protocol and program ended well. Whether that is a success, evidence decides.
    pub failure: Option<Failure>,
    /// How the program ended; absent where it had none or nobody could say.
    pub exit: Option<Exit>,
    /// Nothing of its process tree is left, as was seen.
    pub confirmed: bool,
    /// What it did, in its own words.
    pub summary: String,
    /// It declared that nothing had to change.
    pub no_change: bool,
    /// Permissions that were denied to it.
    pub denied: Vec<String>,
    /// What it used.
    pub usage: Usage,
    /// Its session.
    pub session: Option<String>,
    /// How long the program ran.
    pub duration_ms: DurationMs,
    /// What was kept of its outputs.
    pub captures: Vec<Capture>,
}

/// What is known of an ended attempt before its evidence is collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Its end so far. `Finished` asks for a delivery (or a measured check) or for the reason why it
    /// is none; `Failed` for the same failure, its message completed, and what is left; `Stopped`
    /// for `Handed::Nothing` with usage and output.
    pub ending: Ending,
    /// What the executor said last; absent where it was never started or given up.
    pub end: Option<Box<ExecEnd>>,
}

/// Whether the tree of an ended attempt is kept for people (design section 6: 7 days).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It handed everything in: remove it.
    Nothing,
    /// It failed or was stopped: keep the tree until it is reclaimed.
    Tree,
}

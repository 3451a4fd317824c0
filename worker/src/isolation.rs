//! How much of the host an attempt may see, and which means hold its processes together.
//!
//! Here are the words (`Containment`, `Bind`, `Access`) and `probe`, which finds out by really
//! trying what this host allows. The mounting itself is in `shim/mounts.rs`, because only a fresh
//! single-threaded process can do it. Networks are deliberately not separated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::process::{Exit, ProcessTree, Spawn, Stdin};

mod cgroup_parent;

pub use cgroup_parent::cgroup_parent;

/// What keeps the processes of one attempt together, so that all of them can be ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// A PID namespace: the whole tree dies with its first process, even if the shim is killed.
    PidNamespace {
        /// Whether it takes a user namespace to be allowed to make one.
        user_namespace: bool,
    },
    /// A cgroup v2 leaf below `parent`, ended with `cgroup.kill`.
    Cgroup {
        /// The directory in which the leaf is made.
        parent: PathBuf,
    },
    /// No help from the host: descendants of the subreaper, stopped and killed in rounds.
    Descendants,
}

/// How a bound path may be used inside the private root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Readable only.
    ReadOnly,
    /// Writes reach the host's directory.
    Shared,
    /// Writes stay with the attempt: an overlay whose changes land below `scratch`.
    Copy {
        /// An existing directory of the attempt, on a file system that can hold overlay data.
        scratch: PathBuf,
    },
}

/// One path of the host made visible inside the private root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The path on the host; it must exist.
    pub source: PathBuf,
    /// Where it appears.
    pub target: PathBuf,
    /// What may be done with it.
    pub access: Access,
}

impl Bind {
    /// Shows `path` at its own place.
    pub fn at_its_place(path: impl Into<PathBuf>, access: Access) -> Self {
        let path = path.into();
        Self { source: path.clone(), target: path, access }
    }
}

/// What an attempt sees of the file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Everything the worker's user sees.
    Host,
    /// System paths, the given binds, and nothing else.
    Private {
        /// The attempt's own directories and its declared caches.
        binds: Vec<Bind>,
        /// Paths below the system paths that stay out of sight (a token file in `/etc`).
        hidden: Vec<PathBuf>,
    },
}

/// How one attempt is contained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// What holds its processes.
    pub hold: Hold,
    /// What it sees.
    pub view: View,
}

impl Containment {
    /// True if the attempt sees only its own directory: the fact behind the label `isolated`.
    pub fn isolated(&self) -> bool {
        match self.view {
            View::Private { .. } => true,
            View::Host => false,
        }
    }
}

/// What this host allows, found by trying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The strongest hold that worked.
    pub hold: Hold,
    /// Whether a private root worked: the worker's label `isolated`.
    pub isolated: bool,
    /// Whether `Access::Copy` worked inside the private root.
    pub overlay: bool,
    /// What was tried and refused, for `doctor` and the evidence.
    pub refused: BTreeMap<String, String>,
}

impl Host {
    /// The strongest containment this host allows for an attempt with these binds.
    pub fn contain(&self, binds: Vec<Bind>, hidden: Vec<PathBuf>) -> Containment {
        let view = if self.isolated { View::Private { binds, hidden } } else { View::Host };
        Containment { hold: self.hold.clone(), view }
    }
}

/// Each trial is one `true`; a host that needs longer than this is treated as refusing.
const TRIAL: Duration = Duration::from_secs(10);

/// Finds out what this host allows by running the shim with each means, strongest first.
///
/// `scratch` is a directory of the worker in which the trials may leave nothing behind but empty
/// directories. Call it once per worker start: the answer does not change while the host runs.
pub async fn probe(shim: &Path, scratch: &Path) -> Host {
    let mut refused = BTreeMap::new();
    let mut found = None;
    for user_namespace in [false, true] {
        let hold = Hold::PidNamespace { user_namespace };
        for view in [View::Private { binds: vec![], hidden: vec![] }, View::Host] {
            if found.is_some() {
                break;
            }
            let isolated = matches!(view, View::Private { .. });
            let name = format!("pid_namespace user={user_namespace} private_root={isolated}");
            match attempt(shim, scratch, Containment { hold: hold.clone(), view }).await {
                Ok(()) => found = Some((hold.clone(), isolated)),
                Err(why) => drop(refused.insert(name, why)),
            }
        }
    }
    let (hold, isolated) = match found {
        Some(found) => found,
        None => (without_namespaces(shim, scratch, &mut refused).await, false),
    };
    let overlay = isolated && can_overlay(shim, scratch, &hold, &mut refused).await;
    Host { hold, isolated, overlay, refused }
}

async fn without_namespaces(
    shim: &Path,
    scratch: &Path,
    refused: &mut BTreeMap<String, String>,
) -> Hold {
    let tried = match cgroup_parent() {
        Some(parent) => {
            let hold = Hold::Cgroup { parent };
            let containment = Containment { hold: hold.clone(), view: View::Host };
            attempt(shim, scratch, containment).await.map(|()| hold)
        }
        None => Err("no writable cgroup v2 directory".to_owned()),
    };
    tried.unwrap_or_else(|why| {
        refused.insert("cgroup".to_owned(), why);
        Hold::Descendants
    })
}

async fn can_overlay(
    shim: &Path,
    scratch: &Path,
    hold: &Hold,
    refused: &mut BTreeMap<String, String>,
) -> bool {
    let (lower, upper) = (scratch.join("probe-lower"), scratch.join("probe-upper"));
    let made = std::fs::create_dir_all(&lower).and_then(|()| std::fs::create_dir_all(&upper));
    let tried = match made {
        Ok(()) => {
            let bind = Bind {
                source: lower.clone(),
                target: PathBuf::from("/mnt/cache"),
                access: Access::Copy { scratch: upper.clone() },
            };
            let view = View::Private { binds: vec![bind], hidden: vec![] };
            attempt(shim, scratch, Containment { hold: hold.clone(), view }).await
        }
        Err(error) => Err(error.to_string()),
    };
    // Left-overs are harmless and named after us, so a failure to remove them is no finding.
    let _ = std::fs::remove_dir_all(&lower);
    let _ = std::fs::remove_dir_all(&upper);
    tried.map_err(|why| refused.insert("overlay".to_owned(), why)).is_ok()
}

/// One real try: `true` under this containment, ended and empty.
async fn attempt(shim: &Path, scratch: &Path, containment: Containment) -> Result<(), String> {
    let spawn = Spawn {
        attempt: "probe".to_owned(),
        argv: ["/bin/sh", "-c", "exit 0"].map(str::to_owned).to_vec(),
        cwd: PathBuf::from("/"),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        stdin: Stdin::Null,
        containment,
        records: scratch.join("probe-records"),
    };
    let mut tree = ProcessTree::spawn(shim, spawn).await.map_err(|error| error.to_string())?;
    let (exit, stopped) = tokio::time::timeout(TRIAL, tree.ended())
        .await
        .map_err(|_| "the trial did not end in time".to_owned())?;
    match (exit, stopped.confirmed) {
        (Some(Exit::Code(0)), true) => Ok(()),
        (exit, confirmed) => Err(format!("trial ended with {exit:?}, confirmed empty {confirmed}")),
    }
}

//! The shim proper: starts the program under its hold, passes on the rungs, and ends the whole
//! tree when told to, when the program has ended, and when the worker is gone.

use std::collections::BTreeSet;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use super::cgroup::Leaf;
use super::events::{Children, Ear, Nursery, Ready, wait};
use super::init::{ToInit, signal};
use super::{launch, leaf, namespaces};
use crate::isolation::Hold;
use crate::process::table::{self, MARKER, Stat};
use crate::process::wire::{
    InitReport, Job, Orders, Report, Rung, SHIM_ARGUMENT, Streams, ear, hand_over, hear, say,
};
use crate::process::{Exit, Fingerprint, KILL_PATIENCE, LaunchError, Started, end_all};

/// What holds the tree, with what it takes to use it.
enum Held {
    Namespace { init: Fingerprint, socket: UnixStream },
    Cgroup(Leaf),
    Descendants,
}

struct Tree {
    program: Fingerprint,
    held: Held,
}

pub(super) fn run(
    orders: Orders,
    streams: Streams,
    control: &UnixStream,
    asked: BufReader<UnixStream>,
) -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let begun = match orders.containment.hold.clone() {
        Hold::PidNamespace { user_namespace } => in_namespace(orders, streams, user_namespace),
        Hold::Cgroup { parent } => {
            let path = leaf(&parent, &orders.marker);
            Leaf::make(parent, path).and_then(|leaf| {
                let program = leaf.within(|| launch::launch(&orders, streams))?;
                Ok((Tree { program: child(program), held: Held::Cgroup(leaf) }, None))
            })
        }
        Hold::Descendants => launch::launch(&orders, streams)
            .map(|program| (Tree { program: child(program), held: Held::Descendants }, None)),
    };
    let (tree, from_init) = match begun {
        Ok(begun) => begun,
        Err(error) => return say(control, &Report::Failed(error)),
    };
    // From here on the worker may be gone at any time: what it cannot hear is still done.
    let _ = say(control, &Report::Started(tree.started()));
    let init_silent = from_init.is_none();
    let ears = std::iter::once(asked).chain(from_init).map(Ear::new).collect();
    let course = Course {
        tree,
        control,
        ears,
        exit: None,
        barren: false,
        init_silent,
        init_exit: None,
        killed: None,
    };
    let survivors = course.follow()?;
    let _ = say(control, &Report::Empty { survivors });
    Ok(())
}

type Begun = (Tree, Option<BufReader<UnixStream>>);

/// Starts the first process of a new PID namespace and has it start the program.
fn in_namespace(orders: Orders, streams: Streams, user: bool) -> Result<Begun, LaunchError> {
    namespaces::pid(user, orders.uid, orders.gid)?;
    let broken = |error: io::Error| LaunchError::new("speak with the namespace", error);
    let (socket, theirs) = UnixStream::pair().map_err(broken)?;
    let init = Command::new("/proc/self/exe")
        .arg(SHIM_ARGUMENT)
        .env_clear()
        .env(MARKER, &orders.marker)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| LaunchError::new("start the namespace", error))?;
    let init = child(init.id().cast_signed());
    hand_over(&socket, &streams).map_err(broken)?;
    drop(streams);
    say(&socket, &Job::Init(orders)).map_err(broken)?;
    let mut lines = ear(&socket).map_err(broken)?;
    let inner = match hear(&mut lines).map_err(broken)? {
        Some(InitReport::Launched { pid }) => pid,
        Some(InitReport::Failed(error)) => return Err(error),
        Some(InitReport::Exited(_)) | None => {
            return Err(LaunchError::new("speak with the namespace", "its first process ended"));
        }
    };
    let program = table::seen_from_outside(init.pid, inner)
        .ok_or_else(|| LaunchError::new("find the program", format!("inner pid {inner}")))?;
    say(&socket, &ToInit::Watch).map_err(broken)?;
    Ok((Tree { program, held: Held::Namespace { init, socket } }, Some(lines)))
}

/// The fingerprint of a child of ours that nobody has reaped yet.
fn child(pid: i32) -> Fingerprint {
    Stat::read(pid).expect("an unreaped child is in the process table").fingerprint()
}

impl Tree {
    fn started(&self) -> Started {
        let (init, cgroup) = match &self.held {
            Held::Namespace { init, .. } => (Some(*init), None),
            Held::Cgroup(leaf) => (None, Some(leaf.path.clone())),
            Held::Descendants => (None, None),
        };
        Started { program: self.program, init, cgroup }
    }

    fn signal(&self, rung: Rung) {
        match &self.held {
            // An init that does not listen is on its way out, and the program with it.
            Held::Namespace { socket, .. } => drop(say(socket, &ToInit::Rung(rung))),
            Held::Cgroup(_) | Held::Descendants => signal(self.program.pid, rung),
        }
    }

    /// Kills everything below us; returns who is left.
    fn kill(&self) -> Vec<i32> {
        match &self.held {
            Held::Namespace { init, .. } => drop(init.signal(Signal::KILL)),
            // A program may have moved itself out of the leaf: the rounds are never left out.
            Held::Cgroup(leaf) => drop(leaf.kill()),
            Held::Descendants => {}
        }
        let me = BTreeSet::from([std::process::id().cast_signed()]);
        let left = end_all(|| table::descendants(&me), KILL_PATIENCE);
        left.iter().map(|process| process.pid).collect()
    }
}

/// Which ear hears whom.
const WORKER: usize = 0;

/// One tree from its start to its end.
struct Course<'a> {
    tree: Tree,
    control: &'a UnixStream,
    ears: Vec<Ear>,
    exit: Option<Exit>,
    barren: bool,
    init_silent: bool,
    /// A killed init takes the program with it without a word about how that ended.
    init_exit: Option<Exit>,
    killed: Option<(Instant, Vec<i32>)>,
}

impl Course<'_> {
    /// Until nobody is left, or the survivors of the kill have been waited for in vain.
    fn follow(mut self) -> io::Result<Vec<i32>> {
        let mut nursery = Nursery::watch()?;
        while !(self.barren && self.init_silent) {
            let patience =
                self.killed.as_ref().map(|(at, _)| KILL_PATIENCE.saturating_sub(at.elapsed()));
            match wait(&mut nursery, &self.ears, patience)? {
                Ready::Ear(WORKER) => self.hear_worker(),
                Ready::Ear(init) => self.hear_init(init),
                Ready::Children(Children::Reaped(pid, exit)) => self.reaped(pid, exit),
                Ready::Children(Children::Barren) => self.barren = true,
                Ready::Timeout => return Ok(self.killed.map(|(_, left)| left).unwrap_or_default()),
            }
        }
        if let (None, Some(exit)) = (self.exit, self.init_exit) {
            self.exited(exit);
        }
        Ok(Vec::new())
    }

    fn hear_worker(&mut self) {
        match self.ears[WORKER].hear() {
            Some(Rung::Kill) | None => self.kill(),
            Some(rung) => self.tree.signal(rung),
        }
    }

    fn hear_init(&mut self, init: usize) {
        match self.ears[init].hear() {
            Some(InitReport::Exited(exit)) => self.exited(exit),
            Some(InitReport::Launched { .. } | InitReport::Failed(_)) => {}
            None => self.init_silent = true,
        }
    }

    fn reaped(&mut self, pid: i32, exit: Exit) {
        let init = match &self.tree.held {
            Held::Namespace { init, .. } => Some(init.pid),
            Held::Cgroup(_) | Held::Descendants => None,
        };
        if init.is_none() && pid == self.tree.program.pid {
            self.exited(exit);
        } else if init == Some(pid) {
            self.init_exit = Some(exit);
        }
    }

    fn exited(&mut self, exit: Exit) {
        if self.exit.is_none() {
            self.exit = Some(exit);
            let _ = say(self.control, &Report::Exited(exit));
        }
        // What the program left running has nobody to work for any more.
        self.kill();
    }

    fn kill(&mut self) {
        if self.killed.is_none() {
            let at = Instant::now();
            self.killed = Some((at, self.tree.kill()));
        }
    }
}

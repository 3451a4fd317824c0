//! The first process of an attempt's PID namespace: arranges what the attempt sees, starts the
//! program, reaps orphans, and by its own end ends everybody in the namespace.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::events::{Children, Ear, Nursery, Ready, wait};
use super::{launch, mounts, namespaces, root};
use crate::isolation::{Hold, View};
use crate::process::LaunchError;
use crate::process::wire::{InitReport, Orders, Rung, Streams, say};

/// What the shim tells the first process of the namespace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToInit {
    /// The program's pid has been noted; from now on it may be reaped.
    Watch,
    /// Signal the program's group.
    Rung(Rung),
}

pub(super) fn run(
    orders: &Orders,
    streams: Streams,
    control: &UnixStream,
    told: BufReader<UnixStream>,
) -> io::Result<()> {
    // Twice safe: the shim's death also ends `told`, should it have come before this line.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let program = match prepare(orders).and_then(|()| launch::launch(orders, streams)) {
        Ok(pid) => pid,
        Err(error) => return say(control, &InitReport::Failed(error)),
    };
    say(control, &InitReport::Launched { pid: program })?;
    let mut ears = [Ear::new(told)];
    // Until the shim has looked it up, an exited program must stay visible as a zombie.
    if ears[0].hear::<ToInit>().is_none() {
        return Ok(());
    }
    let mut nursery = Nursery::watch()?;
    loop {
        match wait(&mut nursery, &ears, None)? {
            Ready::Ear(ear) => match ears[ear].hear() {
                Some(ToInit::Rung(rung)) => signal(program, rung),
                Some(ToInit::Watch) => {}
                None => return Ok(()),
            },
            Ready::Children(Children::Reaped(pid, exit)) if pid == program => {
                return say(control, &InitReport::Exited(exit));
            }
            Ready::Children(Children::Reaped(..)) => {}
            Ready::Children(Children::Barren) | Ready::Timeout => return Ok(()),
        }
    }
}

fn prepare(orders: &Orders) -> Result<(), LaunchError> {
    let user_namespace = match orders.containment.hold {
        Hold::PidNamespace { user_namespace } => user_namespace,
        Hold::Cgroup { .. } | Hold::Descendants => false,
    };
    namespaces::mounts()?;
    match &orders.containment.view {
        View::Private { binds, hidden } => {
            root::enter(binds, hidden, orders.uid == 0)?;
            namespaces::drop_capabilities()?;
        }
        View::Host => mounts::fresh_proc()?,
    }
    if user_namespace {
        namespaces::own_ids(orders.uid, orders.gid)?;
    }
    // Nobody inside may trace this process or look through its `/proc` entry at the host.
    nix::sys::prctl::set_dumpable(false).map_err(|error| LaunchError::new("close init", error))
}

/// Signals the program's group.
pub(super) fn signal(program: i32, rung: Rung) {
    let signal = match rung {
        Rung::Interrupt => Signal::SIGINT,
        Rung::Terminate => Signal::SIGTERM,
        Rung::Kill => Signal::SIGKILL,
    };
    // A group that is gone needs no signal.
    let _ = killpg(Pid::from_raw(program), signal);
}

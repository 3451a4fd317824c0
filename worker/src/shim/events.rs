//! What can happen to a shim, waited for in one place: lines from the other sides, their silence,
//! and the ends of children. No threads: a process that has made a PID namespace may have none.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;

use crate::process::Exit;
use crate::process::wire::hear;

/// What the children of this process have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    /// This one ended; it may be an orphan that fell to us.
    Reaped(i32, Exit),
    /// None is left. A subreaper without children has no descendants either.
    Barren,
}

/// The ends of children, told by SIGCHLD.
pub(super) struct Nursery {
    signals: SignalFd,
    told: VecDeque<Children>,
}

impl Nursery {
    /// Must follow the last start of a child: a program would inherit the blocked signal.
    pub(super) fn watch() -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let mut nursery = Self { signals, told: VecDeque::new() };
        // Who ended before the signal was blocked is not told by it.
        nursery.reap();
        Ok(nursery)
    }

    fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => {
                    self.told.push_back(Children::Reaped(pid.as_raw(), Exit::Code(code)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    let exit = Exit::Signal(signal as i32);
                    self.told.push_back(Children::Reaped(pid.as_raw(), exit));
                }
                Ok(WaitStatus::StillAlive) => return,
                Err(Errno::EINTR) | Ok(_) => {}
                Err(_) => return self.told.push_back(Children::Barren),
            }
        }
    }
}

/// The lines of one other side.
pub(super) struct Ear {
    /// `None` once the other side is silent for good.
    lines: Option<BufReader<UnixStream>>,
}

impl Ear {
    pub(super) fn new(lines: BufReader<UnixStream>) -> Self {
        Self { lines: Some(lines) }
    }

    fn has_line_waiting(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| !lines.buffer().is_empty())
    }

    /// The next line, which must be there or coming; `None` if there will be no more.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Option<T> {
        // A line that cannot be read is the end too: the other side is not what it should be.
        let heard = hear(self.lines.as_mut()?).ok().flatten();
        if heard.is_none() {
            self.lines = None;
        }
        heard
    }
}

/// What to look at next.
pub(super) enum Ready {
    /// This ear has a line, or has just fallen silent.
    Ear(usize),
    /// A child ended, or none is left.
    Children(Children),
    /// Nothing happened in time.
    Timeout,
}

/// Waits until something happens, for as long as `patience` lasts if it is given.
pub(super) fn wait(
    nursery: &mut Nursery,
    ears: &[Ear],
    patience: Option<Duration>,
) -> io::Result<Ready> {
    if let Some(waiting) = ears.iter().position(Ear::has_line_waiting) {
        return Ok(Ready::Ear(waiting));
    }
    if let Some(told) = nursery.told.pop_front() {
        return Ok(Ready::Children(told));
    }
    let heard = look(nursery, ears, patience)?;
    match heard {
        Some(0) => {
            while nursery.signals.read_signal()?.is_some() {}
            nursery.reap();
            // A signal whose child was reaped with another's says nothing new: look again.
            nursery
                .told
                .pop_front()
                .map_or_else(|| wait(nursery, ears, patience), |told| Ok(Ready::Children(told)))
        }
        Some(source) => Ok(Ready::Ear(source - 1)),
        None => Ok(Ready::Timeout),
    }
}

/// Which source is ready: 0 is the nursery, then the ears in order.
fn look(nursery: &Nursery, ears: &[Ear], patience: Option<Duration>) -> io::Result<Option<usize>> {
    let listening = |ear: &Ear| ear.lines.is_some();
    let open: Vec<usize> = (0..ears.len()).filter(|at| listening(&ears[*at])).collect();
    let mut sources = vec![PollFd::from_borrowed_fd(nursery.signals.as_fd(), PollFlags::IN)];
    for lines in ears.iter().filter_map(|ear| ear.lines.as_ref()) {
        sources.push(PollFd::from_borrowed_fd(lines.get_ref().as_fd(), PollFlags::IN));
    }
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    loop {
        match poll(&mut sources, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(None),
            Ok(_) => break,
        }
    }
    // Lines before children: what init says of the program comes before init's own end.
    let ready = (1..sources.len()).chain([0]).find(|at| !sources[*at].revents().is_empty());
    Ok(ready.map(|at| if at == 0 { 0 } else { open[at - 1] + 1 }))
}

//! What can happen to a shim, as one channel: each source has a thread that only waits. They start
//! after the namespaces are made, because only a single-threaded process may make those.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use serde::de::DeserializeOwned;

use crate::process::Exit;
use crate::process::wire::hear;

/// Waits for every child, orphans that fell to us included, and ends when there is none left.
///
/// A subreaper without children has no descendants either: `barren` proves the tree empty.
pub(super) fn reap<E: Send + 'static>(
    events: mpsc::Sender<E>,
    reaped: fn(i32, Exit) -> E,
    barren: fn() -> E,
) {
    thread::spawn(move || {
        loop {
            let ended = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(WaitStatus::Exited(pid, code)) => Some((pid, Exit::Code(code))),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    Some((pid, Exit::Signal(signal as i32)))
                }
                Err(Errno::ECHILD) => break,
                Ok(_) | Err(_) => None,
            };
            if let Some((pid, exit)) = ended
                && events.send(reaped(pid.as_raw(), exit)).is_err()
            {
                return;
            }
        }
        let _ = events.send(barren());
    });
}

/// Passes on every line of the other side, and its silence.
pub(super) fn listen<T: DeserializeOwned + 'static, E: Send + 'static>(
    mut lines: BufReader<UnixStream>,
    events: mpsc::Sender<E>,
    heard: fn(T) -> E,
    silence: fn() -> E,
) {
    thread::spawn(move || {
        // A line that cannot be read is the end too: the other side is not what it should be.
        while let Ok(Some(line)) = hear(&mut lines) {
            if events.send(heard(line)).is_err() {
                return;
            }
        }
        let _ = events.send(silence());
    });
}

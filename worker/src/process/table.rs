//! The host's process table, read from `/proc`: who lives, who descends from whom, who is who.
//!
//! A process is known by its pid *and* start time; a pid alone is never trusted. Nothing here is
//! found by name, and the only deed is one signal to one proved process.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The variable in an attempt's environment that carries its marker.
///
/// It deliberately does not begin with `GANGER_`: those names never reach an agent.
pub const MARKER: &str = "ATTEMPT_MARKER";

/// One process of this boot: its pid and its start time in clock ticks since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The process id as the worker sees it.
    pub pid: i32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub start: u64,
}

impl Fingerprint {
    /// The fingerprint of the process that has `pid` now, if one does and it is not a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        stat.alive().then(|| stat.fingerprint())
    }

    /// True while exactly this process lives; a zombie does not.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Signals exactly this process; false if it has gone, however its pid is used now.
    pub fn signal(self, signal: Signal) -> bool {
        // The pidfd pins the process first, so the pid cannot be recycled after the comparison.
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        self.is_alive() && pidfd_send_signal(&pidfd, signal).is_ok()
    }
}

/// One line of the process table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) state: char,
    pub(crate) start: u64,
}

impl Stat {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        // The name in the second field may hold any byte, so it is read as bytes.
        let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&line))
    }

    fn parse(pid: i32, line: &str) -> Option<Self> {
        // The name is in brackets and may itself hold brackets and blanks: count from the last one.
        let fields: Vec<&str> = line[line.rfind(')')? + 1..].split_ascii_whitespace().collect();
        Some(Self {
            pid,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    pub(crate) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { pid: self.pid, start: self.start }
    }
}

/// This boot's id; after another boot no recorded process can live.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Every process there is, zombies included.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Stat::read)
        .collect()
}

/// The living processes below `roots`, the roots not included.
pub(crate) fn descendants(roots: &BTreeSet<i32>) -> BTreeSet<Fingerprint> {
    let table = all();
    let mut family = roots.clone();
    // A child may stand before its parent in the table: repeat until nobody new is found.
    loop {
        let before = family.len();
        family.extend(
            table
                .iter()
                .filter(|stat| family.contains(&stat.parent))
                .map(|s| s.pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    table
        .iter()
        .filter(|stat| stat.alive() && family.contains(&stat.pid) && !roots.contains(&stat.pid))
        .map(Stat::fingerprint)
        .collect()
}

/// The marker in the environment a process was started with, if it can be read.
pub(crate) fn marker_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{MARKER}=");
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(prefix.as_bytes()))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// The living processes whose environment carries this marker.
pub(crate) fn marked(marker: &str) -> BTreeSet<Fingerprint> {
    all()
        .iter()
        .filter(|stat| stat.alive() && marker_of(stat.pid).as_deref() == Some(marker))
        .map(Stat::fingerprint)
        .collect()
}

/// The process that `inner` is called inside the namespace whose first process is `init`.
pub(crate) fn seen_from_outside(init: i32, inner: i32) -> Option<Fingerprint> {
    all().iter().filter(|stat| stat.parent == init).find_map(|stat| {
        let status = fs::read_to_string(format!("/proc/{}/status", stat.pid)).ok()?;
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let innermost: i32 = ids.split_ascii_whitespace().last()?.parse().ok()?;
        (innermost == inner).then(|| stat.fingerprint())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = "7 (a) b) (c) S 3 7 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n";
        let expected = Stat { pid: 7, parent: 3, session: 5, state: 'S', start: 4711 };
        assert_eq!(Stat::parse(7, line), Some(expected));
    }

    /// R240: a pid alone proves nothing.
    #[test]
    fn another_start_time_is_another_process_and_gets_no_signal() {
        let me = Fingerprint::of(std::process::id().cast_signed()).expect("we live");
        let other = Fingerprint { start: me.start + 1, ..me };
        assert!(me.is_alive());
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::KILL), "the signal would have ended this test");
    }
}

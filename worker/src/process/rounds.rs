//! Ending a set of processes for which the host offers no handle: stop all, then kill all, until
//! none is left. Which processes belong to the set is the caller's question.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::table::Fingerprint;

/// Between two looks at processes that were killed but are not gone yet.
const PAUSE: Duration = Duration::from_millis(2);

/// Kills everything `find` finds until it finds nothing; returns who is left after `patience`.
///
/// They are stopped first: a stopped process can no longer fork, so a tree that forks faster than
/// we kill comes to rest, and nobody becomes an untraceable orphan before being found.
pub(crate) fn end_all(
    find: impl Fn() -> BTreeSet<Fingerprint>,
    patience: Duration,
) -> BTreeSet<Fingerprint> {
    let deadline = Instant::now() + patience;
    let mut known = BTreeSet::new();
    loop {
        stop_all(&find, &mut known, deadline);
        known.retain(|process| process.is_alive());
        if known.is_empty() || Instant::now() >= deadline {
            return known;
        }
        for process in &known {
            process.signal(Signal::KILL);
        }
        pause();
    }
}

fn stop_all(
    find: &impl Fn() -> BTreeSet<Fingerprint>,
    known: &mut BTreeSet<Fingerprint>,
    deadline: Instant,
) {
    loop {
        let fresh: BTreeSet<_> = find().difference(known).copied().collect();
        if fresh.is_empty() || Instant::now() >= deadline {
            return;
        }
        for process in &fresh {
            process.signal(Signal::STOP);
        }
        known.extend(fresh);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing reports the end of a process that is not our child: look again a little later"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

//! What several of these tests need: a runtime, a family of unruly processes, and eyes on `/proc`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ganger_worker::isolation::{Containment, Hold, View, cgroup_parent};
use ganger_worker::process::{
    Exit, Fingerprint, ProcessRecord, ProcessTree, Spawn, Stdin, Stopped,
};
use tokio::io::AsyncReadExt;

/// The longest any state is waited for.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A child, a child in a session of its own, a double-forked daemon, a daemon without an
/// environment, and a forker that ignores TERM. Ends only if told to.
pub const FAMILY: &str = "
    sleep 1000 &
    setsid sleep 1000 &
    (setsid sh -c 'sleep 1000 & exit' &)
    (setsid env -i /bin/sleep 1000 &)
    (trap '' TERM INT; while :; do sleep 0.02; done) &
    echo ready
    wait";

/// Those of the family that sleep for good: all but the forker.
const SLEEPERS: usize = 4;

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE * 2, work).await.unwrap() })
}

/// Every hold this host allows, all of which must keep the same promises.
pub fn holds() -> Vec<Hold> {
    vec![
        Hold::PidNamespace { user_namespace: false },
        Hold::PidNamespace { user_namespace: true },
        Hold::Cgroup { parent: cgroup_parent().expect("this host has cgroup v2") },
        Hold::Descendants,
    ]
}

pub fn shim() -> &'static Path {
    Path::new("/proc/self/exe")
}

pub fn open(hold: Hold) -> Containment {
    Containment { hold, view: View::Host }
}

/// A shell script as an attempt's program.
pub fn script(text: &str, containment: Containment, records: &Path) -> Spawn {
    program(&["/bin/sh", "-c", text], containment, records)
}

pub fn program(argv: &[&str], containment: Containment, records: &Path) -> Spawn {
    Spawn {
        attempt: "build/a/1".to_owned(),
        argv: argv.iter().map(|part| (*part).to_owned()).collect(),
        cwd: PathBuf::from("/"),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        stdin: Stdin::Null,
        containment,
        records: records.to_owned(),
    }
}

/// Runs a program to the end of its tree: standard output, exit, end.
pub async fn run(spawn: Spawn) -> (String, Option<Exit>, Stopped) {
    let mut tree = ProcessTree::spawn(shim(), spawn).await.unwrap();
    let mut text = Vec::new();
    tree.take_stdout().unwrap().read_to_end(&mut text).await.unwrap();
    let (exit, stopped) = tree.ended().await;
    (String::from_utf8_lossy(&text).into_owned(), exit, stopped)
}

pub fn confirmed() -> Stopped {
    Stopped { confirmed: true, survivors: vec![] }
}

/// The only record in the directory.
pub fn record(records: &Path) -> ProcessRecord {
    let paths = record_paths(records);
    assert_eq!(paths.len(), 1, "{paths:?}");
    ProcessRecord::read(&paths[0]).unwrap()
}

pub fn record_paths(records: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(records) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Starts the family and waits until all of it stands.
pub async fn family(
    containment: Containment,
    records: &Path,
) -> (ProcessTree, BTreeSet<Fingerprint>) {
    let tree = ProcessTree::spawn(shim(), script(FAMILY, containment, records)).await.unwrap();
    let members = standing(record(records).shim.unwrap());
    (tree, members)
}

/// Waits for the family below this shim: everybody in it, the shim included.
pub fn standing(shim: Fingerprint) -> BTreeSet<Fingerprint> {
    let mut members = BTreeSet::new();
    until("the family stands", || {
        members = below(shim.pid);
        let sleeps = |text: &str| text.starts_with("sleep 1000") || text.starts_with("/bin/sleep");
        let lasting = members.iter().filter(|member| sleeps(&command(member.pid))).count();
        lasting == SLEEPERS
    });
    members.insert(shim);
    members
}

/// Waits until a condition holds, not for a time.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        look_again_later();
    }
}

#[expect(clippy::disallowed_methods, reason = "polls for a state of foreign processes")]
fn look_again_later() {
    std::thread::sleep(Duration::from_millis(2));
}

pub fn alive(members: &BTreeSet<Fingerprint>) -> Vec<(i32, String)> {
    let living = members.iter().filter(|member| member.is_alive());
    living.map(|member| (member.pid, command(member.pid))).collect()
}

fn command(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

/// Everybody who descends from `root`.
pub fn below(root: i32) -> BTreeSet<Fingerprint> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let Some(pid) = entry.unwrap().file_name().to_str().and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let rest = &stat[stat.rfind(')').unwrap() + 2..];
        parents.insert(pid, rest.split(' ').nth(1).unwrap().parse::<i32>().unwrap());
    }
    let descends = |pid: &i32| {
        std::iter::successors(Some(*pid), |at| parents.get(at).copied())
            .skip(1)
            .any(|at| at == root)
    };
    parents.keys().filter(|pid| descends(pid)).filter_map(|pid| Fingerprint::of(*pid)).collect()
}

//! After a crash: ends what recorded programs left behind, and exactly that.
//!
//! Ours is whoever matches a record's (boot id, pid, start time), carries its marker, sits in its
//! cgroup, or descends from one of these. Nobody is found by name, and a recycled pid is spared.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::record::ProcessRecord;
use super::table::{self, Fingerprint};
use super::{KILL_PATIENCE, end_all};

/// More records than this in one directory are not ours to guess about.
const RECORDS_MAX: usize = 10_000;

/// What became of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The record's file.
    pub path: PathBuf,
    /// Whose it was, if it could be read.
    pub attempt: Option<String>,
    /// What was found and done.
    pub outcome: SweptOutcome,
}

/// What was found and done for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweptOutcome {
    /// Written in another boot: nothing of it can live.
    OtherBoot,
    /// Nothing of it lived any more.
    NothingLeft,
    /// These were ended, and nothing is left.
    Killed(BTreeSet<Fingerprint>),
    /// These could not be ended; the record is kept.
    Survivors(BTreeSet<Fingerprint>),
    /// The record cannot be read; it is kept under the name `*.unreadable`.
    Unreadable(String),
}

/// Why the directory of records could not be swept at all.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The directory cannot be listed.
    #[error("list process records in {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The boot id cannot be read, so no record can be judged.
    #[error("read this boot's id")]
    BootId(#[source] io::Error),
    /// There are too many records.
    #[error("sweep {}: more than {RECORDS_MAX} process records", path.display())]
    TooMany {
        /// The directory.
        path: PathBuf,
    },
}

/// Sweeps every record in the directory; blocks until done, so call it before work begins.
pub fn sweep(records: &Path) -> Result<Vec<Swept>, SweepError> {
    let boot_id = table::boot_id().map_err(SweepError::BootId)?;
    let mut swept = Vec::new();
    for path in listed(records)? {
        let entry = match ProcessRecord::read(&path) {
            Ok(record) => sweep_one(&record, records, &boot_id, path),
            Err(error) => {
                // Kept for a person to look at, but out of the way of the next sweep.
                let _ = fs::rename(&path, path.with_extension("unreadable"));
                let why = format!("{error}: {}", error.source);
                Swept { path, attempt: None, outcome: SweptOutcome::Unreadable(why) }
            }
        };
        swept.push(entry);
    }
    Ok(swept)
}

fn listed(records: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(records)?.take(RECORDS_MAX + 1) {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => paths.push(path),
                // Cut off in the middle of a write: the record it was to replace still stands,
                // and if there was none, nothing had been started yet.
                Some("draft") => fs::remove_file(path)?,
                Some(_) | None => {}
            }
        }
        paths.sort();
        Ok(paths)
    };
    let paths = match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(SweepError::List { path: records.to_owned(), source }),
        Ok(paths) => paths,
    };
    if paths.len() > RECORDS_MAX {
        return Err(SweepError::TooMany { path: records.to_owned() });
    }
    Ok(paths)
}

fn sweep_one(record: &ProcessRecord, records: &Path, boot_id: &str, path: PathBuf) -> Swept {
    let outcome =
        if record.boot_id == boot_id { end_recorded(record) } else { SweptOutcome::OtherBoot };
    if !matches!(outcome, SweptOutcome::Survivors(_)) {
        // A record that stays is only swept once more.
        let _ = record.remove(records);
    }
    Swept { path, attempt: Some(record.attempt.clone()), outcome }
}

/// Ends everything that belongs to a record of this boot.
pub(crate) fn end_recorded(record: &ProcessRecord) -> SweptOutcome {
    let found = belonging(record);
    if let Some(leaf) = &record.cgroup {
        // Absent on hosts and for records that never had one; the rounds below see to the rest.
        let _ = fs::write(leaf.join("cgroup.kill"), "1");
    }
    let survivors = end_all(|| belonging(record), KILL_PATIENCE);
    reap(&found);
    if !survivors.is_empty() {
        return SweptOutcome::Survivors(survivors);
    }
    if let Some(leaf) = &record.cgroup {
        let _ = fs::remove_dir(leaf);
    }
    if found.is_empty() { SweptOutcome::NothingLeft } else { SweptOutcome::Killed(found) }
}

fn belonging(record: &ProcessRecord) -> BTreeSet<Fingerprint> {
    let recorded = [record.shim, record.init, record.program].into_iter().flatten();
    let mut ours: BTreeSet<_> = recorded.filter(|process| process.is_alive()).collect();
    ours.extend(table::marked(&record.marker));
    ours.extend(in_cgroup(record.cgroup.as_deref()));
    ours.extend(orphans_of_ours(&record.marker));
    let roots = ours.iter().map(|process| process.pid).collect();
    ours.extend(table::descendants(&roots));
    ours
}

fn in_cgroup(leaf: Option<&Path>) -> BTreeSet<Fingerprint> {
    let Some(leaf) = leaf else { return BTreeSet::new() };
    let listed = fs::read_to_string(leaf.join("cgroup.procs")).unwrap_or_default();
    listed.lines().filter_map(|pid| Fingerprint::of(pid.parse().ok()?)).collect()
}

/// Processes that fell to us when a shim was killed, and that no other attempt's marker claims.
///
/// A live shim adopts its own orphans and children of ours stay in our session, so a child in a
/// foreign session without another's marker can only come from a shim that is gone.
fn orphans_of_ours(marker: &str) -> BTreeSet<Fingerprint> {
    let me = std::process::id().cast_signed();
    let Some(own) = table::Stat::read(me) else { return BTreeSet::new() };
    table::all()
        .iter()
        .filter(|stat| stat.alive() && stat.parent == me && stat.session != own.session)
        .filter(|stat| table::marker_of(stat.pid).is_none_or(|other| other == marker))
        .map(table::Stat::fingerprint)
        .collect()
}

/// Takes the exit status of those that had become our children, so that no zombie stays.
fn reap(found: &BTreeSet<Fingerprint>) {
    for process in found {
        let pid = nix::unistd::Pid::from_raw(process.pid);
        // Most are not our children (ECHILD), and the shim's own status belongs to its keeper,
        // which is content to find it taken.
        let _ = nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
    }
}

//! Who this worker is: its lasting id, kept in its data directory, and the lock that keeps a second
//! process out of it.
//!
//! Not here: what the worker offers.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ganger_log::{Lock, LockError};
use ganger_shared::ids::{InstanceId, InvalidId, WorkerId};
use thiserror::Error;
use uuid::Uuid;

/// Where the lasting id stands.
const ID_FILE: &str = "worker.id";
/// The file that is locked while a worker's process uses the directory.
const LOCK_FILE: &str = "worker.lock";

/// Why a worker does not know who it is.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// Another worker's process uses the data directory.
    #[error("use {}: process {pid} on {host} uses it already", dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// The other process.
        pid: u32,
        /// Its machine.
        host: String,
    },
    /// The directory or one of its files cannot be used.
    #[error("use {}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What stands in the file is no id.
    #[error("read {}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: InvalidId,
    },
}

/// One start of a worker's process, the only one in its data directory while this lives.
#[derive(Debug)]
pub struct Identity {
    /// The lasting id.
    pub worker: WorkerId,
    /// This start.
    pub instance: InstanceId,
    _lock: Lock,
}

impl Identity {
    /// Takes the data directory for this process; makes a new worker of an empty one.
    pub fn take(dir: &Path) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::File { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let lock = Lock::take(&dir.join(LOCK_FILE)).map_err(|error| match error {
            LockError::Held { owner, .. } => {
                IdentityError::InUse { dir: dir.to_owned(), pid: owner.pid, host: owner.host }
            }
            LockError::Io { path, source } => IdentityError::File { path, source },
        })?;
        let worker = lasting(&dir.join(ID_FILE), dir)?;
        let instance = InstanceId::parse(&Uuid::now_v7().to_string())
            .expect("a uuid is letters, digits and dashes");
        Ok(Self { worker, instance, _lock: lock })
    }
}

fn lasting(path: &Path, dir: &Path) -> Result<WorkerId, IdentityError> {
    let failed = |source| IdentityError::File { path: path.to_owned(), source };
    match fs::read_to_string(path) {
        Ok(text) => WorkerId::parse(text.trim())
            .map_err(|source| IdentityError::Form { path: path.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = Uuid::now_v7().to_string();
            write_synced(path, dir, &id).map_err(failed)?;
            Ok(WorkerId::parse(&id).expect("a uuid is letters, digits and dashes"))
        }
        Err(error) => Err(failed(error)),
    }
}

fn write_synced(path: &Path, dir: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = File::create(&draft)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use super::*;

    #[test]
    fn a_worker_stays_who_it_is_and_every_start_is_another_instance() {
        let dir = tempfile::tempdir().unwrap();
        let first = Identity::take(dir.path()).unwrap();
        let (worker, instance) = (first.worker.clone(), first.instance.clone());
        drop(first);
        let second = Identity::take(dir.path()).unwrap();
        assert_eq!(second.worker, worker);
        assert_ne!(second.instance, instance);
    }

    #[test]
    fn a_second_process_on_one_directory_is_refused_with_the_owners_pid() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Identity::take(dir.path()).unwrap();
        match Identity::take(dir.path()) {
            Err(IdentityError::InUse { pid, .. }) => assert_eq!(pid, std::process::id()),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn an_id_file_that_holds_no_id_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(ID_FILE), "not an id!").unwrap();
        let error = Identity::take(dir.path()).unwrap_err();
        assert!(error.to_string().contains(ID_FILE), "{error}");
    }
}

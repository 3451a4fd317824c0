//! The durable record of one started program: enough to prove, after any crash, which processes
//! were ours. Written and synced before the program exists, removed when none of it is left.
//!
//! No decisions about what to kill; that is `sweep.rs`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::table::Fingerprint;

/// One started program, or the intent to start one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Whose program it is.
    pub attempt: String,
    /// Unique per program; also in the environment of its processes and in its cgroup's name.
    pub marker: String,
    /// The boot in which it was started.
    pub boot_id: String,
    /// The shim, once there is one.
    pub shim: Option<Fingerprint>,
    /// The first process of its PID namespace.
    pub init: Option<Fingerprint>,
    /// The program itself.
    pub program: Option<Fingerprint>,
    /// Its cgroup leaf, known before it is made.
    pub cgroup: Option<PathBuf>,
}

/// Why a record could not be written, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("{deed} process record {}", path.display())]
pub struct RecordError {
    /// What was tried.
    pub deed: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's word.
    #[source]
    pub source: io::Error,
}

impl ProcessRecord {
    /// Where this record lies.
    pub fn path(&self, records: &Path) -> PathBuf {
        records.join(format!("{}.json", self.marker))
    }

    /// Makes the record durable; blocks on the disk.
    pub fn write(&self, records: &Path) -> Result<(), RecordError> {
        let path = self.path(records);
        let written = || {
            fs::create_dir_all(records)?;
            let draft = path.with_extension("draft");
            let mut file = File::create(&draft)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(records)?.sync_all()
        };
        written().map_err(|source| RecordError { deed: "write", path, source })
    }

    /// Reads one record.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let read = || Ok(serde_json::from_slice(&fs::read(path)?)?);
        read().map_err(|source| RecordError { deed: "read", path: path.to_owned(), source })
    }

    /// Forgets the program. Not synced: a record that comes back after a crash is swept again.
    pub fn remove(&self, records: &Path) -> Result<(), RecordError> {
        let path = self.path(records);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(RecordError { deed: "remove", path, source }),
            Ok(()) => Ok(()),
        }
    }
}

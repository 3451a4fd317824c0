//! One process per directory: a locked file that says who holds it.
//!
//! The lock is the kernel's (`flock`), so it ends with its process however that ends; the text in
//! the file only tells a person who it was. Not here: deciding what to do about the other one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A held lock; dropping it lets the next process in.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The process that holds a lock, as it wrote itself down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its process id; 0 when the file could not be read.
    pub pid: u32,
    /// Its machine.
    pub host: String,
}

/// Why a lock was not taken.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("take {}: process {} on {} holds it", path.display(), owner.pid, owner.host)]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        owner: Owner,
    },
    /// The lock file could not be created, locked or written.
    #[error("take {}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock at `path` for this process, at once or not at all.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { path: path.to_owned(), owner: owner(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0).map_err(io)?;
        writeln!(file, "{} {}", std::process::id(), host()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

fn owner(file: &mut File) -> Owner {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let (pid, host) = match read {
        Ok(_) => text.trim_end().split_once(' ').unwrap_or(("", "")),
        Err(_) => ("", ""),
    };
    Owner { pid: pid.parse().unwrap_or(0), host: host.to_owned() }
}

fn host() -> String {
    nix::unistd::gethostname()
        .map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use super::*;

    #[test]
    fn a_second_taker_is_refused_with_the_owners_pid_and_let_in_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::take(&path).unwrap();
        match Lock::take(&path) {
            Err(LockError::Held { owner, .. }) => assert_eq!(owner.pid, std::process::id()),
            other => panic!("expected a refusal, got {other:?}"),
        }
        drop(lock);
        Lock::take(&path).unwrap();
    }
}

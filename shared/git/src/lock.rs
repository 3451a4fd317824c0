//! One lock per repository, between tasks and between processes.
//!
//! A lock file in the repository's directory is taken with `flock`. Every taker opens the file
//! anew, so the same lock also keeps tasks of one process apart: no registry, no shared state.
//! The kernel lets go of it when its holder dies. A wait ends after `Limits::lock_wait` with
//! [`Error::RepoBusy`]; nothing ever goes on without the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// Its name does not end in `.lock`, which git itself would take for one of its own.
const FILE: &str = "ganger-busy";
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A held lock; it is let go of when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _file: File,
}

/// Takes the lock of the repository at `dir`, waiting up to `wait_max` for another holder.
pub(crate) async fn take(
    operation: &'static str,
    dir: &Path,
    wait_max: Duration,
) -> Result<Held, Error> {
    let path = dir.join(FILE);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(Error::files(operation, &path))?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Held { _file: file }),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => {
                return Err(Error::Files { operation, path, source });
            }
        }
        let waited = since.elapsed();
        if waited >= wait_max {
            return Err(Error::RepoBusy { operation, dir: dir.to_owned(), waited });
        }
        look_again_later().await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "flock wakes nobody across a deadline: a blocking one could not be given up"
)]
async fn look_again_later() {
    tokio::time::sleep(LOOK_AGAIN).await;
}

//! Trees prepared ahead, each used once.
//!
//! The pool of a repository is a directory; to take a tree is to rename it away, which only one can
//! do. So there is no shared state: not between attempts, not between this worker's starts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ganger_git::{Checkout, Mirror};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::RepositoryId;
use ganger_shared::spec::Source;

use super::{make_private, open_mirror};
use crate::attempts::port::Site;
use crate::executor::{failed, file_failed};

/// Trees kept ready for each repository.
pub const WARM_MAX: usize = 2;
/// Repositories for which trees are kept ready; the longest unused go first.
const POOLS_MAX: usize = 8;
/// Begins the name of a tree that is still being made.
const MAKING: &str = "making-";

/// A tree of `source` at `dest`: one from the pool where there is one, else made now.
pub(super) async fn take(
    site: &Site,
    mirror: &Mirror,
    source: &Source,
    dest: &Path,
) -> Result<Checkout, Failure> {
    for ready in ready(&pool(site, &source.repository)) {
        // Somebody else may have taken it.
        if fs::rename(&ready, dest).is_err() {
            continue;
        }
        let moved = match Checkout::open(mirror, dest) {
            Ok(checkout) => checkout.reset_to(&source.commit).await,
            Err(error) => Err(error),
        };
        match moved {
            Ok(checkout) => return Ok(checkout),
            Err(error) => {
                tracing::warn!(%error, "a tree prepared ahead is of no use");
                fs::remove_dir_all(dest).map_err(|error| file_failed("remove", dest, &error))?;
            }
        }
    }
    let made = Checkout::prepare(mirror, dest, &source.commit).await;
    made.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))
}

/// Prepares trees of `source` until the pool is full; gives how many were made.
///
/// Returns at once where another call is at it. May be dropped at any await.
pub async fn refill(site: &Site, source: &Source) -> Result<usize, Failure> {
    let pool = pool(site, &source.repository);
    make_private(&pool).map_err(|error| file_failed("make", &pool, &error))?;
    let Some(_held) = only_one(&pool)? else { return Ok(0) };
    let mirror = open_mirror(site, &source.repository).await?;
    clear_unfinished(&pool)?;
    let mut made = 0;
    while ready(&pool).len() < WARM_MAX {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let making = pool.join(format!("{MAKING}{name}"));
        let prepared = Checkout::prepare(&mirror, &making, &source.commit).await;
        prepared.map_err(|error| failed(FailureClass::WorkspaceFailed, &error))?;
        let done = pool.join(name);
        fs::rename(&making, &done).map_err(|error| file_failed("keep", &done, &error))?;
        made += 1;
    }
    forget_oldest(&site.config.data_dir.join("warm"), &pool)?;
    Ok(made)
}

fn pool(site: &Site, repository: &RepositoryId) -> PathBuf {
    site.config.data_dir.join("warm").join(repository.as_str())
}

/// Trees that can be taken, the oldest first.
fn ready(pool: &Path) -> Vec<PathBuf> {
    let mut ready: Vec<PathBuf> =
        entries(pool).into_iter().filter(|path| path.is_dir() && !is_unfinished(path)).collect();
    ready.sort();
    ready
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MAKING))
}

/// Held by the one call that fills this pool; the kernel lets go of it when its holder dies.
fn only_one(pool: &Path) -> Result<Option<File>, Failure> {
    let path = pool.join("filling");
    let file = File::create(&path).map_err(|error| file_failed("make", &path, &error))?;
    Ok(file.try_lock().is_ok().then_some(file))
}

/// Left by a call that was dropped or killed; we hold the lock, so nobody is at them.
fn clear_unfinished(pool: &Path) -> Result<(), Failure> {
    for path in entries(pool).into_iter().filter(|path| is_unfinished(path)) {
        fs::remove_dir_all(&path).map_err(|error| file_failed("remove", &path, &error))?;
    }
    Ok(())
}

/// Keeps the number of pools in bounds.
fn forget_oldest(warm: &Path, own: &Path) -> Result<(), Failure> {
    let mut pools: Vec<_> = entries(warm)
        .into_iter()
        .filter(|pool| pool != own)
        .filter_map(|pool| Some((fs::metadata(&pool).ok()?.modified().ok()?, pool)))
        .collect();
    pools.sort();
    let surplus = (pools.len() + 1).saturating_sub(POOLS_MAX);
    for (_, pool) in pools.into_iter().take(surplus) {
        fs::remove_dir_all(&pool).map_err(|error| file_failed("remove", &pool, &error))?;
    }
    Ok(())
}

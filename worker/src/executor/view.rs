//! What an attempt sees of its worker's host.
//!
//! Its own tree, home and temporary directory; the directories its PATH names; and directories that
//! variables let through point to (a package cache, a toolchain), which it may change only in a
//! copy of its own. The mounting is in `shim`.

use std::fs;
use std::path::{Path, PathBuf};

use ganger_shared::failure::Failure;
use ganger_shared::spec::Assignment;

use super::{environment, file_failed};
use crate::attempts::port::{Room, Site};
use crate::isolation::{Access, Bind, Containment};

/// Already there, read-only; see `shim/root.rs`.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store"];
/// Never shown because a variable names it.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/tmp"];

pub(super) fn containment(
    site: &Site,
    assignment: &Assignment,
    room: &Room,
    more: &[Bind],
) -> Result<Containment, Failure> {
    if !site.host.isolated {
        return Ok(site.host.contain(vec![], vec![]));
    }
    let own = [&room.tree, &room.home, &room.tmp];
    let mut binds: Vec<Bind> =
        own.into_iter().map(|path| Bind::at_its_place(path, Access::Shared)).collect();
    let data = real(&site.config.data_dir);
    let shown = |path: &Path, binds: &[Bind]| {
        in_system(path) || binds.iter().any(|bind| path.starts_with(&bind.target))
    };
    let names = std::env::var_os("PATH").unwrap_or_default();
    for path in std::env::split_paths(&names).filter(|path| may_be_shown(path, &data)) {
        if !shown(&path, &binds) {
            binds.push(Bind::at_its_place(path, Access::ReadOnly));
        }
    }
    for (name, value) in environment::let_through(assignment)? {
        let path = PathBuf::from(value);
        if name == "PATH" || !may_be_shown(&path, &data) || shown(&path, &binds) {
            continue;
        }
        // The PATH may have shown a part of it read-only.
        binds.retain(|bind| !bind.target.starts_with(&path));
        let access = cache_access(site, room, &name)?;
        binds.push(Bind::at_its_place(path, access));
    }
    for bind in more {
        if !shown(&bind.target, &binds) {
            binds.push(bind.clone());
        }
    }
    let hidden = hidden(site, room);
    Ok(site.host.contain(binds, hidden))
}

fn cache_access(site: &Site, room: &Room, name: &str) -> Result<Access, Failure> {
    if !site.host.overlay {
        return Ok(Access::ReadOnly);
    }
    let scratch = room.dir.join("caches").join(name);
    fs::create_dir_all(&scratch).map_err(|error| file_failed("prepare", &scratch, &error))?;
    Ok(Access::Copy { scratch })
}

fn in_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// An existing directory that is neither the host's machinery nor holds, or lies in, the worker's.
fn may_be_shown(path: &Path, data: &Path) -> bool {
    let real = real(path);
    path.is_absolute()
        && path.is_dir()
        && path.components().count() > 1
        && path != Path::new("/tmp")
        && !NEVER.iter().any(|never| path.starts_with(never))
        && !real.starts_with(data)
        && !data.starts_with(&real)
}

/// Where the worker's own directory or token lies below the system paths, it stays out of sight.
fn hidden(site: &Site, room: &Room) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> =
        Some(real(&site.config.token_file)).filter(|path| in_system(path)).into_iter().collect();
    let data = real(&site.config.data_dir);
    if in_system(&data) {
        // Not the directory itself: the attempt's own is in it.
        for dir in [data.clone(), real(&site.attempts())] {
            let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
            hidden.extend(
                entries.map(|entry| entry.path()).filter(|path| !room.dir.starts_with(path)),
            );
        }
    }
    hidden
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

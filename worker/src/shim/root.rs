//! What an isolated attempt sees: a root made of read-only system paths, its own binds, fresh
//! `/proc`, `/dev` and `/tmp`, and nothing else of the host.
//!
//! The order matters: a first tmpfs becomes the root so that every source stays reachable under
//! `/old`, then `/new` is filled, then `/new` becomes the root and everything older is dropped.

use std::env::set_current_dir;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use nix::unistd::pivot_root;

use super::mounts::{
    bind, detach_propagation, hide, link, overlay, proc_at, read_only, refused, tmpfs,
};
use crate::isolation::{Access, Bind};
use crate::process::LaunchError;

/// Programs, libraries and configuration. Links among them (`/bin` to `usr/bin`) stay links.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/sys"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` through which the host's root could reach the host: a core pattern alone runs
/// a program outside. They stay readable.
const KERNEL_SWITCHES: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// Parts of `/proc` that show the host's memory and keys.
const KERNEL_SECRETS: [&str; 3] = ["kcore", "keys", "timer_list"];

/// Replaces this process's root by the attempt's own.
///
/// `as_root` says that to the host the program will be root.
pub(super) fn enter(binds: &[Bind], hidden: &[PathBuf], as_root: bool) -> Result<(), LaunchError> {
    detach_propagation()?;
    let binds = resolved(binds)?;
    let name_service = fs::canonicalize("/etc/resolv.conf").ok();
    become_temporary_root()?;
    for path in SYSTEM {
        system(Path::new(path))?;
    }
    if let Some(real) = name_service.filter(|path| path.starts_with("/run")) {
        show_file(&real)?;
    }
    devices()?;
    basics()?;
    if as_root {
        guard_kernel()?;
    }
    for each in &binds {
        show(each)?;
    }
    for path in hidden {
        hide(&new(path))?;
    }
    become_new_root()
}

/// Sources without links, because links would lead nowhere under `/old`; outer targets first.
fn resolved(binds: &[Bind]) -> Result<Vec<Bind>, LaunchError> {
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| refused("bind", path, error));
    let mut resolved = Vec::new();
    for each in binds {
        let access = match &each.access {
            Access::ReadOnly => Access::ReadOnly,
            Access::Shared => Access::Shared,
            Access::Copy { scratch } => Access::Copy { scratch: real(scratch)? },
        };
        resolved.push(Bind { source: real(&each.source)?, target: each.target.clone(), access });
    }
    resolved.sort_by_key(|each| each.target.components().count());
    Ok(resolved)
}

fn old(path: &Path) -> PathBuf {
    under("/old", path)
}

fn new(path: &Path) -> PathBuf {
    under("/new", path)
}

fn under(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

fn become_temporary_root() -> Result<(), LaunchError> {
    let base = Path::new("/tmp");
    tmpfs(base, "size=64k,mode=0755")?;
    for directory in ["old", "new"] {
        make(&base.join(directory))?;
    }
    pivot_root(base, &base.join("old")).map_err(|error| refused("root", base, error))?;
    set_current_dir("/").map_err(|error| refused("root", base, error))?;
    // Bounded: an attempt that fills it is told so, the host's memory is not eaten.
    tmpfs(Path::new("/new"), "size=1m,mode=0755")
}

fn system(path: &Path) -> Result<(), LaunchError> {
    let Ok(found) = fs::symlink_metadata(old(path)) else { return Ok(()) };
    if found.is_symlink() {
        let to = fs::read_link(old(path)).map_err(|error| refused("link", path, error))?;
        return link(&to, &new(path));
    }
    bind(&old(path), &new(path))?;
    read_only(&new(path))
}

/// A file that a link in `/etc` points to, such as the resolver's configuration in `/run`.
fn show_file(path: &Path) -> Result<(), LaunchError> {
    bind(&old(path), &new(path))?;
    read_only(&new(path))
}

fn devices() -> Result<(), LaunchError> {
    let dev = Path::new("/new/dev");
    make(dev)?;
    tmpfs(dev, "size=64k,mode=0755")?;
    for name in DEVICES {
        bind(&Path::new("/old/dev").join(name), &dev.join(name))?;
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        link(Path::new(to), &dev.join(name))?;
    }
    let (shared_memory, terminals) = (dev.join("shm"), dev.join("pts"));
    make(&shared_memory)?;
    tmpfs(&shared_memory, "size=256m,mode=1777")?;
    make(&terminals)?;
    super::mounts::terminals(&terminals)
}

/// Fresh `/proc`, and places programs expect to be able to write to.
fn basics() -> Result<(), LaunchError> {
    let process_table = new(Path::new("/proc"));
    make(&process_table)?;
    proc_at(&process_table)?;
    let temporary = new(Path::new("/tmp"));
    make(&temporary)?;
    tmpfs(&temporary, "size=256m,mode=1777")?;
    make(&new(Path::new("/var")))?;
    link(Path::new("/tmp"), &new(Path::new("/var/tmp")))?;
    make(&new(Path::new("/run")))
}

fn guard_kernel() -> Result<(), LaunchError> {
    let present = |names: &[&str]| -> Vec<PathBuf> {
        let paths = names.iter().map(|name| Path::new("/new/proc").join(name));
        paths.filter(|path| path.exists()).collect()
    };
    for path in present(&KERNEL_SWITCHES) {
        bind(&path, &path)?;
        read_only(&path)?;
    }
    present(&KERNEL_SECRETS).iter().try_for_each(|path| hide(path))
}

fn show(each: &Bind) -> Result<(), LaunchError> {
    let (source, target) = (old(&each.source), new(&each.target));
    match &each.access {
        Access::Shared => bind(&source, &target),
        Access::ReadOnly => {
            bind(&source, &target)?;
            read_only(&target)
        }
        Access::Copy { scratch } => overlay(&source, &old(scratch), &target),
    }
}

fn become_new_root() -> Result<(), LaunchError> {
    let root = Path::new("/new");
    let failed = |error: nix::Error| refused("root", root, error);
    // Everything under a fresh root but its mounts is ours, so writing there would only be lost.
    super::mounts::read_only_here(root)?;
    set_current_dir(root).map_err(|error| refused("root", root, error))?;
    // The documented way to replace a root without a place for the old one: they lie stacked.
    pivot_root(".", ".").map_err(failed)?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed)?;
    set_current_dir("/").map_err(|error| refused("root", root, error))
}

fn make(directory: &Path) -> Result<(), LaunchError> {
    fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(0o755)))
        .map_err(|error| refused("directory", directory, error))
}

//! The single mounts from which `root.rs` builds what an attempt sees. Each failure names its path.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::process::LaunchError;

/// A failure to mount, with what and where.
pub(super) fn refused(what: &str, path: &Path, error: impl std::fmt::Display) -> LaunchError {
    LaunchError::new("mount", format!("{what} at {}: {error}", path.display()))
}

/// Mounts of ours must not reach the host; the host's may still go away below us.
pub(super) fn detach_propagation() -> Result<(), LaunchError> {
    let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| refused("private propagation", Path::new("/"), error))
}

/// A `/proc` of this PID namespace over the host's, for attempts that see the host.
pub(super) fn fresh_proc() -> Result<(), LaunchError> {
    detach_propagation()?;
    proc_at(Path::new("/proc"))
}

pub(super) fn proc_at(target: &Path) -> Result<(), LaunchError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), target, Some("proc"), flags, None::<&str>)
        .map_err(|error| refused("proc", target, error))
}

pub(super) fn tmpfs(target: &Path, options: &str) -> Result<(), LaunchError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), target, Some("tmpfs"), flags, Some(options))
        .map_err(|error| refused("tmpfs", target, error))
}

/// Terminals of the attempt's own.
pub(super) fn terminals(target: &Path) -> Result<(), LaunchError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = "newinstance,ptmxmode=0666,mode=620";
    mount(Some("devpts"), target, Some("devpts"), flags, Some(options))
        .map_err(|error| refused("devpts", target, error))
}

/// Makes `source` visible at `target`, which is created with what leads to it.
pub(super) fn bind(source: &Path, target: &Path) -> Result<(), LaunchError> {
    place(source, target)?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), target, None::<&str>, flags, None::<&str>)
        .map_err(|error| refused(&format!("{}", source.display()), target, error))
}

/// Makes `target` and every mount below it read-only: a recursive bind carries its submounts
/// along, and the kernel's read-only flag does not.
pub(super) fn read_only(target: &Path) -> Result<(), LaunchError> {
    let table = fs::read_to_string("/old/proc/self/mountinfo")
        .map_err(|error| refused("mount table", target, error))?;
    mount_points(&table)
        .iter()
        .filter(|point| point.starts_with(target))
        .try_for_each(|point| read_only_here(point))
}

/// Makes one mount read-only and leaves those below it alone.
pub(super) fn read_only_here(point: &Path) -> Result<(), LaunchError> {
    // Flags a user namespace may not clear have to be named again.
    let kept = statvfs(point).map_or(MsFlags::empty(), |at| locked(at.flags()));
    let flags = kept | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(None::<&str>, point, None::<&str>, flags, None::<&str>)
        .map_err(|error| refused("read-only", point, error))
}

/// `lower` at `target`, with all changes kept below `scratch`.
pub(super) fn overlay(lower: &Path, scratch: &Path, target: &Path) -> Result<(), LaunchError> {
    let (upper, work) = (scratch.join("upper"), scratch.join("work"));
    for directory in [&upper, &work, &target.to_path_buf()] {
        fs::create_dir_all(directory).map_err(|error| refused("overlay", directory, error))?;
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        escaped(lower),
        escaped(&upper),
        escaped(&work)
    );
    mount(Some("overlay"), target, Some("overlay"), MsFlags::empty(), Some(options.as_str()))
        .map_err(|error| refused("overlay", target, error))
}

/// Covers `target` so that nothing of it can be read.
pub(super) fn hide(target: &Path) -> Result<(), LaunchError> {
    match fs::metadata(target) {
        Ok(found) if found.is_dir() => {
            tmpfs(target, "size=4k,mode=0555")?;
            read_only(target)
        }
        Ok(_) => bind(Path::new("/old/dev/null"), target),
        // What is not there cannot be seen.
        Err(_) => Ok(()),
    }
}

/// A symbolic link, with what leads to it.
pub(super) fn link(to: &Path, at: &Path) -> Result<(), LaunchError> {
    symlink(to, at).map_err(|error| refused("link", at, error))
}

/// An empty directory or file to mount on, unless there is something already.
fn place(source: &Path, target: &Path) -> Result<(), LaunchError> {
    let place = || {
        if target.exists() {
            return Ok(());
        }
        if fs::metadata(source)?.is_dir() {
            return fs::create_dir_all(target);
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::OpenOptions::new().create(true).append(true).open(target).map(drop)
    };
    place().map_err(|error| refused(&format!("place for {}", source.display()), target, error))
}

fn locked(flags: FsFlags) -> MsFlags {
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    pairs.into_iter().filter(|(found, _)| flags.contains(*found)).map(|(_, kept)| kept).collect()
}

/// The fifth field of each line, with the kernel's octal escapes undone.
fn mount_points(table: &str) -> Vec<PathBuf> {
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped).collect()
}

fn unescaped(field: &str) -> PathBuf {
    let plain = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(
        plain.iter().fold(field.to_owned(), |path, (code, text)| path.replace(code, text)),
    )
}

/// Overlay options are separated by commas and colons.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace('\\', "\\\\").replace(',', "\\,").replace(':', "\\:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_blanks_are_read_as_they_are() {
        let table = "36 35 98:0 / /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n";
        assert_eq!(mount_points(table), vec![PathBuf::from("/mnt/a b")]);
    }
}

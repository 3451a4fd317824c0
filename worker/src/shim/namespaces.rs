//! Entering namespaces and giving up the privileges that making them took.
//!
//! Must run before any thread is started: the kernel refuses user namespaces otherwise.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::process::LaunchError;

/// The next child of this process will be the first of a PID namespace.
pub(super) fn pid(user_namespace: bool, uid: u32, gid: u32) -> Result<(), LaunchError> {
    if user_namespace {
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| refused("user", error))?;
        map((0, uid), (0, gid)).map_err(|error| refused("user", error))?;
    }
    unshare(CloneFlags::CLONE_NEWPID).map_err(|error| refused("pid", error))
}

/// A mount table of its own for this process.
pub(super) fn mounts() -> Result<(), LaunchError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| refused("mount", error))
}

/// Back to the ids the worker has, in a user namespace without power over the mounts.
pub(super) fn own_ids(uid: u32, gid: u32) -> Result<(), LaunchError> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| refused("user", error))?;
    map((uid, 0), (gid, 0)).map_err(|error| refused("user", error))
}

/// What a root program keeps: enough to build and install inside its root, not to leave it.
/// `SYS_ADMIN` could mount the disk, `MKNOD` could open it, `SYS_PTRACE` could take over init.
const KEPT: [CapabilitySet; 13] = [
    CapabilitySet::AUDIT_WRITE,
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::NET_BIND_SERVICE,
    CapabilitySet::NET_RAW,
    CapabilitySet::SETFCAP,
    CapabilitySet::SETGID,
    CapabilitySet::SETPCAP,
    CapabilitySet::SETUID,
    CapabilitySet::SYS_CHROOT,
];

/// Programs started from now on cannot get the capabilities that undo a private root.
pub(super) fn drop_capabilities() -> Result<(), LaunchError> {
    // The kernel knows at most 64; those it does not know yet are refused and need no dropping.
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if KEPT.contains(&capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(LaunchError::new("drop capabilities", error)),
        }
    }
    nix::sys::prctl::set_no_new_privs()
        .map_err(|error| LaunchError::new("drop capabilities", error))
}

fn map(uid: (u32, u32), gid: (u32, u32)) -> io::Result<()> {
    // Without this the kernel refuses the group map of an unprivileged process.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", uid.0, uid.1))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", gid.0, gid.1))
}

fn refused(kind: &str, error: impl std::fmt::Display) -> LaunchError {
    LaunchError::new("make namespaces", format!("{kind}: {error}"))
}

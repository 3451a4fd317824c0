//! Where this process may make cgroup v2 leaves. Only found here; making and killing leaves is the
//! shim's part. cgroup v1 is deliberately not used: it has no `cgroup.kill`.

use std::path::PathBuf;

/// The worker's own cgroup v2 directory, if the host has one that offers `cgroup.kill`.
///
/// On hybrid hosts it lies at `/sys/fs/cgroup/unified`, so the mount table is asked, not a path.
pub fn cgroup_parent() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    parent_of(&mounts, &own).filter(|parent| parent.is_dir())
}

fn parent_of(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_source, target, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(target))
    })?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(mount.join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_host_is_found_by_its_mount_table() {
        let mounts = "cgroup /sys/fs/cgroup/pids cgroup rw 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "8:pids:/\n0::/worker.service\n";
        assert_eq!(
            parent_of(mounts, own),
            Some(PathBuf::from("/sys/fs/cgroup/unified/worker.service"))
        );
    }

    #[test]
    fn a_host_without_cgroup_v2_has_no_parent() {
        assert_eq!(parent_of("cgroup /sys/fs/cgroup/pids cgroup rw 0 0\n", "8:pids:/\n"), None);
    }
}

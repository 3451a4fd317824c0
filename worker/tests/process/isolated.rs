//! What an isolated attempt sees and cannot see, asked from inside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ganger_worker::isolation::{Access, Bind, Containment, Hold, Host, View, probe};
use ganger_worker::process::Exit;

use crate::support::{block_on, confirmed, record_paths, run, script, shim};
use crate::victim;

/// Both ways into a PID namespace, with everything in `dir/attempt` visible.
fn containments(dir: &Path, extra: &[Bind], hidden: &[PathBuf]) -> Vec<Containment> {
    let attempt = dir.join("attempt");
    fs::create_dir_all(attempt.join("tmp")).unwrap();
    let mut binds = vec![Bind::at_its_place(&attempt, Access::Shared)];
    binds.extend_from_slice(extra);
    let view = View::Private { binds, hidden: hidden.to_vec() };
    [false, true]
        .map(|user_namespace| Containment {
            hold: Hold::PidNamespace { user_namespace },
            view: view.clone(),
        })
        .to_vec()
}

fn inside(text: &str, containment: Containment, dir: &Path) -> (String, Option<Exit>) {
    let mut spawn = script(text, containment, &dir.join("records"));
    spawn.cwd = dir.join("attempt");
    let (text, exit, stopped) = block_on(run(spawn));
    assert_eq!(stopped, confirmed());
    (text, exit)
}

#[cfg_attr(any(), test)]
pub fn this_host_is_probed_by_trying() {
    let dir = tempfile::tempdir().unwrap();
    let host = block_on(probe(shim(), dir.path()));
    let hold = Hold::PidNamespace { user_namespace: false };
    let expected = Host { hold, isolated: true, overlay: true, refused: [].into() };
    assert_eq!(host, expected);
    assert_eq!(record_paths(&dir.path().join("probe-records")), Vec::<PathBuf>::new());
}

/// The worker's data, other attempts and hidden files are not there; the attempt's own are.
#[cfg_attr(any(), test)]
pub fn an_attempt_sees_its_own_directory_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    for secret in ["token", "other/tree"] {
        fs::create_dir_all(dir.path().join(secret).parent().unwrap()).unwrap();
        fs::write(dir.path().join(secret), "secret").unwrap();
    }
    let hidden = [PathBuf::from("/etc/hostname"), PathBuf::from("/etc/ssl")];
    for containment in containments(dir.path(), &[], &hidden) {
        let root = dir.path().display();
        let text = format!(
            "ls {root}; cat {root}/token; ls {root}/other; cat /etc/hostname; ls /etc/ssl
             test -r /etc/passwd && echo system; echo mine > file && cat file
             touch /usr/mine /mine /etc/mine; ls /home /root /work /proc/1/root/old
             echo t > /tmp/x && echo tmp; grep -c . /proc/self/mounts > /dev/null && echo proc"
        );
        let (seen, exit) = inside(&text, containment, dir.path());
        assert_eq!(
            (seen.as_str(), exit),
            ("attempt\nsystem\nmine\ntmp\nproc\n", Some(Exit::Code(0)))
        );
        assert_eq!(fs::read_to_string(dir.path().join("attempt/file")).unwrap(), "mine\n");
        assert!(!Path::new("/usr/mine").exists() && !Path::new("/tmp/x").exists());
    }
}

#[cfg_attr(any(), test)]
pub fn an_attempt_sees_no_process_but_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for containment in containments(dir.path(), &[], &[]) {
        let text = "cd /proc; for each in [0-9]*; do echo $each; done";
        let (seen, _) = inside(text, containment, dir.path());
        assert_eq!(seen, "1\n2\n");
    }
}

#[cfg_attr(any(), test)]
pub fn a_cache_is_read_only_copied_or_shared_as_declared() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["ro", "copy", "shared", "scratch"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("old"), name).unwrap();
    }
    let bind = |name: &str, access| Bind {
        source: dir.path().join(name),
        target: PathBuf::from("/caches").join(name),
        access,
    };
    let copy = Access::Copy { scratch: dir.path().join("scratch") };
    let binds = [bind("ro", Access::ReadOnly), bind("copy", copy), bind("shared", Access::Shared)];
    for containment in containments(dir.path(), &binds, &[]) {
        let text = "cd /caches; cat */old; for each in *; do
            (echo new > $each/new) 2>/dev/null && echo \" wrote $each\"; done; cat copy/new";
        let (seen, _) = inside(text, containment, dir.path());
        assert_eq!(
            seen,
            "copyrosharedwrote copy\n wrote shared\nnew\n".replacen("wrote", " wrote", 1)
        );
        let written =
            ["ro", "copy", "shared"].map(|name| dir.path().join(name).join("new").exists());
        assert_eq!(written, [false, false, true]);
        fs::remove_file(dir.path().join("shared/new")).unwrap();
    }
}

/// An attempt of a worker that runs as root is root inside, and still cannot undo its root.
#[cfg_attr(any(), test)]
pub fn root_inside_cannot_mount_its_way_out() {
    let dir = tempfile::tempdir().unwrap();
    for containment in containments(dir.path(), &[], &[]) {
        let text = "
            mount -o remount,rw /usr && echo remounted
            umount /usr && echo unmounted
            mknod disk b 254 0 && cat disk > /dev/null && echo device
            mount -t tmpfs none /tmp && echo mounted
            cat /proc/sys/kernel/core_pattern > /dev/null || echo unreadable
            (echo 60 > /proc/sys/vm/swappiness) 2> /dev/null && echo switched
            cat /proc/1/environ > /dev/null && echo environment
            ls /proc/1/cwd/ && echo cwd
            kill -KILL 1; sleep 0.01; echo alive";
        let (seen, exit) = inside(text, containment, dir.path());
        assert_eq!((seen.as_str(), exit), ("alive\n", Some(Exit::Code(0))));
    }
}

/// The worker itself without root: a user namespace gives the same root and the same end.
#[cfg_attr(any(), test)]
pub fn without_root_an_attempt_is_isolated_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let hold = Hold::PidNamespace { user_namespace: true };
    let view = View::Private { binds: vec![], hidden: vec![] };
    let containment = serde_json::to_string(&Containment { hold, view }).unwrap();
    let status = Command::new("/proc/self/exe")
        .args([victim::ARGUMENT, &containment])
        .arg(dir.path().join("records"))
        .uid(65534)
        .gid(65534)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
}

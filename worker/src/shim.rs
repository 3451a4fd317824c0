//! The shim: one fresh process per attempt, between the worker and the attempt's program.
//!
//! It lives exactly as long as the tree it holds. It is told what to do over its standard input
//! (a socket); when that ends, the worker is gone and everything below is killed. The program's
//! streams pass by: the shim never reads or writes them. It decides nothing about when to stop.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::process::wire::{Job, ear, hear, take_over};

mod attempt;
mod cgroup;
mod events;
mod init;
mod launch;
mod mounts;
mod namespaces;
mod root;

/// The body of the hidden subcommand; returns when nothing is left of the attempt.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The worker sees the closed socket; this line is for the person reading its log.
            eprintln!("ganger shim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    close_inherited()?;
    // A session of its own: no terminal's signals, and orphans can be told from our siblings.
    // It fails only for a process that already leads a group, which then has what it needs.
    let _ = nix::unistd::setsid();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    let streams = take_over(&control)?;
    let mut orders = ear(&control)?;
    match hear(&mut orders)? {
        Some(Job::Attempt(job)) => attempt::run(job, streams, &control, orders),
        Some(Job::Init(job)) => init::run(&job, streams, &control, orders),
        None => Ok(()),
    }
}

/// Whatever a careless ancestor left open must not reach an agent.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The directory just read is in the list and closed by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// The cgroup leaf of the program with this marker.
pub(crate) fn leaf(parent: &Path, marker: &str) -> PathBuf {
    parent.join(format!("ganger-{marker}"))
}

//! Starting the program itself, with exactly the environment and streams it was given.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::process::LaunchError;
use crate::process::wire::{Orders, Streams};

/// Starts the program in a process group of its own and returns its pid.
pub(super) fn launch(orders: &Orders, streams: Streams) -> Result<i32, LaunchError> {
    let (program, arguments) = orders
        .argv
        .split_first()
        .ok_or_else(|| LaunchError::new("start the program", "no program named"))?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&orders.env)
        .current_dir(&orders.cwd)
        .stdin(Stdio::from(streams.stdin))
        .stdout(Stdio::from(streams.stdout))
        .stderr(Stdio::from(streams.stderr))
        .process_group(0)
        .spawn()
        .map_err(|error| {
            let detail = format!("{program:?} in {}: {error}", orders.cwd.display());
            LaunchError::new("start the program", detail)
        })?;
    // Not waited for through `child`: the reaping thread waits for everybody.
    Ok(child.id().cast_signed())
}

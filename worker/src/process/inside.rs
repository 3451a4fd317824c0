//! A child that a program of ours starts from inside an attempt's tree: the tool of an agent.
//!
//! It is held by the attempt's shim like everything the agent starts, so nothing is recorded here
//! and nothing has to be ended but what is called off.

use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// A command given to `/bin/sh -c`.
#[derive(Debug)]
pub(crate) struct Child(std::process::Child);

impl Child {
    /// Starts it with our environment and directory; both its outputs are our standard error,
    /// because our standard output is a protocol.
    pub(crate) fn shell(command: &str) -> io::Result<Self> {
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(output);
        shell.spawn().map(Self)
    }

    /// Whether it ended well, and how in words; `None` while it runs.
    pub(crate) fn look(&mut self) -> io::Result<Option<(bool, String)>> {
        Ok(self.0.try_wait()?.map(|status| (status.success(), status.to_string())))
    }

    /// Ends the command itself; what it started ends with the attempt.
    pub(crate) fn kill(&mut self) {
        // It may have ended just now, which is what was wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! What the worker, the shim and the first process of a namespace say to each other: JSON lines
//! over a socket pair, the program's three streams attached to the first byte.
//!
//! No decisions here. All three are the same build on the same host, so there is no versioning.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Exit, LaunchError, Started};
use crate::isolation::Containment;

/// The longest line either side accepts: arguments and environment of one program.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// The hidden argument that makes a `ganger` process a shim.
pub const SHIM_ARGUMENT: &str = "__shim";

/// Which part a fresh shim process plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    /// The shim proper, child of the worker.
    Attempt(Orders),
    /// The first process inside the shim's PID namespace.
    Init(Orders),
}

/// The program to start and how it is held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) containment: Containment,
    pub(crate) marker: String,
    /// The real ids, to which a user namespace is mapped back.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A rung of the stop ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// SIGINT to the program's process group.
    Interrupt,
    /// SIGTERM to the program's process group.
    Terminate,
    /// SIGKILL to every process of the tree.
    Kill,
}

/// What the shim tells the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Started(Started),
    Failed(LaunchError),
    Exited(Exit),
    Empty { survivors: Vec<i32> },
}

/// What the first process of a namespace tells the shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum InitReport {
    Launched { pid: i32 },
    Failed(LaunchError),
    Exited(Exit),
}

/// The program's standard streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Writes one value as a line.
pub(crate) fn say<T: Serialize>(mut socket: &UnixStream, value: &T) -> io::Result<()> {
    socket.write_all(&line(value)?)
}

/// One value as the bytes of its line, refused if the other side would refuse it.
pub(crate) fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    if bytes.len() > LINE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(bytes)
}

/// Reads one line; `None` at the end of the stream.
pub(crate) fn hear<T: DeserializeOwned>(socket: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(LINE_BYTES_MAX).expect("one mebibyte fits into u64");
    socket.take(limit).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Sends the one byte that carries the program's streams.
pub(crate) fn hand_over(socket: &UnixStream, streams: &Streams) -> io::Result<()> {
    let fds: [BorrowedFd<'_>; 3] =
        [streams.stdin.as_fd(), streams.stdout.as_fd(), streams.stderr.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for three descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(b"s")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives what `hand_over` sent and leaves the socket at the first byte after it.
pub(crate) fn take_over(socket: &UnixStream) -> io::Result<Streams> {
    let mut byte = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut iov = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        RecvAncillaryMessage::ScmCredentials(_) | _ => Vec::new(),
    });
    match (fds.next(), fds.next(), fds.next()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Streams { stdin, stdout, stderr }),
        (..) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// A reader of the other side's lines.
pub(crate) fn ear(socket: &UnixStream) -> io::Result<BufReader<UnixStream>> {
    Ok(BufReader::new(socket.try_clone()?))
}

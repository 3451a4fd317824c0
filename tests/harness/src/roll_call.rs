//! A listener of the test that units connect to: who started, how often, and who is still there.
//!
//! A unit says its name once and may wait to be let go, so a test orders what happens without any
//! clock. A connection ends with the processes that hold it, so survivors of a kill are seen too.
//! Not here: what a unit does besides.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::cluster::until;

/// The listener and everybody who ever connected.
#[derive(Debug)]
pub struct RollCall {
    listener: TcpListener,
    callers: Vec<Caller>,
}

#[derive(Debug)]
struct Caller {
    stream: TcpStream,
    said: Vec<u8>,
    gone: bool,
}

impl Caller {
    /// Its first line, once it is whole.
    fn name(&self) -> Option<String> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        Some(String::from_utf8_lossy(&self.said[..end]).into_owned())
    }

    fn listen(&mut self) {
        let mut buffer = [0; 256];
        while !self.gone {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.gone = true,
                Ok(count) => self.said.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
    }
}

impl RollCall {
    /// Listens on a free port of loopback.
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a listener can be polled");
        Self { listener, callers: Vec::new() }
    }

    /// Its address, `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.listener.local_addr().expect("a listener has an address").to_string()
    }

    /// A shell command that says the name and goes on.
    pub fn says(&self, name: &str) -> String {
        format!("bash -c 'exec 3<>{}; echo {name} >&3'", self.device())
    }

    /// A shell command that says the name and goes on when the test lets it go; it fails if the test
    /// hangs up instead.
    pub fn holds(&self, name: &str) -> String {
        format!("bash -c 'exec 3<>{}; echo {name} >&3; read -r go <&3'", self.device())
    }

    fn device(&self) -> String {
        let port = self.listener.local_addr().expect("a listener has an address").port();
        format!("/dev/tcp/127.0.0.1/{port}")
    }

    fn poll(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).expect("a connection can be polled");
            self.callers.push(Caller { stream, said: Vec::new(), gone: false });
        }
        self.callers.iter_mut().for_each(Caller::listen);
    }

    /// What was said so far, in the order in which they connected.
    pub fn names(&mut self) -> Vec<String> {
        self.poll();
        self.callers.iter().filter_map(Caller::name).collect()
    }

    /// The same, sorted.
    pub fn sorted(&mut self) -> Vec<String> {
        let mut names = self.names();
        names.sort_unstable();
        names
    }

    /// How often this name was said.
    pub fn count(&mut self, name: &str) -> usize {
        self.names().iter().filter(|said| *said == name).count()
    }

    /// Waits until this name was said so often.
    pub fn wait_for(&mut self, name: &str, count: usize) {
        until(&format!("{name} connects {count} times"), || self.count(name) >= count);
    }

    /// The names of those whose connection stands: processes that live.
    pub fn present(&mut self) -> Vec<String> {
        self.poll();
        let mut names: Vec<String> =
            self.callers.iter().filter(|caller| !caller.gone).filter_map(Caller::name).collect();
        names.sort_unstable();
        names
    }

    /// Lets everybody of this name who is there go on.
    pub fn let_go(&mut self, name: &str) {
        self.poll();
        for caller in &mut self.callers {
            if caller.name().as_deref() == Some(name) {
                // One that is gone needs no word.
                drop(caller.stream.write_all(b"go\n"));
            }
        }
    }

    /// Waits until nobody of this name is there.
    pub fn wait_until_gone(&mut self, name: &str) {
        until(&format!("no process of {name} is left"), || {
            !self.present().iter().any(|present| present == name)
        });
    }
}

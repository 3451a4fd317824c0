//! What a coordinator is started with.

use std::net::SocketAddr;
use std::path::PathBuf;

use ganger_shared::limits::Limits;

/// The settings of one coordinator.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Its own directory: journal, artifacts, mirrors, tokens.
    pub data: PathBuf,
    /// Where to write the address it listens on, for clients of this machine.
    pub endpoint_file: Option<PathBuf>,
    /// Allows unencrypted connections on an address that is not loopback.
    pub plaintext: bool,
    /// Serves although workers have seen more than the journal holds.
    pub accept_loss: bool,
    /// Times and sizes.
    pub limits: Limits,
}

impl Config {
    /// The defaults for a data directory, on a free port of the loopback address.
    pub fn new(data: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data,
            endpoint_file: None,
            plaintext: false,
            accept_loss: false,
            limits: Limits::default(),
        }
    }
}

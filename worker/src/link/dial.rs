//! How the coordinator is dialled: the connection's settings and the token every call carries.
//!
//! Not here: when to dial; `link.rs` knows.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_proto::auth::Bearer;
use ganger_proto::client::Clients;
use ganger_proto::malformed::Malformed;
use thiserror::Error;
use tonic::transport::{Channel, Endpoint};

use crate::config::InvalidConfig;

/// A silent connection is asked whether it lives this often.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A connection that does not answer that within this time is over.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a TCP connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest token file that is read.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// Why the worker has no token to show.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("read the worker's token from {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is longer than any token.
    #[error("read the worker's token from {}: it is longer than any token", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// What stands in its first line is no token.
    #[error("read the worker's token from the first line of {}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Malformed,
    },
}

/// The worker's token, read anew for each call: a renewed one is used without a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    token_file: PathBuf,
}

impl Authority {
    /// Calls carry the first line of this file.
    pub fn new(token_file: impl Into<PathBuf>) -> Self {
        Self { token_file: token_file.into() }
    }

    /// The file.
    pub fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// Clients over this channel that show the token as it stands in the file now.
    pub fn clients(&self, channel: Channel) -> Result<Clients, TokenError> {
        Ok(Clients::new(channel, self.bearer()?))
    }

    fn bearer(&self) -> Result<Bearer, TokenError> {
        let path = &self.token_file;
        let read = |source| TokenError::Read { path: path.clone(), source };
        if std::fs::metadata(path).map_err(read)?.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong { path: path.clone() });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let token = text.lines().next().unwrap_or_default().trim();
        Bearer::new(token).map_err(|source| TokenError::Form { path: path.clone(), source })
    }
}

/// The settings of both connections. Half-open ones are found by keep-alive, even while idle.
pub fn endpoint(server: &str) -> Result<Endpoint, InvalidConfig> {
    let endpoint = Endpoint::from_shared(server.to_owned())
        .map_err(|_| InvalidConfig::Server { server: server.to_owned() })?;
    Ok(endpoint
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use super::*;

    #[test]
    fn a_token_is_the_first_line_and_anything_else_is_named_with_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let authority = Authority::new(&file);
        let missing = authority.bearer().unwrap_err().to_string();
        assert!(missing.contains(file.to_str().unwrap()), "{missing}");
        std::fs::write(&file, "\n").unwrap();
        assert!(matches!(authority.bearer(), Err(TokenError::Form { .. })));
        std::fs::write(&file, "x".repeat(5_000)).unwrap();
        assert!(matches!(authority.bearer(), Err(TokenError::TooLong { .. })));
        std::fs::write(&file, "secret\nsecond line\n").unwrap();
        assert!(!format!("{:?}", authority.bearer().unwrap()).contains("secret"));
    }
}

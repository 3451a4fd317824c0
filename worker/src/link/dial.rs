//! How the coordinator is dialled: the connection's settings and the token every call carries.
//!
//! Not here: when to dial; `link.rs` knows.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Endpoint;
use tonic::{Request, Status};

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
    /// What stands in the file is no token.
    #[error("read the worker's token from {}: its first line is {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
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

    /// Puts the token on a call.
    pub fn sign<T>(&self, mut request: Request<T>) -> Result<Request<T>, TokenError> {
        let value = self.bearer()?;
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }

    fn bearer(&self) -> Result<MetadataValue<Ascii>, TokenError> {
        let path = &self.token_file;
        let wrong = |what| TokenError::Form { path: path.clone(), what };
        let read = |source| TokenError::Read { path: path.clone(), source };
        if std::fs::metadata(path).map_err(read)?.len() > TOKEN_BYTES_MAX {
            return Err(wrong("too long"));
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let token = text.lines().next().map(str::trim).unwrap_or_default();
        if token.is_empty() {
            return Err(wrong("empty"));
        }
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().map_err(|_| wrong("not printable ASCII"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The settings of both connections. Half-open ones are found by keep-alive, even while idle.
pub fn endpoint(server: &str) -> Result<Endpoint, Status> {
    let endpoint = Endpoint::from_shared(server.to_owned())
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
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
        let missing = authority.sign(Request::new(())).unwrap_err().to_string();
        assert!(missing.contains(file.to_str().unwrap()), "{missing}");
        std::fs::write(&file, "\n").unwrap();
        let empty = authority.sign(Request::new(())).unwrap_err();
        assert!(matches!(empty, TokenError::Form { what: "empty", .. }));
        std::fs::write(&file, "secret\nsecond line\n").unwrap();
        let signed = authority.sign(Request::new(())).unwrap();
        assert_eq!(signed.metadata().get("authorization").unwrap(), "Bearer secret");
        assert!(!format!("{:?}", signed.metadata()).contains("secret"));
    }
}

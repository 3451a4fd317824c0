//! The coordinator a command speaks to: its address, the token, the connection.
//!
//! Finding one that runs here is here too; starting one is `session`'s. Nothing is asked of it here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ganger_proto::auth::Bearer;
use ganger_proto::client::Clients;
use thiserror::Error as ThisError;
use tokio::net::TcpStream;
use tonic::transport::{Endpoint, Uri};

use crate::exit::Exit;
use crate::settings::Settings;
use crate::state_dir::StateDir;

/// How long a connection may take to stand.
const DIAL: Duration = Duration::from_secs(5);
/// How often a silent coordinator is asked whether it is there, and how long it may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The longest file a token is looked for in.
const TOKEN_FILE_BYTES: u64 = 64 << 10;
/// How long a coordinator of this machine may take to accept a connection.
const KNOCK: Duration = Duration::from_secs(1);

/// A coordinator that can be called.
#[derive(Debug, Clone)]
pub struct Server {
    address: String,
    /// Where a coordinator of this machine says its address anew.
    endpoint: Option<StateDir>,
    bearer: Bearer,
    clients: Clients,
}

/// Why no coordinator can be called.
#[derive(Debug, ThisError)]
pub enum ServerError {
    /// The address is not one.
    #[error("`{address}` is no coordinator's address: {reason}; write http://HOST:PORT")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no token.
    #[error(
        "no token: {} cannot be read ({source}); pass --token-file FILE or set GANGER_TOKEN_FILE \
         (a coordinator writes operator.token and worker-join.token into its data directory)",
        path.display()
    )]
    TokenFile {
        /// Where it was looked for.
        path: PathBuf,
        /// Why it could not be read.
        source: std::io::Error,
    },
    /// The file holds no token.
    #[error("no token: {} holds none in its first line ({reason})", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl ServerError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Address { .. } => Exit::Usage,
            Self::TokenFile { .. } | Self::Token { .. } => Exit::Refused,
        }
    }
}

impl Server {
    /// The coordinator at this address, with the token the settings name.
    pub fn at(address: &str, settings: &Settings) -> Result<Self, ServerError> {
        let path = settings.token_file.clone();
        let bearer = bearer(&path.unwrap_or_else(|| settings.state.operator_token()))?;
        let address = whole_address(address)?;
        let clients = dial(&address, &bearer)?;
        Ok(Self { address, endpoint: None, bearer, clients })
    }

    /// The coordinator that runs on the state directory, if one does.
    pub async fn on_state_dir(settings: &Settings) -> Result<Option<Self>, ServerError> {
        let Some(address) = settings.state.endpoint() else { return Ok(None) };
        if !answers(&address).await {
            return Ok(None);
        }
        let server = Self::at(&address, settings)?;
        Ok(Some(Self { endpoint: Some(settings.state.clone()), ..server }))
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Clients of it.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Follows a coordinator of this machine to the address it has after a restart.
    pub fn look_again(&mut self) {
        let Some(address) = self.endpoint.as_ref().and_then(StateDir::endpoint) else { return };
        if address == self.address {
            return;
        }
        if let Ok(clients) = dial(&address, &self.bearer) {
            (self.address, self.clients) = (address, clients);
        }
    }
}

/// The address with its scheme. Without one, loopback is meant: a token travels in the clear, and
/// who wants that over a network says `http://`.
pub fn whole_address(address: &str) -> Result<String, ServerError> {
    let wrong = |reason: &str| ServerError::Address {
        address: address.to_owned(),
        reason: reason.to_owned(),
    };
    let whole =
        if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let uri: Uri = whole.parse().map_err(|_| wrong("it cannot be read"))?;
    let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
    if uri.port_u16().is_none() {
        return Err(wrong("it names no port"));
    }
    match uri.scheme_str() {
        Some("http") if address.contains("://") || is_loopback(host) => Ok(whole),
        Some("http") => Err(wrong("the token would be readable on the network; say so by http://")),
        Some("https") => Err(wrong("TLS is not supported yet")),
        Some(_) | None => Err(wrong("its scheme is not http")),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn dial(address: &str, bearer: &Bearer) -> Result<Clients, ServerError> {
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|error| {
        ServerError::Address { address: address.to_owned(), reason: error.to_string() }
    })?;
    let channel = endpoint
        .connect_timeout(DIAL)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .connect_lazy();
    Ok(Clients::new(channel, bearer.clone()))
}

/// The token in the first line of a file.
fn bearer(path: &Path) -> Result<Bearer, ServerError> {
    use std::io::Read as _;
    let failed = |source| ServerError::TokenFile { path: path.to_owned(), source };
    let wrong = |reason: String| ServerError::Token { path: path.to_owned(), reason };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(TOKEN_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
    let token = text.lines().next().unwrap_or_default().trim();
    Bearer::new(token).map_err(|error| wrong(error.reason.to_string()))
}

/// Whether somebody listens there; an endpoint file outlives a coordinator that was killed.
async fn answers(address: &str) -> bool {
    let Ok(uri) = address.parse::<Uri>() else { return false };
    let (Some(host), Some(port)) = (uri.host(), uri.port_u16()) else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let knock = tokio::time::timeout(KNOCK, TcpStream::connect((host, port)));
    matches!(knock.await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    #[test]
    fn an_address_is_made_whole_or_refused() {
        let good = [
            ("http://127.0.0.1:7", "http://127.0.0.1:7"),
            ("127.0.0.1:7", "http://127.0.0.1:7"),
            ("localhost:7", "http://localhost:7"),
            ("[::1]:7", "http://[::1]:7"),
            ("http://far.example:7", "http://far.example:7"),
        ];
        for (given, expected) in good {
            assert_eq!(whole_address(given).unwrap(), expected);
        }
        // A token in the clear over a network is asked for by name.
        for bad in ["far.example:7", "https://127.0.0.1:7", "ftp://x:1", "127.0.0.1", "", "http://"]
        {
            assert!(whole_address(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_missing_token_names_the_file_and_the_way_out() {
        let error = bearer(Path::new("/nowhere/operator.token")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nowhere/operator.token") && text.contains("GANGER_TOKEN_FILE"));
        assert_eq!(error.exit(), Exit::Refused);
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, "gt-1\nmore\n").unwrap();
        assert!(bearer(&path).is_ok());
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(bearer(&path), Err(ServerError::Token { .. })));
    }

    #[tokio::test]
    async fn an_endpoint_of_a_killed_coordinator_is_not_live() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        assert!(answers(&address).await);
        drop(listener);
        assert!(!answers(&address).await);
    }
}

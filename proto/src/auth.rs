//! The bearer token of a call: how a client shows it and where a server finds it.
//!
//! Whether a token is valid and what its bearer may do is decided by the coordinator.

use std::fmt;

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::malformed::{Malformed, Reason};

const HEADER: &str = "authorization";
const SCHEME: &str = "Bearer ";

/// Adds `authorization: Bearer TOKEN` to every call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Bearer {
    /// The bearer of this token; refused where it cannot stand in a header.
    pub fn new(token: &str) -> Result<Self, Malformed> {
        let wrong = |what: &str| Malformed::new("token", Reason::Form(what.to_owned()));
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("it is not one word of printable ASCII"));
        }
        let mut value: MetadataValue<Ascii> =
            format!("{SCHEME}{token}").parse().map_err(|_| wrong("it cannot stand in a header"))?;
        // Never indexed by HTTP/2 compression, never printed by the transport's logs.
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(HEADER, self.0.clone());
        Ok(request)
    }
}

/// The token a call came with, if it came with one.
pub fn token(metadata: &MetadataMap) -> Option<&str> {
    let value = metadata.get(HEADER)?.to_str().ok()?;
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    #[test]
    fn a_server_finds_the_token_a_client_shows() {
        let request = Bearer::new("s3cret").unwrap().call(Request::new(())).unwrap();
        assert_eq!(token(request.metadata()), Some("s3cret"));
        assert_eq!(token(&MetadataMap::new()), None);
    }

    #[test]
    fn a_token_is_never_printed() {
        let bearer = Bearer::new("s3cret").unwrap();
        assert!(!format!("{bearer:?}").contains("s3cret"));
        let mut bearer = bearer;
        let request = bearer.call(Request::new(())).unwrap();
        assert!(!format!("{:?}", request.metadata()).contains("s3cret"));
    }

    #[test]
    fn a_token_that_cannot_stand_in_a_header_is_refused() {
        for token in ["", "two words", "line\nend", "é"] {
            assert!(Bearer::new(token).is_err(), "{token:?} was taken");
        }
    }
}

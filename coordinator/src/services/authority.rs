//! Whether a caller may ask: every call shows a token, and the principal it names is the actor.

use ganger_proto::{auth, status};
use ganger_shared::actor::{Actor, Role};
use ganger_shared::rejection::Rejection;
use tonic::service::Interceptor;
use tonic::{Code, Extensions, Request, Status};

use crate::tokens::Tokens;

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name the token was issued to.
    pub name: String,
    /// What the bearer may do.
    pub role: Role,
}

impl Principal {
    /// The actor of what this principal does.
    pub fn actor(&self) -> Actor {
        match self.role {
            Role::Worker => Actor::Worker(self.name.clone()),
            Role::Read | Role::Submit | Role::Judge | Role::Operate => {
                Actor::Principal(self.name.clone())
            }
        }
    }
}

/// Looks at the token of every call, before any service.
#[derive(Clone)]
pub struct Authority {
    tokens: Tokens,
}

impl Authority {
    /// An authority over these tokens.
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens }
    }
}

impl Interceptor for Authority {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = auth::token(request.metadata()) else {
            return Err(unauthenticated(
                "no token was shown; pass --token-file FILE or set GANGER_TOKEN_FILE \
                 (a coordinator writes operator.token and worker-join.token into its data directory)",
            ));
        };
        let Some(grant) = self.tokens.grant(token) else {
            return Err(unauthenticated(
                "the token is not known here, was revoked or has expired; \
                 take the one from this coordinator's data directory, or ask its operator for one",
            ));
        };
        let principal = Principal { name: grant.name, role: grant.role };
        request.extensions_mut().insert(principal);
        Ok(request)
    }
}

fn unauthenticated(message: &str) -> Status {
    status::plain(Code::Unauthenticated, "unauthenticated", message)
}

/// The caller, if it may do what needs this role.
pub(crate) fn principal(extensions: &Extensions, needs: Role) -> Result<Principal, Status> {
    any_of(extensions, &[needs])
}

/// The caller, if it may do what needs one of these roles; a refusal names the first.
pub(crate) fn any_of(extensions: &Extensions, needs: &[Role]) -> Result<Principal, Status> {
    let Some(principal) = extensions.get::<Principal>() else {
        return Err(unauthenticated("no token was shown"));
    };
    if needs.iter().any(|role| principal.role.allows(*role)) {
        return Ok(principal.clone());
    }
    let (name, has) = (principal.name.clone(), principal.role);
    let needs = needs.first().copied().unwrap_or(Role::Operate);
    Err(status::of(&Rejection::Forbidden { principal: name, has, needs }))
}

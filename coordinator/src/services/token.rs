//! Tokens: issuing, listing and ending them. Secrets are shown once; what is kept is their hash.
//!
//! The list is read from stream `system`, which also knows what was revoked and when.

use std::collections::{BTreeMap, VecDeque};

use ganger_proto::{Malformed, Reason, read, status, v1};
use ganger_shared::actor::Role;
use ganger_shared::digest::Digest;
use ganger_shared::event::SystemEvent;
use ganger_shared::ids::IdempotencyKey;
use ganger_shared::limits;
use ganger_shared::rejection::Rejection;
use ganger_shared::time::Timestamp;
use tokio::sync::Mutex;
use tonic::{Code, Request, Response, Status};

use super::ask::{blocking, call, internal, not_yet};
use super::page::{Page, Pages, order, size};
use super::{Api, Principal, principal};
use crate::journal::{EventStore, StreamName};
use crate::system;

/// The longest name of a token's bearer.
const NAME_BYTES_MAX: usize = 128;
/// Calls whose keys are remembered, oldest forgotten first.
const KEYS: usize = 1_024;

/// The service.
pub struct Issuer {
    api: Api,
    lists: Pages<Known>,
    /// Keys of this start of the coordinator. The lock makes issuing one at a time, so that a call
    /// and its repeat cannot both find the key unused; a repeat after a restart makes another token,
    /// which is in the list and can be ended: the first one's secret is lost either way.
    keys: Mutex<VecDeque<Issued>>,
}

/// One call that was carried out.
struct Issued {
    key: IdempotencyKey,
    body: Digest,
    token: Known,
}

/// A token as it is known: everything but its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    hash: Digest,
    name: String,
    role: Role,
    issued: Timestamp,
    expires: Option<Timestamp>,
    revoked: Option<Timestamp>,
}

impl Known {
    fn ended(&self, now: Timestamp) -> bool {
        self.revoked.is_some() || self.expires.is_some_and(|expires| expires <= now)
    }
}

impl From<Known> for v1::Token {
    fn from(known: Known) -> Self {
        let Known { hash, name, role, issued, expires, revoked } = known;
        Self {
            id: hash.to_string(),
            name,
            role: v1::Role::from(role).into(),
            projects: Vec::new(),
            issued_at: Some(read::to_wire_time(issued)),
            expires_at: expires.map(read::to_wire_time),
            revoked_at: revoked.map(read::to_wire_time),
        }
    }
}

impl Issuer {
    /// The service over this API.
    pub fn new(api: Api) -> Self {
        Self { api, lists: Pages::new(), keys: Mutex::new(VecDeque::new()) }
    }

    async fn issue_once(
        &self,
        caller: &Principal,
        mut request: v1::TokenServiceIssueRequest,
    ) -> Result<v1::TokenServiceIssueResponse, Status> {
        let key = std::mem::take(&mut request.idempotency_key);
        let call = call("TokenService/Issue", &key, &request, None)?;
        if !request.projects.is_empty() {
            return Err(not_yet("tokens of one project"));
        }
        let name = name(request.name)?;
        let role: Role = read::word("role", request.role)?;
        let expires = read::optional_time("expires_at", request.expires_at)?;
        let mut keys = self.keys.lock().await;
        if let Some(issued) = keys.iter().find(|issued| issued.key == call.key) {
            return issued.replayed(&call.body, self.sequence());
        }
        let tokens = &self.api.tokens;
        let secret = tokens.issue(&caller.actor(), name.clone(), role, expires).await;
        let secret = secret.map_err(|error| internal(&error))?;
        let (hash, issued) = (Digest::of(secret.as_bytes()), self.api.house.clock.utc());
        let token = Known { hash, name, role, issued, expires, revoked: None };
        keys.push_back(Issued { key: call.key, body: call.body, token: token.clone() });
        if keys.len() > KEYS {
            keys.pop_front();
        }
        Ok(v1::TokenServiceIssueResponse {
            sequence: self.sequence(),
            replayed: false,
            secret,
            token: Some(token.into()),
        })
    }

    async fn revoke_once(
        &self,
        caller: &Principal,
        request: v1::TokenServiceRevokeRequest,
    ) -> Result<v1::TokenServiceRevokeResponse, Status> {
        call("TokenService/Revoke", &request.idempotency_key, &request, None)?;
        let token = named(&self.all().await?, &request.token)?;
        let revoked = self.api.tokens.revoke(&caller.actor(), token).await;
        let revoked = revoked.map_err(|error| internal(&error))?;
        Ok(v1::TokenServiceRevokeResponse { sequence: self.sequence(), replayed: !revoked })
    }

    async fn page(
        &self,
        request: v1::TokenServiceListRequest,
    ) -> Result<v1::TokenServiceListResponse, Status> {
        let size = size(request.page_size)?;
        let filter = request.filter.unwrap_or_default();
        let roles = filter.roles.iter().map(|role| read::word("filter.roles", *role));
        let roles: Vec<Role> = roles.collect::<Result<_, Malformed>>()?;
        let (by_time, down) = match order(&request.order_by, &["name", "issued_at"])? {
            None => (false, false),
            Some((key, down)) => (key == "issued_at", down),
        };
        let page = if request.page_token.is_empty() {
            let mut all = self.all().await?;
            let now = self.api.house.clock.utc();
            all.retain(|token| {
                (filter.ended || !token.ended(now))
                    && (roles.is_empty() || roles.contains(&token.role))
            });
            all.sort_by(|a, b| {
                let by_name = a.name.cmp(&b.name).then(a.issued.cmp(&b.issued));
                if by_time { a.issued.cmp(&b.issued).then(by_name) } else { by_name }
            });
            if down {
                all.reverse();
            }
            self.lists.first(size, all, self.sequence())
        } else {
            self.lists.next(size, &request.page_token)?
        };
        let Page { rows, next, sequence } = page;
        let tokens = rows.into_iter().map(Into::into).collect();
        Ok(v1::TokenServiceListResponse { tokens, next_page_token: next, sequence })
    }

    async fn all(&self) -> Result<Vec<Known>, Status> {
        let store = self.api.house.store.clone();
        blocking(move || fold(&store)).await?.map_err(|error| internal(&error))
    }

    /// The number of the last event of stream `system`.
    fn sequence(&self) -> u64 {
        let streams = self.api.house.store.streams(StreamName::system().as_str());
        streams.first().map_or(0, |(_, sequence)| *sequence)
    }
}

impl Issued {
    /// The first answer without the secret, which was shown once.
    fn replayed(
        &self,
        body: &Digest,
        sequence: u64,
    ) -> Result<v1::TokenServiceIssueResponse, Status> {
        if self.body != *body {
            let (key, first) = (self.key.to_string(), self.body.to_string());
            let now = body.to_string();
            return Err(status::of(&Rejection::KeyReused { key, first, now }));
        }
        let token = Some(self.token.clone().into());
        let secret = String::new();
        Ok(v1::TokenServiceIssueResponse { sequence, replayed: true, secret, token })
    }
}

/// Every token there ever was, by hash.
fn fold(store: &EventStore) -> Result<Vec<Known>, system::Error> {
    let mut known: BTreeMap<Digest, Known> = BTreeMap::new();
    let mut from = 1;
    loop {
        let page = system::read(store, from, limits::PAGE)?;
        let Some(last) = page.last().map(|(seq, _)| *seq) else { break };
        from = last + 1;
        for (_, envelope) in page {
            let at = envelope.at;
            match envelope.event {
                SystemEvent::TokenIssued { name, role, hash, expires } => {
                    let token = Known { hash, name, role, issued: at, expires, revoked: None };
                    known.insert(hash, token);
                }
                SystemEvent::TokenRevoked { hash } => {
                    if let Some(token) = known.get_mut(&hash) {
                        token.revoked.get_or_insert(at);
                    }
                }
                SystemEvent::CoordinatorStarted { .. }
                | SystemEvent::SubmitRecorded { .. }
                | SystemEvent::RunQuarantined { .. }
                | SystemEvent::RunUnquarantined { .. }
                | SystemEvent::ArtifactPurged { .. } => {}
            }
        }
    }
    Ok(known.into_values().collect())
}

/// A name that can stand in an event, a log line and a report.
fn name(name: String) -> Result<String, Malformed> {
    let name = read::said("name", name)?;
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    if name.len() > NAME_BYTES_MAX || !plain {
        let form = format!("1 to {NAME_BYTES_MAX} printable ASCII characters without spaces");
        return Err(Malformed::new("name", Reason::Form(form)));
    }
    Ok(name)
}

/// The token of this id, or the only one of this bearer that has not ended.
fn named(all: &[Known], asked: &str) -> Result<Digest, Status> {
    if let Ok(hash) = asked.parse::<Digest>()
        && all.iter().any(|token| token.hash == hash)
    {
        return Ok(hash);
    }
    let open: Vec<&Known> =
        all.iter().filter(|token| token.name == asked && token.revoked.is_none()).collect();
    match open.as_slice() {
        [one] => Ok(one.hash),
        [] => {
            let message = format!("no token `{asked}`; `ganger token list` shows them");
            Err(status::plain(Code::NotFound, "unknown_token", &message))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|token| token.hash.to_string()).collect();
            let form = format!("several tokens act as `{asked}`: {}", ids.join(", "));
            Err(Malformed::new("token", Reason::Form(form)).into())
        }
    }
}

#[tonic::async_trait]
impl v1::token_service_server::TokenService for Issuer {
    async fn issue(
        &self,
        request: Request<v1::TokenServiceIssueRequest>,
    ) -> Result<Response<v1::TokenServiceIssueResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        Ok(Response::new(self.issue_once(&caller, request.into_inner()).await?))
    }

    async fn list(
        &self,
        request: Request<v1::TokenServiceListRequest>,
    ) -> Result<Response<v1::TokenServiceListResponse>, Status> {
        principal(request.extensions(), Role::Operate)?;
        Ok(Response::new(self.page(request.into_inner()).await?))
    }

    async fn revoke(
        &self,
        request: Request<v1::TokenServiceRevokeRequest>,
    ) -> Result<Response<v1::TokenServiceRevokeResponse>, Status> {
        let caller = principal(request.extensions(), Role::Operate)?;
        Ok(Response::new(self.revoke_once(&caller, request.into_inner()).await?))
    }
}

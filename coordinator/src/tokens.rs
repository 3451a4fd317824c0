//! Who may call: tokens, kept as hashes in stream `system`, and the two every new coordinator writes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ganger_shared::actor::{Actor, Role};
use ganger_shared::digest::Digest;
use ganger_shared::event::{Envelope, SystemEvent};
use ganger_shared::limits;
use ganger_shared::time::Timestamp;
use thiserror::Error;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::journal::EventStore;
use crate::system;

/// The file a new coordinator writes its operator's token to.
pub const OPERATOR_FILE: &str = "operator.token";
/// The file a new coordinator writes the token to that workers join with.
pub const WORKER_FILE: &str = "worker-join.token";

/// What a token lets its bearer do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The name its bearer acts under.
    pub name: String,
    /// What the bearer may do.
    pub role: Role,
    /// When it ends.
    pub expires: Option<Timestamp>,
}

/// The tokens in force, by hash.
pub type Table = BTreeMap<Digest, Grant>;

/// Why tokens cannot be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// The journal.
    #[error(transparent)]
    System(#[from] system::Error),
    /// A token file.
    #[error("write {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The tokens: one owner changes them, every call reads the newest.
#[derive(Debug, Clone)]
pub struct Tokens {
    store: EventStore,
    clock: Clock,
    table: Arc<watch::Sender<Arc<Table>>>,
}

impl Tokens {
    /// Folds stream `system`, and issues those of the first two tokens that never were.
    pub async fn open(store: EventStore, clock: Clock, data: &Path) -> Result<Self, Error> {
        let Folded { table, first } = fold(&store)?;
        let (table, _) = watch::channel(Arc::new(table));
        let tokens = Self { store, clock, table: Arc::new(table) };
        for (role, name, file) in
            [(Role::Operate, "operator", OPERATOR_FILE), (Role::Worker, "worker", WORKER_FILE)]
        {
            // One that was revoked does not come back.
            if !first.contains(&role) {
                let token = random_token();
                // The file comes first: a token that is valid and known to nobody locks people out.
                write_private(&data.join(file), &token)?;
                tokens.enter(&Actor::Coordinator, &token, (name.to_owned(), role), None).await?;
            }
        }
        Ok(tokens)
    }

    /// Issues a token; it is shown this once and never again.
    pub async fn issue(
        &self,
        by: &Actor,
        name: String,
        role: Role,
        expires: Option<Timestamp>,
    ) -> Result<String, Error> {
        let token = random_token();
        self.enter(by, &token, (name, role), expires).await?;
        Ok(token)
    }

    async fn enter(
        &self,
        by: &Actor,
        token: &str,
        (name, role): (String, Role),
        expires: Option<Timestamp>,
    ) -> Result<(), Error> {
        let hash = Digest::of(token.as_bytes());
        let event = SystemEvent::TokenIssued { name: name.clone(), role, hash, expires };
        self.record(by, event).await?;
        self.change(|table| {
            table.insert(hash, Grant { name, role, expires });
        });
        Ok(())
    }

    /// Ends a token. False if there is none with this hash.
    pub async fn revoke(&self, by: &Actor, hash: Digest) -> Result<bool, Error> {
        if !self.table.borrow().contains_key(&hash) {
            return Ok(false);
        }
        self.record(by, SystemEvent::TokenRevoked { hash }).await?;
        self.change(|table| {
            table.remove(&hash);
        });
        Ok(true)
    }

    /// The tokens in force.
    pub fn table(&self) -> Arc<Table> {
        self.table.borrow().clone()
    }

    /// What this token grants now.
    pub fn grant(&self, token: &str) -> Option<Grant> {
        let grant = self.table.borrow().get(&Digest::of(token.as_bytes())).cloned()?;
        let expired = grant.expires.is_some_and(|expires| expires <= self.clock.utc());
        (!expired).then_some(grant)
    }

    async fn record(&self, by: &Actor, event: SystemEvent) -> Result<(), Error> {
        let envelope = Envelope { at: self.clock.utc(), by: by.clone(), event };
        Ok(system::append(&self.store, vec![envelope]).await?)
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        self.table.send_modify(|table| change(Arc::make_mut(table)));
    }
}

/// What the journal says of tokens.
#[derive(Default)]
struct Folded {
    table: Table,
    /// The roles for which this coordinator has issued a token by itself, ever.
    first: BTreeSet<Role>,
}

fn fold(store: &EventStore) -> Result<Folded, Error> {
    let mut folded = Folded::default();
    let mut from = 1;
    loop {
        let page = system::read(store, from, limits::PAGE)?;
        let Some(last) = page.last().map(|(seq, _)| *seq) else { return Ok(folded) };
        from = last + 1;
        for (_, Envelope { by, event, .. }) in page {
            match event {
                SystemEvent::TokenIssued { name, role, hash, expires } => {
                    if by == Actor::Coordinator {
                        folded.first.insert(role);
                    }
                    folded.table.insert(hash, Grant { name, role, expires });
                }
                SystemEvent::TokenRevoked { hash } => {
                    folded.table.remove(&hash);
                }
                SystemEvent::CoordinatorStarted { .. }
                | SystemEvent::SubmitRecorded { .. }
                | SystemEvent::RunQuarantined { .. }
                | SystemEvent::RunUnquarantined { .. }
                | SystemEvent::ArtifactPurged { .. } => {}
            }
        }
    }
}

/// 244 random bits from the operating system.
fn random_token() -> String {
    let half = || uuid::Uuid::new_v4().simple().to_string();
    format!("gt-{}{}", half(), half())
}

/// Writes a file only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    // A file that is there already keeps its mode; one of ours is only left from a start cut short.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    writeln!(file, "{text}").map_err(failed)?;
    file.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests;

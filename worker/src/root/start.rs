//! Everything that must stand before the first dial: identity, sweep, outbox, host, offer.
//!
//! Not here: the actors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ganger_shared::fleet::WorkerFacts;
use tokio::sync::watch;

use super::RunError;
use crate::attempts::port::Site;
use crate::bulk::Bulk;
use crate::config::Config;
use crate::executor;
use crate::identity::Identity;
use crate::isolation::{self, Hold, Host};
use crate::link::dial::{Authority, endpoint};
use crate::outbox::Outbox;
use crate::process::{self, SweptOutcome};
use crate::workspace;

/// What stands before the first dial.
pub(super) struct Started {
    pub(super) identity: Arc<Identity>,
    pub(super) outbox: Outbox,
    pub(super) site: Site,
    pub(super) facts: WorkerFacts,
    /// Whether there is a coordinator; the link says so.
    pub(super) attached: watch::Sender<bool>,
}

/// Makes everything stand. Order matters: nothing is reported of an earlier process before nothing
/// of it lives.
pub(super) async fn start(config: Arc<Config>) -> Result<Started, RunError> {
    let told = Arc::clone(&config);
    let blocking = tokio::task::spawn_blocking(move || on_disk(&told));
    let (identity, outbox) = blocking
        .await
        .map_err(|panic| RunError::Died { part: "start", why: panic.to_string() })??;
    if let Err(error) = process::adopt_orphans() {
        tracing::warn!(%error, "orphans of a killed shim go to init; the sweep will find them");
    }
    let scratch = config.data_dir.join("probe");
    let host = isolation::probe(&config.shim, &scratch).await;
    tracing::info!(hold = ?host.hold, isolated = host.isolated, refused = ?host.refused, "host");
    let attached = watch::Sender::new(false);
    let channel = endpoint(&config.server)?.connect_lazy();
    let bulk = Bulk::new(channel, Authority::new(&config.token_file), attached.subscribe());
    let facts = facts(&config, &identity, &host);
    let site = Site { config, worker: identity.worker.clone(), host: Arc::new(host), bulk };
    keep_rooms(&site).await?;
    Ok(Started { identity: Arc::new(identity), outbox, site, facts, attached })
}

/// A restart ended every attempt: what they left is kept for people, what nobody knows is named.
async fn keep_rooms(site: &Site) -> Result<(), RunError> {
    let site = site.clone();
    let unknown = tokio::task::spawn_blocking(move || workspace::keep_orphans(&site, &[]))
        .await
        .map_err(|panic| RunError::Died { part: "start", why: panic.to_string() })?;
    for path in unknown {
        tracing::warn!(path = %path.display(), "unclaimed: nobody knows this directory; it is left alone");
    }
    Ok(())
}

fn on_disk(config: &Config) -> Result<(Identity, Outbox), RunError> {
    let identity = Identity::take(&config.data_dir)?;
    for name in ["mirrors", "attempts", "processes", "transfers", "probe"] {
        make(&config.data_dir.join(name))?;
    }
    for swept in process::sweep(&config.data_dir.join("processes"))? {
        match &swept.outcome {
            SweptOutcome::OtherBoot | SweptOutcome::NothingLeft => {}
            SweptOutcome::Killed(_) => tracing::warn!(?swept, "ended what an earlier process left"),
            SweptOutcome::Survivors(_) | SweptOutcome::Unreadable(_) => {
                tracing::error!(?swept, "could not end what an earlier process left");
            }
        }
    }
    let outbox = Outbox::open(&config.data_dir.join("outbox"), config.bounds.outbox_max)?;
    Ok((identity, outbox))
}

fn make(path: &Path) -> Result<(), RunError> {
    fs::create_dir_all(path).map_err(|source| RunError::Directory { path: path.to_owned(), source })
}

/// What the worker offers: what it was told, and what was found out about its host.
fn facts(config: &Config, identity: &Identity, host: &Host) -> WorkerFacts {
    let containment = match host.hold {
        Hold::PidNamespace { .. } => "pid_namespace",
        Hold::Cgroup { .. } => "cgroup",
        Hold::Descendants => "descendants",
    };
    let mut labels = config.labels.clone();
    let found = [
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
        ("isolated", if host.isolated { "true" } else { "false" }),
        ("containment", containment),
    ];
    // What was found out is not for anybody to say otherwise.
    labels.extend(found.map(|(name, value)| (name.to_owned(), value.to_owned())));
    WorkerFacts {
        worker: identity.worker.clone(),
        instance: identity.instance.clone(),
        name: config.name.clone(),
        labels,
        slots: config.slots,
        agents: executor::agents(config),
        build: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

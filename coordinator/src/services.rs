//! The public API and the workers' door: each service turns a call into messages to the actors.
//!
//! Nothing is decided here but whether the caller may ask at all.

mod artifact;
mod ask;
mod authority;
mod delivery;
mod fleet;
mod journal;
mod later;
mod link;
mod page;
mod plan;
mod run;
mod source;
mod token;
mod unit;

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifacts::Artifacts;
use crate::config::Config;
use crate::house::House;
use crate::tokens::Tokens;
use crate::trees::Mirrors;

pub use authority::Authority;
pub(crate) use authority::{Principal, any_of, principal};

/// What every service is handed.
#[derive(Clone)]
pub struct Api {
    /// The actors, store and clocks.
    pub house: House,
    /// Large bodies.
    pub artifacts: Artifacts,
    /// Repositories.
    pub mirrors: Mirrors,
    /// Who may call.
    pub tokens: Tokens,
    /// The settings.
    pub config: Arc<Config>,
    /// Room for files that live as long as one call.
    pub scratch: PathBuf,
    /// Cancelled when the coordinator ends.
    pub ending: CancellationToken,
    /// Streams under way.
    pub streams: TaskTracker,
    /// Told when the coordinator must end, and why.
    pub fatal: tokio::sync::mpsc::Sender<String>,
}

/// Every service, behind the check of the token, with health and reflection.
pub fn router(api: &Api) -> tonic::service::Routes {
    use ganger_proto::server;
    let (reporter, health) = tonic_health::server::health_reporter();
    drop(reporter);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(ganger_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were compiled into this program");
    tonic::service::Routes::new(server::plans(plan::Plans::new(api.clone())))
        .add_service(server::runs(run::Runs::new(api.clone())))
        .add_service(server::units(unit::Units::new(api.clone())))
        .add_service(server::fleet(fleet::Workers::new(api.clone())))
        .add_service(server::artifacts(artifact::Bodies::new(api.clone())))
        .add_service(server::sources(source::Sources::new(api.clone())))
        .add_service(server::deliveries(delivery::Deliveries::new(api.clone())))
        .add_service(server::journal(journal::Journals::new(api.clone())))
        .add_service(server::tokens(token::Issuer::new(api.clone())))
        .add_service(server::questions(later::Questions))
        .add_service(server::messages(later::Messages))
        .add_service(server::reviews(later::Reviews))
        .add_service(server::link(link::Link::new(api.clone())))
        .add_service(health)
        .add_service(reflection)
}

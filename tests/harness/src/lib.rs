//! What the suites share: real processes of the product, and the peers they are tested against.

pub mod cluster;
pub mod otlp;
pub mod proxy;
pub mod repository;
pub mod roll_call;

pub use cluster::{Cluster, Process, Said, free_port, unit, until};
pub use repository::Repository;
pub use roll_call::RollCall;

//! What the suites share: real processes of the product, and the peers they are tested against.

pub mod cluster;
pub mod otlp;

pub use cluster::{Cluster, Process, Said, free_port, unit, until};

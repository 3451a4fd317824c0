//! The worker's side of its link to the coordinator.

pub mod dial;

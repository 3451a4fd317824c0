//! Placeholder.

pub mod artifacts;
pub mod journal;

//! Placeholder.

pub mod journal;

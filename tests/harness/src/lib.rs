//! Placeholder.
pub mod otlp;

//! Placeholder.

pub mod isolation;
pub mod output;
pub mod process;
pub mod shim;

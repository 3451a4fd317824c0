//! End to end: the product's own binary as coordinator, workers and clients, real git, real programs.
//!
//! Every test has a cluster and directories of its own and waits for states. What one process does
//! alone is proven beside its code; here is only what takes several of them.

use std::path::Path;

mod bad_input;
mod control;
mod crash;
mod journal;
mod main_job;
mod plans;
mod telemetry;

/// The product.
fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ganger"))
}

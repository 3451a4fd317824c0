//! A worker: dials its coordinator, runs attempts and checks, and hands in what they made.
//!
//! `root` starts everything and says what happens when a part dies. What is decided lives in
//! `ganger-worker-core`; only `process` and `shim` touch processes of attempts.

pub mod attempts;
pub mod bulk;
pub mod config;
pub mod evidence;
pub mod executor;
pub mod identity;
pub mod isolation;
pub mod link;
pub mod outbox;
pub mod output;
pub mod process;
pub mod root;
pub mod shim;
pub mod time;
pub mod workspace;

pub use root::{RunError, run};

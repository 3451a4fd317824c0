//! The coordinator: owns graphs, budgets, journal, artifacts and branches, and hands out work.
//!
//! `start` opens the store, starts the actors and serves the API. What is decided is decided in
//! `ganger-coordinator-core`; this crate writes it down and carries it out. Agents, worktrees and
//! processes are the worker's.

pub mod artifacts;
pub mod clock;
pub mod config;
pub mod fleet;
mod house;
pub mod journal;
mod root;
mod run;
mod runs;
mod serve;
mod services;
mod session;
#[cfg(test)]
mod stage;
mod system;
pub mod tokens;
mod trace;
mod trees;

pub use config::Config;
pub use serve::{Coordinator, StartError, start};

//! The domain's words: what every other room of the house speaks in.
//!
//! Ids, time, the plan file, the contract, the ledger's dimensions, evidence, verdicts, failures,
//! and the vocabulary of the worker protocol as plain Rust types. Nothing here reads a clock, a
//! socket, a disk or the environment, and nothing here is a wire type: those live in `proto`.

pub mod actor;
pub mod delivery;
pub mod digest;
pub mod event;
pub mod failure;
pub mod fleet;
pub mod ids;
pub mod ledger;
pub mod limits;
pub mod link;
pub mod nearest;
pub mod plan;
pub mod problem;
pub mod redact;
pub mod rejection;
pub mod spec;
pub mod text;
pub mod time;
pub mod verdict;
pub mod view;

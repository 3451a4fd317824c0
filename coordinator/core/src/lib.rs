//! What the coordinator decides, with nothing in it that can go wrong.
//!
//! `run` owns one run's graph and budgets, `fleet` owns workers, slots and claims, `check` finds
//! what is wrong with a plan. Nothing here reads a clock, a socket, a disk, a random number or the
//! environment: time, ids and tokens come in with a command.

pub mod check;
pub mod fleet;
pub mod globs;
pub mod pairs;
pub mod run;

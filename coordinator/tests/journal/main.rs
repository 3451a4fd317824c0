//! The journal from outside: what it promises to those who append, and what it survives.
//!
//! Not here: the log's own promises; `shared/log` proves them.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod anchors;
mod append;
mod disk;
mod kill;
mod random;
mod repair;
mod snapshots;
mod support;
mod verify;

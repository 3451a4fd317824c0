//! The public API as its callers have it: a real coordinator on a directory of its own, real clients
//! over loopback, and no worker unless a test plays one.
//!
//! Not here: what runs do once workers take them up; the end-to-end suite proves that.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

mod artifacts;
mod doors;
mod fleet;
mod ground;
mod journal;
mod lists;
mod plans;
mod restarts;
mod sources;
mod steering;
mod submits;
mod waits;
mod watches;

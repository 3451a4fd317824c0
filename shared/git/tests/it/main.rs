//! The crate against real git in real directories.
//!
//! One binary with a file per subject; `ground` makes the repositories.
#![allow(clippy::unwrap_used, reason = "a test that cannot set its ground up should stop there")]

mod branches;
mod bundles;
mod checkouts;
mod ground;
mod hostile;
mod limits;
mod mirrors;
mod rescues;
mod sources;

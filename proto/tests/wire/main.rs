//! What the wire promises: its shape, its lock, and that nothing is lost or half understood on it.
//!
//! No behaviour of any service is tested here.
#![allow(clippy::unwrap_used, reason = "a failed step is the failed test")]

mod descriptors;
mod door;
mod lint;
mod lock;
mod round_trip;
mod samples;
mod statuses;
mod transport;
mod views;

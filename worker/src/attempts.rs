//! The attempts of this worker, each an actor of its own.

pub mod port;

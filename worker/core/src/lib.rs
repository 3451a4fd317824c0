//! What a worker decides, without doing any of it: one attempt's phases and its stop ladder, the
//! outbox and its answers, and who gets a slot.
//!
//! Time comes in with each command; nothing here reads a clock, a disk or a socket.

pub mod attempt;
pub mod clock;
pub mod outbox;
pub mod slots;

#[cfg(test)]
mod samples;

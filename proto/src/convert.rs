//! Conversions between the wire and the domain: one file per group of words.
//!
//! Into the domain is `TryFrom` and refuses what is malformed by the name of the field; out of it is
//! `From` and cannot fail. Unknown fields of a newer peer are passed over, unknown enum values are
//! refused: a fact that is half understood is not a fact.

mod assignment;
mod attempt;
mod delivery;
mod link;
mod plan;
mod report;
mod run;
mod snapshot;
mod verdict;
mod watch;
mod words;
mod worker;

pub use plan::SubmittedSource;
pub use snapshot::Snapshot;
pub use watch::Watched;

/// The texts of ids and other values that have one.
fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The wire's messages for these values.
fn wires<T, W: From<T>>(values: Vec<T>) -> Vec<W> {
    values.into_iter().map(W::from).collect()
}

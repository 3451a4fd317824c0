//! The house rules, kept by tests: what a reviewer would have to remember, a machine remembers.
//!
//! Each module holds one kind of rule as a pure checker over text, with a small table of what it
//! must refuse and what it must let pass. `house` (tests only) runs all of them over this tree.
//! What clippy can measure (parameters, nesting, banned calls) is in the `clippy.toml` files, and
//! that the wire did not change is asked by the crate `ganger-proto` itself.

pub mod catalogue;
pub mod changelog;
pub mod lints;
pub mod manifests;
pub mod offence;
pub mod processes;
pub mod prose;
pub mod rooms;
pub mod shape;
pub mod source;
pub mod tests_named;
pub mod tree;

#[cfg(test)]
mod house;

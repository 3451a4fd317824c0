//! The wire: what `ganger/v1/*.proto` generates, and its conversions to and from the domain's words.
//!
//! Only services and clients at the edge touch [`v1`]; what it carries becomes a type of `shared` at
//! the door (`TryFrom`, refusing what is malformed by the name of the field) and never travels
//! further in. No decisions, no transport set-up and no storage are here.

pub mod auth;
pub mod client;
pub mod convert;
pub mod limits;
pub mod malformed;
pub mod read;
pub mod refusal;
pub mod server;
pub mod status;

pub use malformed::{Malformed, Reason};
pub use refusal::Refusal;

/// The generated messages, clients and servers of package `ganger.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::wildcard_enum_match_arm,
    clippy::allow_attributes_without_reason,
    reason = "generated: comments come from the .proto files, the style from the generator"
)]
pub mod v1 {
    tonic::include_proto!("ganger.v1");
}

/// The descriptors of every service and message, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ganger.v1.fds"));

//! What must hold of a run: single cases by topic, and random histories with the world around them.
#![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test picks out the one case it is about")]

mod bench;
mod checks;
mod ends;
mod grants;
mod history;
mod integrations;
mod people;
mod reports;
mod rules;
mod world;

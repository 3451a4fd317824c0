//! A simulated fleet: both cores, the outbox and the journal's contract on one thread with one seed.
//!
//! What stands between the cores in the product (actors, streams, disks, hosts) is played here, so
//! that anything may fail at any moment: connections break, processes die between any two events,
//! clocks are wrong and hosts sleep, syncs fail. Checkers look on from outside; then the faults stop
//! and every run must come to rest. Not here: real processes, sockets and files (`tests/e2e`).
//!
//! A seed replays alone: `GANGER_SIM_SEED=7 cargo test -p ganger-sim replays -- --nocapture`.

mod bug;
mod chance;
mod coordinator;
mod faults;
mod host;
mod journal;
mod net;
mod people;
mod rules;
mod scenario;
mod worker;
mod world;

pub use bug::Bug;
pub use world::Ended;

use world::World;

/// Runs the world of a seed to its end, with a planted mistake or without; `told` keeps its history.
pub fn simulate(seed: u64, bug: Option<Bug>, told: bool) -> Ended {
    World::new(seed, bug, told).run()
}

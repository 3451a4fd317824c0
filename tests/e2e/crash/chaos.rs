//! Many kills of everything, at moments no one chose: the run ends with exactly what it should.

use ganger_harness::{Cluster, Repository, until};
use serde_json::{Value, json};

use super::verify_journal;
use crate::binary;
use crate::plans::{after, attempts, is, on_repository, submit, user_repository, with, writes};

/// A small generator whose history a seed repeats.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn names() -> Vec<String> {
    (0..12).map(|n| format!("u{n}")).collect()
}

/// Four rows of three: each unit waits for two of those before it.
fn graph() -> Value {
    let unit = |name: &String| {
        let n: usize = name[1..].parse().expect("it was made of a number");
        let above: Vec<String> =
            if n < 3 { vec![] } else { vec![format!("u{}", n - 3), format!("u{}", n - 2)] };
        let above: Vec<&str> = above.iter().map(String::as_str).collect();
        let unit = after(writes(name, &format!("out/{name}.txt")), &above);
        with(unit, json!({ "retry": { "attempts": 3, "delay": "20ms" } }))
    };
    on_repository(&names().iter().map(unit).collect::<Vec<_>>())
}

fn sequence(cluster: &Cluster, id: &str) -> u64 {
    cluster.run(id)["sequence"].as_u64().expect("a run has a sequence")
}

fn holds_exactly_the_work(user: &Repository, run: &Value) {
    let branch = run["branch"].as_str().expect("a run has a branch");
    let files = user.files(branch);
    for name in names() {
        assert_eq!(files.get(&format!("out/{name}.txt")), Some(&name), "{files:#?}");
    }
    assert_eq!(files.len(), names().len() + 2, "{files:#?}");
    let commits = user.git(&["rev-list", "--count", &format!("main..{branch}")]);
    assert_eq!(commits, names().len().to_string(), "one commit for each unit");
}

fn survives(seed: u64) {
    let mut dice = Dice(seed);
    let mut cluster = Cluster::with_workers(binary(), &[("east", 2), ("west", 2)]);
    let user = user_repository(&cluster);
    let id = submit(&cluster, &graph());
    let mut workers_killed = 0;
    for _ in 0..12 {
        // So much has happened since the last kill, or it is over.
        let goal = sequence(&cluster, &id) + 1 + dice.below(14);
        until("something happens", || {
            cluster.run(&id)["state"] == "completed" || sequence(&cluster, &id) >= goal
        });
        // A unit may be lost five times, so workers die less often than that.
        match dice.below(4) {
            0 if workers_killed < 4 => {
                workers_killed += 1;
                let name = if dice.below(2) == 0 { "east" } else { "west" };
                cluster.worker(name).kill();
                cluster.start_worker(name, 2, &[]);
            }
            _ => {
                cluster.coordinator().kill();
                cluster.start_coordinator();
            }
        }
    }
    let run = cluster.wait_run(&id, "the run completes", is("completed"));
    cluster.ganger(&["deliver", &id]).expect(0);
    holds_exactly_the_work(&user, &run);
    let mut epochs: Vec<(String, u64)> = attempts(&run)
        .into_iter()
        .map(|(id, epoch, _)| (id.split('/').next().unwrap_or_default().to_owned(), epoch))
        .collect();
    let all = epochs.len();
    epochs.sort();
    epochs.dedup();
    assert_eq!(epochs.len(), all, "an epoch was given twice");
    verify_journal(&mut cluster);
}

/// `CHAOS_SEED` asks for another history.
///
/// R162, R165, R170, P017: whatever dies whenever, every unit lands exactly once, no epoch is given
/// twice, and the journal verifies.
#[test]
fn whatever_dies_whenever_every_unit_lands_once() {
    let asked = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = asked.map_or(vec![0x9E37_79B9_7F4A_7C15, 0x2545_F491_4F6C_DD1D], |seed| vec![seed]);
    seeds.into_iter().for_each(survives);
}

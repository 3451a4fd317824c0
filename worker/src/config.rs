//! What one worker is told at its start: where the coordinator is, who the worker is, what it offers.
//!
//! Only values and their checks. Reading flags, files and the environment is the caller's business.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ganger_shared::limits;
use ganger_shared::time::DurationMs;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most attempts one worker may be asked to run at once.
pub const SLOTS_MAX: u32 = 512;

/// Everything a worker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The coordinator's address, `http://host:port`.
    pub server: String,
    /// The file whose first line is the worker's token.
    pub token_file: PathBuf,
    /// The worker's own directory: identity, outbox, mirrors, attempts.
    pub data_dir: PathBuf,
    /// The name people see.
    pub name: String,
    /// What it offers, beside what is found out about the host.
    pub labels: BTreeMap<String, String>,
    /// Attempts it runs at once; one check slot is beside them.
    pub slots: u32,
    /// The agents plans may name here.
    pub agents: Vec<AgentConfig>,
    /// The executable that is started as `SHIM __shim`; normally `/proc/self/exe`.
    pub shim: PathBuf,
    /// What a refused token does.
    pub on_refused: OnRefused,
    /// Waits and sizes.
    pub bounds: Bounds,
}

/// One agent of this worker's catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// The name plans use.
    pub name: String,
    /// The adapter that drives it: `claude`, `codex`, `acp`, `scripted` …
    pub adapter: String,
    /// The program and its fixed arguments; empty for an adapter that has no program.
    #[serde(default)]
    pub program: Vec<String>,
    /// Environment variables set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// What a refused token does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefused {
    /// The worker ends with an error that names the token's file and the fix.
    #[default]
    End,
    /// It tries again for ever; the token file is read anew each time.
    Retry,
}

/// How long things may take and how much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How long a tree may take to be prepared.
    pub prepare_ms: DurationMs,
    /// How long an agent may take from its order to its first sensible word.
    pub start_ms: DurationMs,
    /// How long evidence may take to be collected and handed over.
    pub collect_ms: DurationMs,
    /// How long survivors of a kill are waited for.
    pub kill_ms: DurationMs,
    /// Unanswered reports kept before no more leases are taken.
    pub outbox_max: usize,
    /// The first wait before dialling again.
    pub redial_min_ms: DurationMs,
    /// The longest wait before dialling again.
    pub redial_max_ms: DurationMs,
    /// How long one dial and its greeting may take.
    pub greet_ms: DurationMs,
    /// How long an ending worker waits for its attempts and its last reports.
    pub leave_ms: DurationMs,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            prepare_ms: limits::PREPARE,
            start_ms: DurationMs::from_secs(30),
            collect_ms: limits::PREPARE,
            kill_ms: DurationMs::from_secs(30),
            outbox_max: 1_024,
            redial_min_ms: DurationMs(200),
            redial_max_ms: DurationMs::from_secs(15),
            greet_ms: DurationMs::from_secs(10),
            leave_ms: DurationMs::from_secs(45),
        }
    }
}

/// Why a configuration is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidConfig {
    /// No room for any attempt, or more than the house allows.
    #[error("configure the worker: {slots} slots, where 1 to {SLOTS_MAX} are possible")]
    Slots {
        /// What was asked for.
        slots: u32,
    },
    /// Two agents of one name.
    #[error("configure the worker: agent `{name}` stands in the catalogue twice")]
    AgentTwice {
        /// The name.
        name: String,
    },
    /// The address is not one that can be dialled.
    #[error("configure the worker: `{server}` is no address: write http://HOST:PORT")]
    Server {
        /// What was given.
        server: String,
    },
}

impl Config {
    /// A worker of this coordinator with one slot, no agents and the default bounds.
    pub fn new(server: impl Into<String>, token_file: PathBuf, data_dir: PathBuf) -> Self {
        Self {
            server: server.into(),
            token_file,
            data_dir,
            name: "worker".to_owned(),
            labels: BTreeMap::new(),
            slots: 1,
            agents: Vec::new(),
            shim: PathBuf::from("/proc/self/exe"),
            on_refused: OnRefused::default(),
            bounds: Bounds::default(),
        }
    }

    /// Refuses what cannot work, before anything is started.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        if self.slots == 0 || self.slots > SLOTS_MAX {
            return Err(InvalidConfig::Slots { slots: self.slots });
        }
        for (place, agent) in self.agents.iter().enumerate() {
            if self.agents[..place].iter().any(|other| other.name == agent.name) {
                return Err(InvalidConfig::AgentTwice { name: agent.name.clone() });
            }
        }
        match self.server.parse::<tonic::transport::Uri>() {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some() => Ok(()),
            Ok(_) | Err(_) => Err(InvalidConfig::Server { server: self.server.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_before_anything_starts() {
        let good = Config::new("http://127.0.0.1:1", "token".into(), "data".into());
        assert_eq!(good.check(), Ok(()));
        let none = Config { slots: 0, ..good.clone() };
        assert_eq!(none.check(), Err(InvalidConfig::Slots { slots: 0 }));
        let agent = AgentConfig {
            name: "a".to_owned(),
            adapter: "scripted".to_owned(),
            program: vec![],
            env: BTreeMap::new(),
        };
        let twice = Config { agents: vec![agent.clone(), agent], ..good.clone() };
        assert_eq!(twice.check(), Err(InvalidConfig::AgentTwice { name: "a".to_owned() }));
        let nowhere = Config { server: "127.0.0.1".to_owned(), ..good };
        let refused = InvalidConfig::Server { server: "127.0.0.1".to_owned() };
        assert_eq!(nowhere.check(), Err(refused));
    }
}

//! The configuration file: YAML, and a key nobody knows is an error.
//!
//! Only the words. Everything may be left out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ganger_shared::limits::Limits;
use ganger_shared::plan::{Length, Size};
use ganger_worker::config::AgentConfig;
use serde::Deserialize;

use crate::output::Format;

/// `config.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// The coordinator to speak to.
    pub server: Option<String>,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// How answers look.
    pub output: Option<Format>,
    /// For `ganger coordinator` and the embedded one.
    pub coordinator: CoordinatorFile,
    /// For `ganger worker`.
    pub worker: WorkerFile,
    /// For `ganger up`, and for `run` with nothing to speak to.
    pub up: UpFile,
}

/// A coordinator's part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinatorFile {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Its directory.
    pub data: Option<PathBuf>,
    /// Unencrypted connections off loopback.
    pub plaintext: Option<bool>,
    /// Times and sizes.
    pub limits: LimitsFile,
}

/// Times and sizes, each as a plan writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsFile {
    /// The beat a worker keeps.
    pub beat: Option<Length>,
    /// How long a lease outlives the last beat.
    pub lease: Option<Length>,
    /// How long an offered slot waits.
    pub offer: Option<Length>,
    /// How long each rung of the stop ladder waits.
    pub grace: Option<Length>,
    /// How long a tree may take to be prepared.
    pub prepare: Option<Length>,
    /// The largest plan text.
    pub plan_size: Option<Size>,
    /// Units a plan may ask for.
    pub units: Option<u32>,
    /// The largest artifact.
    pub artifact_size: Option<Size>,
}

impl LimitsFile {
    /// These limits, and the ones of `below` for what is not said here.
    pub fn over(&self, below: &Limits) -> Limits {
        let length = |own: Option<Length>, below| own.map_or(below, |length| length.0);
        let size = |own: Option<Size>, below| own.map_or(below, |size| size.0);
        Limits {
            beat_ms: length(self.beat, below.beat_ms),
            lease_ms: length(self.lease, below.lease_ms),
            offer_ms: length(self.offer, below.offer_ms),
            grace_ms: length(self.grace, below.grace_ms),
            prepare_ms: length(self.prepare, below.prepare_ms),
            plan_bytes: size(self.plan_size, below.plan_bytes),
            units_max: self.units.unwrap_or(below.units_max),
            artifact_bytes: size(self.artifact_size, below.artifact_bytes),
        }
    }
}

/// A worker's part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerFile {
    /// The name people see.
    pub name: Option<String>,
    /// Attempts it runs at once.
    pub slots: Option<u32>,
    /// Its directory.
    pub data: Option<PathBuf>,
    /// What it offers.
    pub labels: BTreeMap<String, String>,
    /// The agents plans may name here, beside `scripted`.
    pub agents: Vec<AgentConfig>,
}

/// The embedded parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpFile {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// How many workers.
    pub workers: Option<u32>,
    /// Slots of each.
    pub slots: Option<u32>,
}

impl ConfigFile {
    /// Reads the text; an error has line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Paths in the file are relative to the directory it is in.
    pub fn resolve(&mut self, dir: &Path) {
        let paths = [&mut self.token_file, &mut self.coordinator.data, &mut self.worker.data];
        for path in paths.into_iter().flatten() {
            *path = dir.join(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use ganger_shared::time::DurationMs;

    use super::*;

    #[test]
    fn limits_of_the_file_lie_over_the_defaults() {
        let text = "coordinator:\n  limits: { beat: 100ms, lease: 1s, plan_size: 8MiB }\n";
        let limits = ConfigFile::parse(text).unwrap().coordinator.limits.over(&Limits::default());
        let expected = Limits {
            beat_ms: DurationMs(100),
            lease_ms: DurationMs::from_secs(1),
            plan_bytes: 8 << 20,
            ..Limits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "\n", "# nothing yet\n"] {
            assert_eq!(ConfigFile::parse(text), Ok(ConfigFile::default()));
        }
    }
}

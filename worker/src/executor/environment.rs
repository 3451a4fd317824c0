//! The environment of an attempt, and the redactor that knows the values in it.
//!
//! Nothing is inherited but the names a plan lets through. Values are never stored: they go into
//! the process and into the redactor, nowhere else (R164).

use std::collections::BTreeMap;
use std::fs;

use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::redact::Redactor;
use ganger_shared::spec::{Assignment, Body};

use crate::attempts::port::{Room, Site};

/// What is searched for programs where the worker has no PATH itself.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Set for every attempt; a plan may not replace them by the worker's own.
const OURS: [&str; 5] = ["HOME", "TMPDIR", "TRACEPARENT", "PWD", "OLDPWD"];

/// The whole environment of an attempt.
pub fn of(assignment: &Assignment, room: &Room) -> Result<BTreeMap<String, String>, Failure> {
    let path = std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned());
    let mut env = BTreeMap::from(
        [
            ("PATH", path),
            ("HOME", room.home.display().to_string()),
            ("TMPDIR", room.tmp.display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    if !assignment.traceparent.is_empty() {
        env.insert("TRACEPARENT".to_owned(), assignment.traceparent.clone());
    }
    env.extend(let_through(assignment)?);
    Ok(env)
}

/// The variables that the plan names and the worker has.
pub fn let_through(assignment: &Assignment) -> Result<BTreeMap<String, String>, Failure> {
    let mut through = BTreeMap::new();
    for name in &assignment.env {
        if name.starts_with("GANGER_") || OURS.contains(&name.as_str()) {
            let message = format!("the environment variable {name} is never let through");
            return Err(Failure::new(FailureClass::ConfigError, message));
        }
        match std::env::var(name) {
            Ok(value) => drop(through.insert(name.clone(), value)),
            Err(std::env::VarError::NotPresent) => {}
            Err(std::env::VarError::NotUnicode(_)) => {
                let message = format!("the environment variable {name} is not UTF-8");
                return Err(Failure::new(FailureClass::ConfigError, message));
            }
        }
    }
    Ok(through)
}

/// Knows every value that was let through or set for the agent, and the worker's own token.
pub fn redactor(site: &Site, assignment: &Assignment) -> Redactor {
    let mut redactor = Redactor::new();
    let mut guard = |name: &str, value: &str| {
        // A value that cannot be told from ordinary text is no secret; the name is worth a word.
        if let Err(error) = redactor.guard(name, value) {
            tracing::debug!(%error, "a value is not redacted");
        }
    };
    for name in &assignment.env {
        if let Ok(value) = std::env::var(name) {
            guard(name, &value);
        }
    }
    if let Body::Agent(task) = &assignment.body {
        let agent = site.config.agents.iter().find(|agent| agent.name == task.agent);
        for (name, value) in agent.into_iter().flat_map(|agent| &agent.env) {
            guard(name, value);
        }
    }
    if let Ok(token) = fs::read_to_string(&site.config.token_file) {
        guard("worker-token", token.trim());
    }
    redactor
}

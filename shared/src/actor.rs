//! Who does something: the authenticated principal of a command, or a part of the product itself.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::digest::Digest;

/// What a principal may do; each role includes what is said of it, nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// See everything of its projects.
    Read,
    /// Read, and submit plans.
    Submit,
    /// Read, and give verdicts and answers.
    Judge,
    /// All of the above, control of runs and workers, priorities above 0.
    Operate,
    /// Attach as a worker; nothing else.
    Worker,
}

impl Role {
    /// Whether a principal of this role may do what `needed` may.
    pub fn allows(self, needed: Role) -> bool {
        match self {
            Self::Operate => needed != Self::Worker,
            Self::Submit | Self::Judge => needed == self || needed == Self::Read,
            Self::Read | Self::Worker => needed == self,
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Judge => "judge",
            Self::Operate => "operate",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose act it was. Written `principal:NAME`, `policy/HASH`, `coordinator` or `worker:ID`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Actor {
    /// A person or program, by the name its token was issued to.
    Principal(String),
    /// The contract's own policy, named by the contract's hash.
    Policy(Digest),
    /// The coordinator, for facts it decided.
    Coordinator,
    /// A worker, by its id.
    Worker(String),
}

/// The text names nobody.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not an actor: principal:NAME, policy/HASH, worker:ID or coordinator")]
pub struct InvalidActor(pub String);

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(name) => write!(f, "principal:{name}"),
            Self::Policy(hash) => write!(f, "policy/{hash}"),
            Self::Coordinator => f.write_str("coordinator"),
            Self::Worker(id) => write!(f, "worker:{id}"),
        }
    }
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Actor {
    type Err = InvalidActor;
    fn from_str(text: &str) -> Result<Self, InvalidActor> {
        let wrong = || InvalidActor(text.to_owned());
        if text == "coordinator" {
            Ok(Self::Coordinator)
        } else if let Some(name) = text.strip_prefix("principal:") {
            Ok(Self::Principal(name.to_owned()))
        } else if let Some(id) = text.strip_prefix("worker:") {
            Ok(Self::Worker(id.to_owned()))
        } else {
            let hash = text.strip_prefix("policy/").ok_or_else(wrong)?;
            hash.parse().map(Self::Policy).map_err(|_| wrong())
        }
    }
}

impl TryFrom<String> for Actor {
    type Error = InvalidActor;
    fn try_from(text: String) -> Result<Self, InvalidActor> {
        text.parse()
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> String {
        actor.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failed test")]
    use super::*;

    #[test]
    fn actors_read_back_as_written() {
        for actor in [
            Actor::Principal("anna".into()),
            Actor::Policy(Digest::of(b"contract")),
            Actor::Coordinator,
            Actor::Worker("w-1".into()),
        ] {
            assert_eq!(actor.to_string().parse::<Actor>().unwrap(), actor);
        }
        assert!("anna".parse::<Actor>().is_err());
    }

    #[test]
    fn no_role_but_worker_acts_as_a_worker() {
        for role in [Role::Read, Role::Submit, Role::Judge, Role::Operate] {
            assert!(!role.allows(Role::Worker), "{role}");
            assert!(!Role::Worker.allows(role), "{role}");
            assert!(role.allows(Role::Read), "{role}");
            assert!(Role::Operate.allows(role), "{role}");
        }
        assert!(!Role::Submit.allows(Role::Judge));
        assert!(!Role::Judge.allows(Role::Operate));
    }
}

//! A named actor's judgement of one attempt, with exactly the fields of R201.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::digest::Digest;
use crate::ids::{AttemptId, CheckId};
use crate::time::Timestamp;

/// What was judged of the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The delivery stands.
    Accept,
    /// The delivery does not stand.
    Reject,
    /// The judge cannot decide as things are.
    Blocked,
}

/// What kind of judge gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeKind {
    /// A person.
    Person,
    /// A supervising agent.
    Agent,
    /// The contract's policy: every gate of the unit is open.
    Policy,
}

/// One verdict. Append-only: nothing ever changes or removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// What kind of judge gave it.
    pub kind: JudgeKind,
    /// Who gave it.
    pub actor: Actor,
    /// The attempt it judges.
    pub attempt: AttemptId,
    /// The digest of everything the judge was shown.
    pub input_digest: Digest,
    /// The judgement.
    pub verdict: Judgement,
    /// Why.
    pub reason: String,
    /// The measurings it rests on.
    pub evidence_refs: Vec<CheckId>,
    /// How sure the judge is, in percent; a policy that only compares facts is sure.
    pub confidence: u8,
    /// The model that judged, where one did.
    pub model: Option<String>,
    /// Its provider, where there is one.
    pub provider: Option<String>,
    /// The version of the policy applied.
    pub policy_version: u32,
    /// When.
    pub timestamp: Timestamp,
    /// The run's trace, as 32 hex digits.
    pub trace_id: String,
}

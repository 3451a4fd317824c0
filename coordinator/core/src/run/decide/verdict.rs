//! Acceptance by policy: a verdict like any other, given when every gate of the unit is open.

use ganger_shared::actor::Actor;
use ganger_shared::digest::Digest;
use ganger_shared::ids::{CheckId, Subject};
use ganger_shared::time::Timestamp;
use ganger_shared::verdict::{JudgeKind, Judgement, Verdict};

use crate::run::state::Run;
use crate::run::view::trace_id;

/// The version of the rule applied here: every required check passes.
const POLICY_VERSION: u32 = 1;
const SURE: u8 = 100;

impl Run {
    /// The policy's verdict on an attempt whose gate is open.
    pub(super) fn policy_verdict(&self, ix: usize, at: usize, now: Timestamp) -> Option<Verdict> {
        let head = self.head.as_ref()?;
        let attempt = &self.units[ix].attempts[at];
        let id = attempt.lease.attempt.clone();
        let subject = Subject::Attempt(id.clone());
        let measurement = self.measured.get(&(id.unit.clone(), subject));
        let evidence_refs: Vec<CheckId> = measurement
            .map(|m| m.checks.iter().filter(|c| c.required).map(|c| c.id.clone()).collect())
            .unwrap_or_default();
        let shown = serde_json::to_vec(&(attempt.delivery(), measurement)).ok()?;
        let passed = evidence_refs.len();
        let in_a_tree = attempt.delivery().is_some_and(|delivery| delivery.tree.is_some());
        let reason = if passed == 0 && in_a_tree {
            "nothing was written, so no check is required; the attempt ended well".to_owned()
        } else if passed == 0 {
            "there is no repository, so nothing is integrated and no check is required; \
             the attempt ended well"
                .to_owned()
        } else {
            format!("every required check passed ({passed} of {passed})")
        };
        Some(Verdict {
            kind: JudgeKind::Policy,
            actor: Actor::Policy(head.contract_hash),
            attempt: id,
            input_digest: Digest::of(&shown),
            verdict: Judgement::Accept,
            reason,
            evidence_refs,
            confidence: SURE,
            model: None,
            provider: None,
            policy_version: POLICY_VERSION,
            timestamp: now,
            trace_id: trace_id(&head.run),
        })
    }
}

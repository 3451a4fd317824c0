//! Verdicts.

use ganger_shared::verdict::Verdict;

use super::texts;
use crate::malformed::{Malformed, Reason};
use crate::{read, v1};

impl TryFrom<v1::Verdict> for Verdict {
    type Error = Malformed;
    fn try_from(wire: v1::Verdict) -> Result<Self, Malformed> {
        let v1::Verdict {
            kind,
            actor,
            attempt,
            input_digest,
            verdict,
            reason,
            evidence_refs,
            confidence,
            model,
            provider,
            policy_version,
            timestamp,
            trace_id,
        } = wire;
        Ok(Self {
            kind: read::word("kind", kind)?,
            actor: read::text("actor", &actor)?,
            attempt: read::text("attempt", &attempt)?,
            input_digest: read::text("input_digest", &input_digest)?,
            verdict: read::word("verdict", verdict)?,
            reason,
            evidence_refs: read::each_text("evidence_refs", &evidence_refs)?,
            confidence: percent("confidence", confidence)?,
            model,
            provider,
            policy_version,
            timestamp: read::time("timestamp", timestamp)?,
            trace_id,
        })
    }
}

fn percent(field: &str, value: u32) -> Result<u8, Malformed> {
    u8::try_from(value)
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| Malformed::new(field, Reason::Form(format!("{value} is not a percentage"))))
}

impl From<Verdict> for v1::Verdict {
    fn from(judged: Verdict) -> Self {
        let Verdict {
            kind,
            actor,
            attempt,
            input_digest,
            verdict,
            reason,
            evidence_refs,
            confidence,
            model,
            provider,
            policy_version,
            timestamp,
            trace_id,
        } = judged;
        Self {
            kind: v1::JudgeKind::from(kind).into(),
            actor: actor.to_string(),
            attempt: attempt.to_string(),
            input_digest: input_digest.to_string(),
            verdict: v1::Judgement::from(verdict).into(),
            reason,
            evidence_refs: texts(&evidence_refs),
            confidence: confidence.into(),
            model,
            provider,
            policy_version,
            timestamp: Some(read::to_wire_time(timestamp)),
            trace_id,
        }
    }
}

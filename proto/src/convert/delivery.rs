//! What attempts hand in and what is measured of it.

use ganger_shared::delivery::{
    Change, Changes, CheckResult, CommandEvidence, Delivery, TreeDelivery, Usage,
};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::failure::Failure;
use ganger_shared::time::DurationMs;

use super::wires;
use crate::malformed::Malformed;
use crate::{read, v1};

impl TryFrom<v1::ArtifactRef> for ArtifactRef {
    type Error = Malformed;
    fn try_from(wire: v1::ArtifactRef) -> Result<Self, Malformed> {
        let v1::ArtifactRef { sha256, bytes } = wire;
        Ok(Self { sha256: read::text("sha256", &sha256)?, bytes })
    }
}

impl From<ArtifactRef> for v1::ArtifactRef {
    fn from(artifact: ArtifactRef) -> Self {
        let ArtifactRef { sha256, bytes } = artifact;
        Self { sha256: sha256.to_string(), bytes }
    }
}

impl TryFrom<v1::Failure> for Failure {
    type Error = Malformed;
    fn try_from(wire: v1::Failure) -> Result<Self, Malformed> {
        let v1::Failure { class, message } = wire;
        Ok(Self { class: read::word("class", class)?, message })
    }
}

impl From<Failure> for v1::Failure {
    fn from(failure: Failure) -> Self {
        let Failure { class, message } = failure;
        Self { class: v1::FailureClass::from(class).into(), message }
    }
}

impl TryFrom<v1::Change> for Change {
    type Error = Malformed;
    fn try_from(wire: v1::Change) -> Result<Self, Malformed> {
        let v1::Change { path, kind } = wire;
        Ok(Self { path: read::said("path", path)?, kind: read::word("kind", kind)? })
    }
}

impl From<Change> for v1::Change {
    fn from(change: Change) -> Self {
        let Change { path, kind } = change;
        Self { path, kind: v1::ChangeKind::from(kind).into() }
    }
}

impl TryFrom<v1::Changes> for Changes {
    type Error = Malformed;
    fn try_from(wire: v1::Changes) -> Result<Self, Malformed> {
        let v1::Changes { listed, total } = wire;
        Ok(Self { listed: read::each("listed", listed)?, total })
    }
}

impl From<Changes> for v1::Changes {
    fn from(changes: Changes) -> Self {
        let Changes { listed, total } = changes;
        Self { listed: wires(listed), total }
    }
}

impl TryFrom<v1::TreeDelivery> for TreeDelivery {
    type Error = Malformed;
    fn try_from(wire: v1::TreeDelivery) -> Result<Self, Malformed> {
        let v1::TreeDelivery { base, tree, commit, bundle, patch, changes } = wire;
        Ok(Self {
            base: read::text("base", &base)?,
            tree: read::text("tree", &tree)?,
            commit: read::text("commit", &commit)?,
            bundle: read::optional("bundle", bundle)?,
            patch: read::optional("patch", patch)?,
            changes: read::required("changes", changes)?,
        })
    }
}

impl From<TreeDelivery> for v1::TreeDelivery {
    fn from(delivery: TreeDelivery) -> Self {
        let TreeDelivery { base, tree, commit, bundle, patch, changes } = delivery;
        Self {
            base: base.to_string(),
            tree: tree.to_string(),
            commit: commit.to_string(),
            bundle: bundle.map(Into::into),
            patch: patch.map(Into::into),
            changes: Some(changes.into()),
        }
    }
}

impl TryFrom<v1::CommandEvidence> for CommandEvidence {
    type Error = Malformed;
    fn try_from(wire: v1::CommandEvidence) -> Result<Self, Malformed> {
        let v1::CommandEvidence { cmd, pass, exit_code, log_tail, log, duration_ms } = wire;
        Ok(Self {
            cmd,
            pass,
            exit_code,
            log_tail,
            log: read::optional("log", log)?,
            duration_ms: DurationMs(duration_ms),
        })
    }
}

impl From<CommandEvidence> for v1::CommandEvidence {
    fn from(evidence: CommandEvidence) -> Self {
        let CommandEvidence { cmd, pass, exit_code, log_tail, log, duration_ms } = evidence;
        Self {
            cmd,
            pass,
            exit_code,
            log_tail,
            log: log.map(Into::into),
            duration_ms: duration_ms.0,
        }
    }
}

/// Every field may be absent, so nothing of it can be malformed.
impl From<v1::Usage> for Usage {
    fn from(wire: v1::Usage) -> Self {
        let v1::Usage { tokens_in, tokens_out, tokens_cached, usd_micros } = wire;
        Self { tokens_in, tokens_out, tokens_cached, usd_micros }
    }
}

impl From<Usage> for v1::Usage {
    fn from(usage: Usage) -> Self {
        let Usage { tokens_in, tokens_out, tokens_cached, usd_micros } = usage;
        Self { tokens_in, tokens_out, tokens_cached, usd_micros }
    }
}

impl TryFrom<v1::Delivery> for Delivery {
    type Error = Malformed;
    fn try_from(wire: v1::Delivery) -> Result<Self, Malformed> {
        let v1::Delivery { tree, no_change, summary, excerpt, commands, usage, session, isolated } =
            wire;
        Ok(Self {
            tree: read::optional("tree", tree)?,
            no_change,
            summary,
            excerpt,
            commands: read::each("commands", commands)?,
            usage: read::present("usage", usage)?.into(),
            session,
            isolated,
        })
    }
}

impl From<Delivery> for v1::Delivery {
    fn from(delivery: Delivery) -> Self {
        let Delivery { tree, no_change, summary, excerpt, commands, usage, session, isolated } =
            delivery;
        Self {
            tree: tree.map(Into::into),
            no_change,
            summary,
            excerpt,
            commands: wires(commands),
            usage: Some(usage.into()),
            session,
            isolated,
        }
    }
}

impl TryFrom<v1::CheckResult> for CheckResult {
    type Error = Malformed;
    fn try_from(wire: v1::CheckResult) -> Result<Self, Malformed> {
        let v1::CheckResult { outcome, not_measured, evidence, tree, message } = wire;
        Ok(Self {
            outcome: read::word("outcome", outcome)?,
            not_measured: read::optional_word("not_measured", not_measured)?,
            evidence: read::optional("evidence", evidence)?,
            tree: read::text("tree", &tree)?,
            message,
        })
    }
}

impl From<CheckResult> for v1::CheckResult {
    fn from(result: CheckResult) -> Self {
        let CheckResult { outcome, not_measured, evidence, tree, message } = result;
        Self {
            outcome: v1::Outcome::from(outcome).into(),
            not_measured: not_measured.map(|why| v1::NotMeasured::from(why).into()),
            evidence: evidence.map(Into::into),
            tree: tree.to_string(),
            message,
        }
    }
}

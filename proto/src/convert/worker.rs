//! What a worker is: its facts, its leases, its progress and how it is shown.

use ganger_shared::fleet::{AgentFacts, WorkerFacts};
use ganger_shared::ids::Epoch;
use ganger_shared::link::{Anchor, Lease, Progress};
use ganger_shared::time::DurationMs;
use ganger_shared::view::WorkerView;

use super::wires;
use crate::malformed::Malformed;
use crate::{read, v1};

impl TryFrom<v1::Anchor> for Anchor {
    type Error = Malformed;
    fn try_from(wire: v1::Anchor) -> Result<Self, Malformed> {
        let v1::Anchor { store_id, generation, log_seq, hash } = wire;
        Ok(Self {
            store_id: read::said("store_id", store_id)?,
            generation,
            log_seq,
            hash: read::text("hash", &hash)?,
        })
    }
}

impl From<Anchor> for v1::Anchor {
    fn from(anchor: Anchor) -> Self {
        let Anchor { store_id, generation, log_seq, hash } = anchor;
        Self { store_id, generation, log_seq, hash: hash.to_string() }
    }
}

impl TryFrom<v1::Lease> for Lease {
    type Error = Malformed;
    fn try_from(wire: v1::Lease) -> Result<Self, Malformed> {
        let v1::Lease { run, work, epoch } = wire;
        Ok(Self {
            run: read::text("run", &run)?,
            work: read::text("work", &work)?,
            epoch: Epoch(epoch),
        })
    }
}

impl From<Lease> for v1::Lease {
    fn from(lease: Lease) -> Self {
        let Lease { run, work, epoch } = lease;
        Self { run: run.to_string(), work: work.to_string(), epoch: epoch.0 }
    }
}

impl TryFrom<v1::Progress> for Progress {
    type Error = Malformed;
    fn try_from(wire: v1::Progress) -> Result<Self, Malformed> {
        let v1::Progress { lease, phase, lines, quiet_ms, last_line } = wire;
        Ok(Self {
            lease: read::required("lease", lease)?,
            phase,
            lines,
            quiet_ms: DurationMs(quiet_ms),
            last_line,
        })
    }
}

impl From<Progress> for v1::Progress {
    fn from(progress: Progress) -> Self {
        let Progress { lease, phase, lines, quiet_ms, last_line } = progress;
        Self { lease: Some(lease.into()), phase, lines, quiet_ms: quiet_ms.0, last_line }
    }
}

impl TryFrom<v1::AgentFacts> for AgentFacts {
    type Error = Malformed;
    fn try_from(wire: v1::AgentFacts) -> Result<Self, Malformed> {
        let v1::AgentFacts { name, adapter, version } = wire;
        Ok(Self {
            name: read::said("name", name)?,
            adapter: read::said("adapter", adapter)?,
            version,
        })
    }
}

impl From<AgentFacts> for v1::AgentFacts {
    fn from(facts: AgentFacts) -> Self {
        let AgentFacts { name, adapter, version } = facts;
        Self { name, adapter, version }
    }
}

impl TryFrom<v1::WorkerFacts> for WorkerFacts {
    type Error = Malformed;
    fn try_from(wire: v1::WorkerFacts) -> Result<Self, Malformed> {
        let v1::WorkerFacts { worker, instance, name, labels, slots, agents, build } = wire;
        Ok(Self {
            worker: read::text("worker", &worker)?,
            instance: read::text("instance", &instance)?,
            name,
            labels,
            slots,
            agents: read::each("agents", agents)?,
            build,
        })
    }
}

impl From<WorkerFacts> for v1::WorkerFacts {
    fn from(facts: WorkerFacts) -> Self {
        let WorkerFacts { worker, instance, name, labels, slots, agents, build } = facts;
        Self {
            worker: worker.to_string(),
            instance: instance.to_string(),
            name,
            labels,
            slots,
            agents: wires(agents),
            build,
        }
    }
}

impl TryFrom<v1::WorkerView> for WorkerView {
    type Error = Malformed;
    fn try_from(wire: v1::WorkerView) -> Result<Self, Malformed> {
        let v1::WorkerView {
            id,
            name,
            state,
            labels,
            slots,
            busy,
            agents,
            build,
            last_beat,
            skew_ms,
        } = wire;
        Ok(Self {
            id: read::text("id", &id)?,
            name,
            state: read::said("state", state)?,
            labels,
            slots,
            busy,
            agents,
            build,
            last_beat: read::optional_time("last_beat", last_beat)?,
            skew_ms,
        })
    }
}

impl From<WorkerView> for v1::WorkerView {
    fn from(view: WorkerView) -> Self {
        let WorkerView { id, name, state, labels, slots, busy, agents, build, last_beat, skew_ms } =
            view;
        Self {
            id: id.to_string(),
            name,
            state,
            labels,
            slots,
            busy,
            agents,
            build,
            last_beat: last_beat.map(read::to_wire_time),
            skew_ms,
        }
    }
}

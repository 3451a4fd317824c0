//! The control stream: what a worker and a coordinator say to each other.

use ganger_shared::link::{Beat, CoordinatorSays, Hello, Welcome, WorkerSays};
use ganger_shared::time::DurationMs;

use super::wires;
use crate::malformed::Malformed;
use crate::v1::coordinator_message::Say as CoordinatorSay;
use crate::v1::worker_message::Say as WorkerSay;
use crate::{read, v1};

impl TryFrom<v1::WorkerMessage> for WorkerSays {
    type Error = Malformed;
    fn try_from(wire: v1::WorkerMessage) -> Result<Self, Malformed> {
        let v1::WorkerMessage { say } = wire;
        Ok(match read::present("worker_message", say)? {
            WorkerSay::Hello(hello) => Self::Hello(Box::new(read::required("hello", Some(hello))?)),
            WorkerSay::Beat(beat) => Self::Beat(read::required("beat", Some(beat))?),
            WorkerSay::Report(report) => {
                Self::Report(Box::new(read::required("report", Some(report))?))
            }
            WorkerSay::Goodbye(v1::Goodbye { reason }) => Self::Goodbye { reason },
        })
    }
}

impl From<WorkerSays> for v1::WorkerMessage {
    fn from(says: WorkerSays) -> Self {
        let say = match says {
            WorkerSays::Hello(hello) => WorkerSay::Hello((*hello).into()),
            WorkerSays::Beat(beat) => WorkerSay::Beat(beat.into()),
            WorkerSays::Report(report) => WorkerSay::Report((*report).into()),
            WorkerSays::Goodbye { reason } => WorkerSay::Goodbye(v1::Goodbye { reason }),
        };
        Self { say: Some(say) }
    }
}

impl TryFrom<v1::CoordinatorMessage> for CoordinatorSays {
    type Error = Malformed;
    fn try_from(wire: v1::CoordinatorMessage) -> Result<Self, Malformed> {
        let v1::CoordinatorMessage { say } = wire;
        Ok(match read::present("coordinator_message", say)? {
            CoordinatorSay::Welcome(welcome) => {
                Self::Welcome(read::required("welcome", Some(welcome))?)
            }
            CoordinatorSay::Keep(lease) => Self::Keep(read::required("keep", Some(lease))?),
            CoordinatorSay::Stop(stop) => read_stop(stop).map_err(|error| error.within("stop"))?,
            CoordinatorSay::Assign(assignment) => {
                Self::Assign(Box::new(read::required("assign", Some(assignment))?))
            }
            CoordinatorSay::Answered(answered) => {
                read_answered(answered).map_err(|error| error.within("answered"))?
            }
            CoordinatorSay::Goodbye(v1::Goodbye { reason }) => Self::Goodbye { reason },
        })
    }
}

fn read_stop(wire: v1::Stop) -> Result<CoordinatorSays, Malformed> {
    let v1::Stop { lease, reason, now } = wire;
    Ok(CoordinatorSays::Stop {
        lease: read::required("lease", lease)?,
        reason: read::word("reason", reason)?,
        now,
    })
}

fn read_answered(wire: v1::Answered) -> Result<CoordinatorSays, Malformed> {
    let v1::Answered { lease, number, answer, anchor } = wire;
    Ok(CoordinatorSays::Answered {
        lease: read::required("lease", lease)?,
        number,
        answer: read::word("answer", answer)?,
        anchor: read::optional("anchor", anchor)?,
    })
}

impl From<CoordinatorSays> for v1::CoordinatorMessage {
    fn from(says: CoordinatorSays) -> Self {
        let say = match says {
            CoordinatorSays::Welcome(welcome) => CoordinatorSay::Welcome(welcome.into()),
            CoordinatorSays::Keep(lease) => CoordinatorSay::Keep(lease.into()),
            CoordinatorSays::Stop { lease, reason, now } => CoordinatorSay::Stop(v1::Stop {
                lease: Some(lease.into()),
                reason: v1::StopReason::from(reason).into(),
                now,
            }),
            CoordinatorSays::Assign(assignment) => CoordinatorSay::Assign((*assignment).into()),
            CoordinatorSays::Answered { lease, number, answer, anchor } => {
                CoordinatorSay::Answered(v1::Answered {
                    lease: Some(lease.into()),
                    number,
                    answer: v1::Answer::from(answer).into(),
                    anchor: anchor.map(Into::into),
                })
            }
            CoordinatorSays::Goodbye { reason } => CoordinatorSay::Goodbye(v1::Goodbye { reason }),
        };
        Self { say: Some(say) }
    }
}

impl TryFrom<v1::Hello> for Hello {
    type Error = Malformed;
    fn try_from(wire: v1::Hello) -> Result<Self, Malformed> {
        let v1::Hello { protocol_min, protocol_max, facts, live, finished, seen, sent_at } = wire;
        Ok(Self {
            protocol_min,
            protocol_max,
            facts: read::required("facts", facts)?,
            live: read::each("live", live)?,
            finished: read::each("finished", finished)?,
            seen: read::optional("seen", seen)?,
            sent_at: read::time("sent_at", sent_at)?,
        })
    }
}

impl From<Hello> for v1::Hello {
    fn from(hello: Hello) -> Self {
        let Hello { protocol_min, protocol_max, facts, live, finished, seen, sent_at } = hello;
        Self {
            protocol_min,
            protocol_max,
            facts: Some(facts.into()),
            live: wires(live),
            finished: wires(finished),
            seen: seen.map(Into::into),
            sent_at: Some(read::to_wire_time(sent_at)),
        }
    }
}

impl TryFrom<v1::Beat> for Beat {
    type Error = Malformed;
    fn try_from(wire: v1::Beat) -> Result<Self, Malformed> {
        let v1::Beat { live, busy, sent_at, draining } = wire;
        Ok(Self {
            live: read::each("live", live)?,
            busy,
            sent_at: read::time("sent_at", sent_at)?,
            draining,
        })
    }
}

impl From<Beat> for v1::Beat {
    fn from(beat: Beat) -> Self {
        let Beat { live, busy, sent_at, draining } = beat;
        Self { live: wires(live), busy, sent_at: Some(read::to_wire_time(sent_at)), draining }
    }
}

impl TryFrom<v1::Welcome> for Welcome {
    type Error = Malformed;
    fn try_from(wire: v1::Welcome) -> Result<Self, Malformed> {
        let v1::Welcome { protocol, beat_ms, lease_ms, anchor } = wire;
        Ok(Self {
            protocol,
            beat_ms: DurationMs(beat_ms),
            lease_ms: DurationMs(lease_ms),
            anchor: read::required("anchor", anchor)?,
        })
    }
}

impl From<Welcome> for v1::Welcome {
    fn from(welcome: Welcome) -> Self {
        let Welcome { protocol, beat_ms, lease_ms, anchor } = welcome;
        Self { protocol, beat_ms: beat_ms.0, lease_ms: lease_ms.0, anchor: Some(anchor.into()) }
    }
}

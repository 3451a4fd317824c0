//! What a worker reports of one lease.

use ganger_shared::delivery::{CheckResult, Delivery};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::link::{Ended, Fact, Failed, Report, Started, Stopped};
use ganger_shared::time::DurationMs;

use crate::malformed::Malformed;
use crate::v1::report::Fact as WireFact;
use crate::{read, v1};

impl TryFrom<v1::Report> for Report {
    type Error = Malformed;
    fn try_from(wire: v1::Report) -> Result<Self, Malformed> {
        let v1::Report { lease, number, fact } = wire;
        Ok(Self {
            lease: read::required("lease", lease)?,
            number,
            fact: read::present("fact", fact)?.try_into()?,
        })
    }
}

impl From<Report> for v1::Report {
    fn from(report: Report) -> Self {
        let Report { lease, number, fact } = report;
        Self { lease: Some(lease.into()), number, fact: Some(fact.into()) }
    }
}

impl TryFrom<WireFact> for Fact {
    type Error = Malformed;
    fn try_from(wire: WireFact) -> Result<Self, Malformed> {
        Ok(match wire {
            WireFact::Accepted(v1::Accepted {}) => Self::Accepted,
            WireFact::Started(started) => Self::Started(started.into()),
            WireFact::Delivered(ended) => {
                Self::Delivered(Box::new(read::required("delivered", Some(ended))?))
            }
            WireFact::Failed(ended) => {
                Self::Failed(Box::new(read::required("failed", Some(ended))?))
            }
            WireFact::Stopped(ended) => Self::Stopped(read::required("stopped", Some(ended))?),
            WireFact::Measured(ended) => {
                Self::Measured(Box::new(read::required("measured", Some(ended))?))
            }
        })
    }
}

impl From<Fact> for WireFact {
    fn from(fact: Fact) -> Self {
        match fact {
            Fact::Accepted => Self::Accepted(v1::Accepted {}),
            Fact::Started(started) => Self::Started(started.into()),
            Fact::Delivered(ended) => Self::Delivered((*ended).into()),
            Fact::Failed(ended) => Self::Failed((*ended).into()),
            Fact::Stopped(ended) => Self::Stopped(ended.into()),
            Fact::Measured(ended) => Self::Measured((*ended).into()),
        }
    }
}

/// Numbers and words for people only: nothing of it can be malformed.
impl From<v1::Started> for Started {
    fn from(wire: v1::Started) -> Self {
        let v1::Started { pid, isolated, containment } = wire;
        Self { pid, isolated, containment }
    }
}

impl From<Started> for v1::Started {
    fn from(started: Started) -> Self {
        let Started { pid, isolated, containment } = started;
        Self { pid, isolated, containment }
    }
}

/// What every end has, around this end.
fn ended<T>(wire: Option<v1::Ending>, end: T) -> Result<Ended<T>, Malformed> {
    let v1::Ending { active_ms, output, output_truncated } = read::present("ending", wire)?;
    let output = read::optional("output", output).map_err(|error| error.within("ending"))?;
    Ok(Ended { end, active_ms: DurationMs(active_ms), output, output_truncated })
}

/// What every end has, as the wire has it.
fn ending(active_ms: DurationMs, output: Option<ArtifactRef>, truncated: bool) -> v1::Ending {
    v1::Ending {
        active_ms: active_ms.0,
        output: output.map(Into::into),
        output_truncated: truncated,
    }
}

impl TryFrom<v1::Delivered> for Ended<Delivery> {
    type Error = Malformed;
    fn try_from(wire: v1::Delivered) -> Result<Self, Malformed> {
        let v1::Delivered { ending, delivery } = wire;
        ended(ending, read::required("delivery", delivery)?)
    }
}

impl From<Ended<Delivery>> for v1::Delivered {
    fn from(ended: Ended<Delivery>) -> Self {
        let Ended { end, active_ms, output, output_truncated } = ended;
        Self {
            ending: Some(ending(active_ms, output, output_truncated)),
            delivery: Some(end.into()),
        }
    }
}

impl TryFrom<v1::Failed> for Ended<Failed> {
    type Error = Malformed;
    fn try_from(wire: v1::Failed) -> Result<Self, Malformed> {
        let v1::Failed { ending, failure, left, usage } = wire;
        let end = Failed {
            failure: read::required("failure", failure)?,
            left: read::optional("left", left)?,
            usage: read::present("usage", usage)?.into(),
        };
        ended(ending, end)
    }
}

impl From<Ended<Failed>> for v1::Failed {
    fn from(ended: Ended<Failed>) -> Self {
        let Ended { end, active_ms, output, output_truncated } = ended;
        let Failed { failure, left, usage } = end;
        Self {
            ending: Some(ending(active_ms, output, output_truncated)),
            failure: Some(failure.into()),
            left: left.map(Into::into),
            usage: Some(usage.into()),
        }
    }
}

impl TryFrom<v1::Stopped> for Ended<Stopped> {
    type Error = Malformed;
    fn try_from(wire: v1::Stopped) -> Result<Self, Malformed> {
        let v1::Stopped { ending, confirmed, usage } = wire;
        ended(ending, Stopped { confirmed, usage: read::present("usage", usage)?.into() })
    }
}

impl From<Ended<Stopped>> for v1::Stopped {
    fn from(ended: Ended<Stopped>) -> Self {
        let Ended { end, active_ms, output, output_truncated } = ended;
        let Stopped { confirmed, usage } = end;
        Self {
            ending: Some(ending(active_ms, output, output_truncated)),
            confirmed,
            usage: Some(usage.into()),
        }
    }
}

impl TryFrom<v1::Measured> for Ended<CheckResult> {
    type Error = Malformed;
    fn try_from(wire: v1::Measured) -> Result<Self, Malformed> {
        let v1::Measured { ending, result } = wire;
        ended(ending, read::required("result", result)?)
    }
}

impl From<Ended<CheckResult>> for v1::Measured {
    fn from(ended: Ended<CheckResult>) -> Self {
        let Ended { end, active_ms, output, output_truncated } = ended;
        Self { ending: Some(ending(active_ms, output, output_truncated)), result: Some(end.into()) }
    }
}

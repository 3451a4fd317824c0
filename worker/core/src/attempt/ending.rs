//! How an ending and its evidence become the one terminal fact.
//!
//! Pure tables: which failure a reason to stop is, and what a check reports when it did not measure.

use ganger_shared::delivery::{CheckResult, Delivery, NotMeasured, Outcome, Usage};
use ganger_shared::digest::ArtifactRef;
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::ids::TreeId;
use ganger_shared::link::{Ended, Fact, Failed, Stopped};
use ganger_shared::time::DurationMs;

use super::{Attempt, Ending, Evidence, Handed, Why};

impl Attempt {
    /// How an attempt ends that was stopped for this reason.
    pub(super) fn halted(&self, why: Why, confirmed: bool) -> Ending {
        let terms = &self.terms;
        let (class, message) = match why {
            Why::Asked(_) | Why::LeaseEnded => return Ending::Stopped { confirmed },
            Why::Timeout => {
                (FailureClass::Timeout, format!("it ran longer than {}", terms.timeout_ms))
            }
            Why::Silence => {
                let silence = terms.silence_ms.unwrap_or_default();
                (FailureClass::StreamStall, format!("it printed nothing for {silence}"))
            }
            Why::Start => (
                FailureClass::StartTimeout,
                format!("it did not begin to work within {}", terms.start_ms),
            ),
            Why::Leaving => {
                (FailureClass::WorkerRestarted, "the worker's process was ended".to_owned())
            }
        };
        let survivors = if confirmed { "" } else { "; its processes were not seen to end" };
        Ending::Failed(Failure::new(class, format!("{message}{survivors}")))
    }

    /// The terminal fact of an ending; `None` where its evidence could not be collected.
    pub(super) fn fact(
        &self,
        ending: Ending,
        evidence: Option<Evidence>,
        worked: DurationMs,
    ) -> Fact {
        let evidence = evidence.unwrap_or_else(|| self.no_evidence(&ending));
        let Evidence { handed, usage, output, output_truncated } = evidence;
        let end = match (ending, handed) {
            (Ending::Stopped { confirmed }, _) => End::Stopped { confirmed },
            (Ending::Finished, Handed::Delivery(delivery)) => End::Delivered(delivery),
            (Ending::Finished, Handed::Measured(result)) => End::Measured(result),
            (Ending::Finished | Ending::Failed(_), Handed::Failed { failure, left }) => {
                End::Failed(failure, left)
            }
            (Ending::Finished, Handed::Nothing) => End::Failed(
                Failure::new(FailureClass::InvalidResult, "nothing was handed in"),
                None,
            ),
            (Ending::Failed(failure), Handed::Delivery(left)) => End::Failed(failure, Some(left)),
            (Ending::Failed(failure), Handed::Measured(_) | Handed::Nothing) => {
                End::Failed(failure, None)
            }
        };
        let ended = Wrap { active_ms: worked, output, output_truncated };
        match (end, &self.terms.measures) {
            (End::Delivered(delivery), _) => Fact::Delivered(Box::new(ended.around(*delivery))),
            (End::Measured(result), _) => Fact::Measured(Box::new(ended.around(*result))),
            (End::Stopped { confirmed }, _) => {
                Fact::Stopped(ended.around(Stopped { confirmed, usage }))
            }
            (End::Failed(failure, _), Some(tree))
                if failure.class != FailureClass::WorkerRestarted =>
            {
                Fact::Measured(Box::new(ended.around(not_measured(failure, tree.clone()))))
            }
            (End::Failed(failure, left), _) => {
                let left = left.map(|left| *left);
                Fact::Failed(Box::new(ended.around(Failed { failure, left, usage })))
            }
        }
    }

    fn no_evidence(&self, ending: &Ending) -> Evidence {
        let handed = match ending {
            Ending::Finished => {
                let late =
                    format!("what it hands in was not stored within {}", self.terms.collect_ms);
                let failure = Failure::new(FailureClass::OutputRegistrationFailed, late);
                Handed::Failed { failure, left: None }
            }
            Ending::Failed(failure) => Handed::Failed { failure: failure.clone(), left: None },
            Ending::Stopped { .. } => Handed::Nothing,
        };
        Evidence { handed, usage: Usage::default(), output: None, output_truncated: false }
    }
}

enum End {
    Delivered(Box<Delivery>),
    Measured(Box<CheckResult>),
    Failed(Failure, Option<Box<Delivery>>),
    Stopped { confirmed: bool },
}

struct Wrap {
    active_ms: DurationMs,
    output: Option<ArtifactRef>,
    output_truncated: bool,
}

impl Wrap {
    fn around<T>(self, end: T) -> Ended<T> {
        let Self { active_ms, output, output_truncated } = self;
        Ended { end, active_ms, output, output_truncated }
    }
}

/// A check's own failure says nothing about what it was to measure.
fn not_measured(failure: Failure, tree: TreeId) -> CheckResult {
    let late = matches!(failure.class, FailureClass::Timeout | FailureClass::StreamStall);
    let why = if late { NotMeasured::Timeout } else { NotMeasured::HarnessDefect };
    CheckResult {
        outcome: Outcome::NotMeasured,
        not_measured: Some(why),
        evidence: None,
        tree,
        message: Some(failure.message),
    }
}

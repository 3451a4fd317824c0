//! What an ended attempt hands in, and what a check measured.
//!
//! Mechanical only: which tree it left, whether every change was allowed, how its program ended.
//! What is found is uploaded, redacted, and given as a `Delivery`, a `CheckResult` or the failure
//! that it is. Whether the delivery is any good is for checks, reviews and judges.

use ganger_shared::delivery::{Delivery, Usage};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::redact::Redactor;
use ganger_shared::spec::{Assignment, Body};

use crate::attempts::port::{Ending, Evidence, ExecEnd, Finish, Handed, Room, Site};
use crate::executor::environment;

mod check;
mod excerpt;
mod output;
pub mod scope;
mod tree;

use output::Output;
use tree::Tree;

/// What the parts of this room work on.
struct Case<'a> {
    site: &'a Site,
    assignment: &'a Assignment,
    room: &'a Room,
    redactor: Redactor,
}

/// Collects what an ended attempt or check hands in, and hands it over.
///
/// Never fails: what could not be collected is a failure that is handed in.
pub async fn collect(
    site: &Site,
    assignment: &Assignment,
    room: &Room,
    finish: &Finish,
) -> Evidence {
    let redactor = environment::redactor(site, assignment);
    let case = Case { site, assignment, room, redactor };
    let end = finish.end.as_deref();
    let usage = end.map(|end| end.usage).unwrap_or_default();
    let output = match output::hand_over(&case, end).await {
        Ok(output) => output,
        Err(failure) => {
            let failure = match &finish.ending {
                // What the attempt died of is worth more than what its output did.
                Ending::Failed(first) => case.clean(first),
                Ending::Finished | Ending::Stopped { .. } => failure,
            };
            let handed = Handed::Failed { failure, left: None };
            return Evidence { handed, usage, output: None, output_truncated: false };
        }
    };
    let handed = match (&finish.ending, &assignment.body) {
        (Ending::Stopped { .. }, _) => Handed::Nothing,
        (Ending::Finished, Body::Check(task)) => check::measured(&case, task, end, &output).await,
        (Ending::Failed(failure), Body::Check(_)) => {
            Handed::Failed { failure: case.clean(failure), left: None }
        }
        (Ending::Finished, Body::Command { .. } | Body::Agent(_)) => {
            case.delivered(end, &output).await
        }
        (Ending::Failed(failure), Body::Command { .. } | Body::Agent(_)) => {
            case.failed(failure, end, &output).await
        }
    };
    Evidence { handed, usage, output: output.artifact, output_truncated: output.truncated }
}

impl Case<'_> {
    async fn delivered(&self, end: Option<&ExecEnd>, output: &Output) -> Handed {
        let tree = match tree::read(self).await {
            Ok(tree) => tree,
            Err(failure) => return Handed::Failed { failure, left: None },
        };
        let refusal = self.refusal(end, tree.as_ref());
        let delivery = self.delivery(end, output, tree).await;
        match (delivery, refusal) {
            (Ok(delivery), None) => Handed::Delivery(Box::new(delivery)),
            (Ok(delivery), Some(failure)) => {
                Handed::Failed { failure, left: Some(Box::new(delivery)) }
            }
            (Err(failure), None) | (Err(_), Some(failure)) => {
                Handed::Failed { failure, left: None }
            }
        }
    }

    /// A failed attempt's remains, as far as they can be had.
    async fn failed(&self, failure: &Failure, end: Option<&ExecEnd>, output: &Output) -> Handed {
        let failure = self.clean(failure);
        let tree = tree::read(self).await;
        let left = match tree {
            Ok(tree) => self.delivery(end, output, tree).await,
            Err(failure) => Err(failure),
        };
        let left = left.inspect_err(|error| {
            tracing::warn!(message = error.message, "what a failed attempt left is not handed in");
        });
        Handed::Failed { failure, left: left.ok().map(Box::new) }
    }

    /// Why what ended well is no success all the same (design section 7).
    fn refusal(&self, end: Option<&ExecEnd>, tree: Option<&Tree>) -> Option<Failure> {
        let denied = end.map(|end| end.denied.as_slice()).unwrap_or_default();
        if !denied.is_empty() {
            let message = format!("permissions were denied: {}", denied.join(", "));
            return Some(self.clean(&Failure::new(FailureClass::PermissionDenied, message)));
        }
        let tree = tree?;
        if let Some(failure) = &tree.violation {
            return Some(failure.clone());
        }
        let declared = end.is_some_and(|end| end.no_change);
        let must_change = matches!(self.assignment.body, Body::Agent(_));
        (must_change && !declared && tree.changed.is_empty()).then(|| {
            Failure::new(
                FailureClass::NoChange,
                "the agent changed nothing and did not declare that nothing had to change",
            )
        })
    }

    async fn delivery(
        &self,
        end: Option<&ExecEnd>,
        output: &Output,
        tree: Option<Tree>,
    ) -> Result<Delivery, Failure> {
        let unchanged = tree.as_ref().is_some_and(|tree| tree.changed.is_empty());
        let declared = end.is_some_and(|end| end.no_change);
        let summary = end.map(|end| self.redactor.text(&end.summary)).unwrap_or_default();
        let tree = match tree {
            Some(tree) => Some(tree::hand_over(self, tree).await?),
            None => None,
        };
        let commands = match &self.assignment.body {
            Body::Command { run, .. } => {
                end.map(|end| check::evidence(self, run, (end, 0), output)).into_iter().collect()
            }
            Body::Agent(_) | Body::Check(_) => Vec::new(),
        };
        let no_change = match &self.assignment.body {
            Body::Agent(_) => declared && unchanged,
            Body::Command { .. } | Body::Check(_) => unchanged,
        };
        let words = if summary.is_empty() { output.tail.as_str() } else { summary.as_str() };
        let excerpt = excerpt::of(words);
        Ok(Delivery {
            tree,
            no_change,
            excerpt,
            commands,
            usage: end.map_or_else(Usage::default, |end| end.usage),
            session: end.and_then(|end| end.session.clone()),
            isolated: self.site.host.isolated,
            ..Delivery::new(summary)
        })
    }

    fn clean(&self, failure: &Failure) -> Failure {
        Failure::new(failure.class, self.redactor.text(&failure.message))
    }
}

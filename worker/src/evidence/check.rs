//! What a check measured, and the evidence of any program that ran.
//!
//! A check that did not measure the tree it was given says `not_measured`, never pass or fail: that
//! is the checker's own failure.

use ganger_shared::delivery::{CheckResult, CommandEvidence, NotMeasured, Outcome};
use ganger_shared::failure::{Failure, FailureClass};
use ganger_shared::spec::CheckTask;

use super::{Case, Output};
use crate::attempts::port::{ExecEnd, Handed};
use crate::process::Exit;
use crate::workspace;

/// The result of a check whose program came to its end.
pub(super) async fn measured(
    case: &Case<'_>,
    task: &CheckTask,
    end: Option<&ExecEnd>,
    output: &Output,
) -> Handed {
    let Some(end) = end else {
        let message = "the program ended and nobody can say how";
        let failure = Failure::new(FailureClass::ProcessTerminated, message);
        return Handed::Failed { failure, left: None };
    };
    let evidence = evidence(case, &task.run, (end, task.expect_exit), output);
    let outcome = if evidence.pass { Outcome::Pass } else { Outcome::Fail };
    let result = |outcome, not_measured, message| CheckResult {
        outcome,
        not_measured,
        evidence: Some(evidence.clone()),
        tree: task.tree.clone(),
        message,
    };
    let defect = Some(NotMeasured::HarnessDefect);
    Handed::Measured(Box::new(match drifted(case).await {
        Ok(None) => result(outcome, None, None),
        Ok(Some(message)) => result(Outcome::NotMeasured, defect, Some(message)),
        Err(failure) => result(Outcome::NotMeasured, defect, Some(case.clean(&failure).message)),
    }))
}

/// The record of one program (R108).
pub(super) fn evidence(
    case: &Case<'_>,
    run: &str,
    (end, expected): (&ExecEnd, i32),
    output: &Output,
) -> CommandEvidence {
    let exit_code = match end.exit {
        Some(Exit::Code(code)) => Some(code),
        Some(Exit::Signal(_)) | None => None,
    };
    CommandEvidence {
        cmd: case.redactor.text(run),
        pass: exit_code == Some(expected),
        exit_code,
        log_tail: output.tail.clone(),
        log: output.artifact.clone(),
        duration_ms: end.duration_ms,
    }
}

/// What the program changed of the tree it was to measure, in words.
async fn drifted(case: &Case<'_>) -> Result<Option<String>, Failure> {
    let Some(source) = &case.assignment.source else { return Ok(None) };
    let (_, checkout) = workspace::checkout(case.site, source, &case.room.dir).await?;
    let drift = workspace::drift(&checkout, case.room).await?;
    Ok(drift.map(|drift| {
        let shown = drift.paths[..drift.paths.len().min(20)].join(", ");
        format!("tree_drift: the check changed what it was to measure: {shown}")
    }))
}

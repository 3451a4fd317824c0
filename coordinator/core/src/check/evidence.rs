//! Rules: a check can fail, and what is accepted by nobody is proven by something (R107).
//!
//! Which commands cannot fail is read from the shell's own rules in `ganger_shared::plan`.

use ganger_shared::plan::{self, Accept, Check, Kind, Mode, Unit, path};
use ganger_shared::problem::{Code, Problem};

use super::{Draft, sites};

/// Every check that succeeds whatever happens; refused in every mode.
pub(super) fn cannot_fail(draft: &Draft<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for site in sites::all(draft.plan) {
        for (index, check) in site.unit.checks.iter().enumerate() {
            let Some(reason) = always_passes(check) else { continue };
            let place = path::key(&site.item("checks", index), "run");
            let message = format!("check {} cannot fail: {reason}", check.name);
            let fix = "let its exit code say whether it passed";
            found.push(Problem::error(Code::CannotFail, place, message).with_fix(fix));
        }
    }
    found
}

/// Every unit whose changes would be accepted without a person and without a measured fact.
pub(super) fn no_evidence(draft: &Draft<'_>) -> Vec<Problem> {
    if draft.plan.repository.is_none() {
        return Vec::new();
    }
    sites::all(draft.plan)
        .filter(|site| writes(site.unit) && accepted_by_policy(site.unit, draft.plan.mode()))
        .filter(|site| !site.unit.checks.iter().any(proves))
        // A check that could not be read may be the one that is missed here.
        .filter(|site| draft.reading.intact(&site.key("checks")))
        .map(|site| {
            let message = format!(
                "unit `{}` would be accepted without evidence: it has no required check that can fail",
                site.unit.id
            );
            let fix = "add one, write `accept: judge`, or `files: []` if it changes nothing";
            Problem::error(Code::NoEvidence, site.key("checks"), message).with_fix(fix)
        })
        .collect()
}

fn writes(unit: &Unit) -> bool {
    let changes_tree = matches!(unit.kind, Kind::Agent | Kind::Command);
    changes_tree && unit.files.as_ref().is_none_or(|files| !files.is_empty())
}

fn accepted_by_policy(unit: &Unit, mode: Mode) -> bool {
    match (unit.accept, mode) {
        (Some(Accept::Auto), _) | (None, Mode::Autonomous) => true,
        (Some(Accept::Judge), _) | (None, Mode::Supervised) => false,
    }
}

fn proves(check: &Check) -> bool {
    check.required() && always_passes(check).is_none()
}

fn always_passes(check: &Check) -> Option<plan::Reason> {
    // With another code expected, a command that always exits 0 never passes, which proves enough.
    (check.expect_exit() == 0).then(|| plan::cannot_fail(&check.run)).flatten()
}

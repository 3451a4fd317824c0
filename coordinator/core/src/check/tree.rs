//! Rule: what needs a repository has one.

use ganger_shared::plan::DeliveryMode;
use ganger_shared::problem::{Code, Problem};

use super::{Draft, sites};

const FIX: &str = "add `repository`";

/// Every check, and a delivery, for which there is no tree.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let plan = draft.plan;
    if plan.repository.is_some() || !draft.reading.intact("repository") {
        return Vec::new();
    }
    let mut found: Vec<Problem> = sites::all(plan)
        .filter(|site| !site.unit.checks.is_empty())
        .map(|site| {
            let message = "checks need a repository";
            let fix = format!("{FIX}, or remove them");
            Problem::error(Code::Conflict, site.key("checks"), message).with_fix(fix)
        })
        .collect();
    if plan.delivery_mode() > DeliveryMode::Hold {
        let message = "there is no repository to deliver from";
        let fix = format!("{FIX}, or write `hold`");
        found.push(Problem::error(Code::Conflict, "delivery.mode", message).with_fix(fix));
    }
    found
}

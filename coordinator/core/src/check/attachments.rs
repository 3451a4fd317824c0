//! Rule: every file the plan names came with it, and all that did not are said together (R003).
//!
//! The client asks the same function which files to send. Not here: reading them.

use ganger_shared::plan::{PlanFile, path};
use ganger_shared::problem::{Code, Problem};

use super::{Draft, shown, sites};

/// Every file the plan names, as (place, path relative to the plan file).
pub fn named(plan: &PlanFile) -> Vec<(String, &str)> {
    sites::agents(plan)
        .into_iter()
        .filter_map(|(place, agent)| Some((path::key(&place, "script"), agent.script.as_deref()?)))
        .collect()
}

/// Every file that is named and not there.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    named(draft.plan)
        .into_iter()
        .filter(|(_, file)| !draft.context.attachments.contains_key(*file))
        .map(|(place, file)| {
            let message = format!("file `{}` did not come with the plan", shown(file));
            let fix = "write a path relative to the plan file, and see that the file is there";
            Problem::error(Code::UnknownName, place, message).with_fix(fix)
        })
        .collect()
}

//! Rule: every file pattern can be used, before a claim or a scope is decided with it.

use ganger_shared::plan::path;
use ganger_shared::problem::{Code, Problem};

use super::{Draft, shown, sites};
use crate::globs;

/// Every pattern that cannot be used.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    patterns(draft)
        .into_iter()
        .filter_map(|(place, glob)| {
            let wrong = globs::check(glob).err()?;
            let message = wrong.to_string();
            let message =
                if glob.is_empty() { message } else { message.replace(glob, &shown(glob)) };
            Some(Problem::error(Code::BadValue, place, message))
        })
        .collect()
}

fn patterns<'a>(draft: &Draft<'a>) -> Vec<(String, &'a String)> {
    let plan = draft.plan;
    let mut all = Vec::new();
    for site in sites::all(plan) {
        let files = site.unit.files.iter().flatten().enumerate();
        all.extend(files.map(|(nth, glob)| (site.item("files", nth), glob)));
        for (index, check) in site.unit.checks.iter().enumerate() {
            let at = path::key(&site.item("checks", index), "pinned");
            all.extend(items(&at, &check.pinned));
        }
    }
    for (index, protect) in plan.contract.protect.iter().enumerate() {
        all.push((path::key(&path::item("contract.protect", index), "path"), &protect.path));
    }
    for (index, risk) in plan.contract.risk.iter().enumerate() {
        let at = path::key(&path::item("contract.risk", index), "paths");
        all.extend(items(&at, &risk.paths));
    }
    for (index, insert) in plan.insert.iter().enumerate() {
        let trigger = path::key(&path::item("insert", index), "trigger");
        all.extend(items(&path::key(&trigger, "changed"), &insert.trigger.changed));
    }
    all
}

fn items<'a>(at: &str, globs: &'a [String]) -> Vec<(String, &'a String)> {
    globs.iter().enumerate().map(|(nth, glob)| (path::item(at, nth), glob)).collect()
}

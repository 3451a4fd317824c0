//! Rule: the run's budgets let it do something, and no more than the operator allows (R011).
//!
//! That every amount is a finite, non-negative number is the reader's word (P073).

use ganger_shared::limits;
use ganger_shared::plan::{Budgets, Calls};
use ganger_shared::problem::{Code, Problem};
use ganger_shared::time::DurationMs;

use super::Draft;

/// The most tokens any plan may ask for.
const TOKENS_MAX: u64 = 50_000_000;

/// Every budget that is nothing or too much, and units beyond it.
pub(super) fn problems(draft: &Draft<'_>) -> Vec<Problem> {
    let budgets = &draft.plan.budgets;
    let mut found = zeros(budgets);
    found.extend(units(draft));
    if let Some(tokens) = budgets.tokens.filter(|tokens| *tokens > TOKENS_MAX) {
        let message = format!("{tokens} tokens, at most {TOKENS_MAX}");
        found.push(Problem::error(Code::Limit, "budgets.tokens", message));
    }
    found
}

fn zeros(budgets: &Budgets) -> Vec<Problem> {
    let Budgets { units, attempts, tokens, usd, active, calls } = budgets;
    let Calls { executor, review: _, total } = calls.clone().unwrap_or_default();
    let amounts = [
        ("budgets.units", *units == Some(0)),
        ("budgets.attempts", *attempts == Some(0)),
        ("budgets.tokens", *tokens == Some(0)),
        ("budgets.usd", usd.as_ref().is_some_and(|usd| usd.micros == 0)),
        ("budgets.active", active.is_some_and(|active| active.0 == DurationMs::default())),
        ("budgets.calls.executor", executor == Some(0)),
        ("budgets.calls.total", total == Some(0)),
    ];
    amounts
        .into_iter()
        .filter(|(_, zero)| *zero)
        .map(|(place, _)| {
            let message = "a budget of nothing lets nothing run";
            let fix = "write more than 0, or leave it out";
            Problem::error(Code::BadValue, place, message).with_fix(fix)
        })
        .collect()
}

fn units(draft: &Draft<'_>) -> Vec<Problem> {
    let allowed = draft.context.limits.units_max;
    let asked = draft.plan.budgets.units;
    let mut found = Vec::new();
    if let Some(asked) = asked.filter(|asked| *asked > allowed) {
        let message = format!("{asked} units, at most {allowed}");
        let problem = Problem::error(Code::Limit, "budgets.units", message);
        found.push(problem.with_fix("ask for less, or the operator for more"));
    }
    let planned = draft.plan.units.len();
    let most = asked.unwrap_or(limits::UNITS).min(allowed);
    // A budget of nothing has its own words.
    if asked != Some(0) && planned > usize::try_from(most).unwrap_or(usize::MAX) {
        let message = format!("{planned} units planned, at most {most}");
        let problem = Problem::error(Code::Limit, "units", message);
        found.push(problem.with_fix("split the plan or set budgets.units"));
    }
    found
}

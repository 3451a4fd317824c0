//! What a run is frozen by: one digest over everything that says when it is done.
//!
//! The digest is the SHA-256 of one JSON object in canonical form: keys of every object in rising
//! byte order, no white space, UTF-8, text escaped as `serde_json` does, whole numbers in decimal.
//! It has exactly these keys:
//!
//! | key | value |
//! |---|---|
//! | `budgets` | as written in the plan |
//! | `contract` | as written in the plan |
//! | `delivery` | the mode, or `hold` |
//! | `goal` | the text, or an empty one |
//! | `mode` | the mode, or `supervised` |
//! | `units` | for each unit id: `accept` as resolved, `checks` as resolved, and, where written, `exit` and `gate` |
//!
//! Lists keep their order; keys without a value are left out. Not part of it: names, objectives,
//! agents, timeouts of units, and whatever else may change without changing what is owed.

use ganger_shared::digest::Digest;
use ganger_shared::plan::{Budgets, Contract, DeliveryMode, Mode, PlanFile, Unit};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The digest of a plan and its resolved units.
pub fn hash(plan: &PlanFile, units: &[Unit]) -> Digest {
    Digest::of(text(plan, units).as_bytes())
}

/// The canonical text the digest is of.
pub fn text(plan: &PlanFile, units: &[Unit]) -> String {
    #[derive(Serialize)]
    struct Frozen<'a> {
        budgets: &'a Budgets,
        contract: &'a Contract,
        delivery: DeliveryMode,
        goal: &'a str,
        mode: Mode,
        units: Map<String, Value>,
    }
    let frozen = Frozen {
        budgets: &plan.budgets,
        contract: &plan.contract,
        delivery: plan.delivery_mode(),
        goal: plan.goal.as_deref().unwrap_or_default(),
        mode: plan.mode(),
        units: units.iter().map(|unit| (unit.id.to_string(), owed(unit))).collect(),
    };
    let value = serde_json::to_value(frozen).expect("a plan has only text keys");
    let mut text = String::new();
    canonical(&value, &mut text);
    text
}

fn owed(unit: &Unit) -> Value {
    let mut owed = json!({ "accept": unit.accept, "checks": unit.checks });
    if let Some(exit) = &unit.exit {
        owed["exit"] = json!(exit);
    }
    if let Some(gate) = &unit.gate {
        owed["gate"] = json!(gate);
    }
    owed
}

/// Sorted here and not by the map type, whose order depends on a feature any dependency may set.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                canonical(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

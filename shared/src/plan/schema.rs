//! The one JSON Schema of the plan file, made from the types.
//!
//! `docs/plan.schema.json` is this, written down; editors and the reader use the same.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::PlanFile;

/// The schema as JSON.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<PlanFile>().to_value();
    without_null(&mut schema);
    schema
}

/// Takes out every `null`: a key is there with a value, or it is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for child in map.values_mut() {
                without_null(child);
            }
            one_type(map);
            no_null_variant(map);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn one_type(map: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = map.get_mut("type") else { return };
    types.retain(|word| word != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        map.insert("type".to_owned(), only);
    }
}

fn no_null_variant(map: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = map.get_mut("anyOf") else { return };
    variants.retain(|variant| variant.get("type").is_none_or(|word| word != "null"));
    let [Value::Object(only)] = variants.as_slice() else { return };
    let only = only.clone();
    map.remove("anyOf");
    for (key, value) in only {
        map.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed reading is the failed test")]
    #![allow(clippy::disallowed_methods, reason = "the written schema is a file")]
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/plan.schema.json");

    fn properties<'s>(schema: &'s Value, out: &mut Vec<&'s str>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    out.extend(properties.keys().map(String::as_str));
                }
                map.values().for_each(|child| properties(child, out));
            }
            Value::Array(items) => items.iter().for_each(|child| properties(child, out)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_written_schema_is_current() {
        let current = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
        if std::env::var_os("GANGER_UPDATE").is_some() {
            std::fs::write(FILE, &current).unwrap();
        }
        let written = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(
            written == current,
            "docs/plan.schema.json is stale: run `GANGER_UPDATE=1 cargo test -p ganger-shared the_written_schema_is_current`"
        );
    }

    #[test]
    fn no_key_is_a_word_that_some_tools_read_as_a_boolean() {
        let schema = schema();
        let mut keys = Vec::new();
        properties(&schema, &mut keys);
        assert!(keys.len() > 100, "the schema was not walked: {keys:?}");
        for key in keys {
            let word = key.to_lowercase();
            assert!(
                !["on", "off", "yes", "no", "y", "n", "true", "false"].contains(&word.as_str()),
                "`{key}` reads as a boolean"
            );
        }
    }
}

//! Questions the reader asks of the generated schema.
//!
//! Only the forms our own types give rise to are known here; `schema.rs` makes it, this reads it.

use serde_json::{Map, Value};

/// The alternatives of a schema, sorted by what may be written.
pub struct Variants<'s> {
    /// Whether any text may stand there.
    pub text: bool,
    /// Single words that may stand there.
    pub words: Vec<&'s str>,
    /// Maps that may stand there.
    pub objects: Vec<&'s Value>,
}

impl<'s> Variants<'s> {
    /// Every key of every map that may stand there, each once.
    pub fn keys(&self) -> Vec<&'s str> {
        let mut all = Vec::new();
        for key in self.objects.iter().copied().flat_map(keys) {
            if !all.contains(&key) {
                all.push(key);
            }
        }
        all
    }

    /// Whether one of the maps has this key.
    pub fn knows(&self, key: &str) -> bool {
        self.objects.iter().any(|schema| property(schema, key).is_some())
    }
}

/// The schema a reference leads to, with its name among the definitions.
pub fn resolve<'s>(root: &'s Value, schema: &'s Value) -> (&'s Value, Option<&'s str>) {
    let mut at = schema;
    let mut name = None;
    // Definitions refer to definitions at most a few times; the bound only guards against a circle.
    for _ in 0..8 {
        let Some(target) = at.get("$ref").and_then(Value::as_str) else { break };
        let Some(key) = target.strip_prefix("#/$defs/") else { break };
        let Some(found) = root.get("$defs").and_then(|defs| defs.get(key)) else { break };
        (at, name) = (found, Some(key));
    }
    (at, name)
}

/// The words of a schema that allows nothing but words.
pub fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(word) = schema.get("const") {
        return word.as_str().map(|word| vec![word]);
    }
    if let Some(Value::Array(list)) = schema.get("enum") {
        return list.iter().map(Value::as_str).collect();
    }
    let list = alternatives(schema)?;
    let words = list.iter().map(words).collect::<Option<Vec<_>>>()?;
    Some(words.concat())
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()
}

/// The alternatives of a schema that has some.
pub fn variants<'s>(root: &'s Value, schema: &'s Value) -> Option<Variants<'s>> {
    let mut variants = Variants { text: false, words: Vec::new(), objects: Vec::new() };
    for alternative in alternatives(schema)? {
        let (alternative, _) = resolve(root, alternative);
        match (words(alternative), type_of(alternative)) {
            (Some(words), _) => variants.words.extend(words),
            (None, Some("string")) => variants.text = true,
            (None, _) => variants.objects.push(alternative),
        }
    }
    Some(variants)
}

/// The one type a schema asks for; nothing where any value may stand.
pub fn type_of(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

/// The schema of a key: one of its own, or that of free keys.
pub fn property<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let own = schema.get("properties").and_then(|properties| properties.get(key));
    own.or_else(|| schema.get("additionalProperties").filter(|free| **free != Value::Bool(false)))
}

/// The keys a map may have, in the order of the types.
pub fn keys(schema: &Value) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(Map::keys).into_iter().flatten().map(String::as_str).collect()
}

/// The keys a map must have.
pub fn required(schema: &Value) -> Vec<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The first sentence of what a schema says about itself.
pub fn about<'s>(root: &'s Value, schema: &'s Value) -> Option<String> {
    let own = schema.get("description").or_else(|| resolve(root, schema).0.get("description"));
    let text = own?.as_str()?;
    let end = [". ", "; ", "\n\n", ": "].iter().filter_map(|end| text.find(end)).min();
    Some(text[..end.unwrap_or(text.len())].trim_end_matches('.').replace('\n', " "))
}

/// The smallest and largest whole number a schema allows.
pub fn range(schema: &Value) -> (i128, i128) {
    let format = schema.get("format").and_then(Value::as_str);
    let (low, high) = match format {
        Some("uint8") => (0, i128::from(u8::MAX)),
        Some("uint32") => (0, i128::from(u32::MAX)),
        Some("uint64") => (0, i128::from(u64::MAX)),
        Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Some(_) | None => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64).map(i128::from);
    (bound("minimum").unwrap_or(low), bound("maximum").unwrap_or(high))
}

/// What is wrong with this many items, if something is.
pub fn count_problem(schema: &Value, count: usize) -> Option<String> {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let min = bound("minItems").unwrap_or(0);
    let max = bound("maxItems").unwrap_or(u64::MAX);
    if count < min {
        Some(format!("wants at least {min}, found {count}"))
    } else if count > max {
        Some(format!("wants at most {max}, found {count}"))
    } else {
        None
    }
}

/// The name of a type as people say it.
pub fn noun(wanted: &str) -> &str {
    match wanted {
        "object" => "a map",
        "array" => "a list",
        "string" => "a text",
        "integer" => "a whole number",
        "boolean" => "true or false",
        other => other,
    }
}

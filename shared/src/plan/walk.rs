//! A tree held against the schema: every problem with its path, line and column, and the values the
//! types are then read from.
//!
//! Driven by the generated schema alone, so that a new key needs no line here. What the schema
//! cannot say about a text (ids, lengths, money) is asked of the type by its name in `form`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value as Json};

use super::form;
use super::path;
use super::schema_view::{self as view, Variants};
use super::tree::{Entry, Node, Place, Value};
use crate::nearest::did_you_mean;
use crate::problem::{Code, Problem};

/// Most problems reported of one plan.
pub const PROBLEMS_MAX: usize = 100;

const SHOWN_CHARS: usize = 60;

/// A text of the plan as it may be shown in a message: short, and without control characters.
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// One walk over one tree.
pub struct Walk<'s> {
    root: &'s Json,
    /// What was found.
    pub problems: Vec<Problem>,
    /// Where each path stands.
    pub spans: BTreeMap<String, Place>,
}

impl<'s> Walk<'s> {
    /// A walk against this schema.
    pub fn new(root: &'s Json) -> Self {
        Self { root, problems: Vec::new(), spans: BTreeMap::new() }
    }

    /// The value of a node as its schema wants it; nothing if a part that must be there is wrong.
    pub fn value(&mut self, node: &Node, schema: &'s Json, path: &str) -> Option<Json> {
        let (schema, name) = view::resolve(self.root, schema);
        if let Some(form) = name.and_then(form::of) {
            return self.formed(node, form, path);
        }
        if let Some(words) = view::words(schema) {
            return self.word(node, &words, path);
        }
        if let Some(variants) = view::variants(self.root, schema) {
            return self.one_of(node, &variants, path);
        }
        match (view::type_of(schema), &node.value) {
            (None, _) => Some(self.anything(node, path)),
            (Some("object"), Value::Map(entries)) => self.map(entries, schema, node.place, path),
            (Some("array"), Value::List(items)) => self.list(items, schema, node.place, path),
            (Some("string"), Value::Quoted(text)) => Some(Json::String(text.clone())),
            (Some("string"), Value::Plain(text)) => self.text(text, node.place, path),
            (Some("integer"), Value::Plain(text)) => self.integer(text, schema, node.place, path),
            (Some("boolean"), Value::Plain(text)) => self.truth(text, node.place, path),
            (Some(wanted), _) => self.wrong_type(node, wanted, path),
        }
    }

    fn report(&mut self, problem: Problem, place: Place) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem.at(Some(place)));
        } else if self.problems.len() == PROBLEMS_MAX {
            let message = format!("more than {PROBLEMS_MAX} problems; the rest is not shown");
            self.problems.push(Problem::error(Code::Limit, "", message));
        }
    }

    fn map(
        &mut self,
        entries: &[Entry],
        schema: &'s Json,
        place: Place,
        path: &str,
    ) -> Option<Json> {
        let required = view::required(schema);
        let mut values = Map::new();
        let mut whole = true;
        let mut seen = BTreeSet::new();
        for entry in entries {
            let below = path::key(path, &entry.key);
            if !seen.insert(entry.key.as_str()) {
                let message = format!("key `{}` is there twice", shown(&entry.key));
                self.report(
                    Problem::error(Code::Duplicate, below, message).with_fix("remove one of them"),
                    entry.place,
                );
                continue;
            }
            let Some(child) = view::property(schema, &entry.key) else {
                self.unknown_key(&entry.key, &view::keys(schema), entry.place, path);
                continue;
            };
            self.note(&below, entry.place, &entry.node);
            match self.value(&entry.node, child, &below) {
                Some(value) => {
                    values.insert(entry.key.clone(), value);
                }
                None => whole &= !required.contains(&entry.key.as_str()),
            }
        }
        for key in required.iter().filter(|key| !seen.contains(*key)) {
            self.missing_key(schema, key, place, path);
            whole = false;
        }
        whole.then_some(Json::Object(values))
    }

    /// Remembers where a path stands: a single value itself, a list or map by its key.
    fn note(&mut self, path: &str, key: Place, node: &Node) {
        let place = match node.value {
            Value::Plain(_) | Value::Quoted(_) => node.place,
            Value::List(_) | Value::Map(_) => key,
        };
        self.spans.insert(path.to_owned(), place);
    }

    fn unknown_key(&mut self, key: &str, known: &[&str], place: Place, path: &str) {
        let fix = match form::advice(key, known) {
            Some(advice) => advice.to_owned(),
            None => did_you_mean(key, known.iter().copied()),
        };
        let fix = if fix.is_empty() { known_here(known) } else { fix };
        let message = format!("unknown key `{}`", shown(key));
        let problem = Problem::error(Code::UnknownKey, path::key(path, key), message);
        self.report(problem.with_fix(fix), place);
    }

    fn missing_key(&mut self, schema: &Json, key: &str, place: Place, path: &str) {
        let about = view::property(schema, key).and_then(|child| view::about(self.root, child));
        let fix = about.map(|about| format!("add `{key}`: {about}")).unwrap_or_default();
        let problem = Problem::error(
            Code::MissingKey,
            path::key(path, key),
            format!("key `{key}` is missing"),
        );
        self.report(problem.with_fix(fix), place);
    }

    fn list(&mut self, items: &[Node], schema: &'s Json, place: Place, path: &str) -> Option<Json> {
        if let Some(message) = view::count_problem(schema, items.len()) {
            self.report(Problem::error(Code::BadValue, path, message), place);
        }
        let item_schema = schema.get("items").unwrap_or(&Json::Bool(true));
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let below = path::item(path, index);
            self.spans.insert(below.clone(), item.place);
            values.push(self.value(item, item_schema, &below));
        }
        values.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
    }

    fn formed(&mut self, node: &Node, form: form::Form, path: &str) -> Option<Json> {
        let (text, quoted) = match &node.value {
            Value::Quoted(text) => (text, true),
            Value::Plain(text) if Plain::read(text) != Plain::Nothing => (text, false),
            Value::Plain(_) | Value::List(_) | Value::Map(_) => {
                return self.wrong_type(node, "string", path);
            }
        };
        if let Err(message) = (form.check)(text) {
            self.report(Problem::error(Code::BadValue, path, message), node.place);
            return None;
        }
        if quoted || form.number_allowed {
            return Some(Json::String(text.clone()));
        }
        self.text(text, node.place, path)
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &str) -> Option<Json> {
        let (Value::Plain(text) | Value::Quoted(text)) = &node.value else {
            return self.wrong_type(node, "string", path);
        };
        if words.contains(&text.as_str()) {
            return Some(Json::String(text.clone()));
        }
        let near = did_you_mean(text, words.iter().copied());
        let message = format!("`{}` is none of {}", shown(text), words.join(", "));
        let problem = Problem::error(Code::UnknownWord, path, message);
        self.report(problem.with_fix(near), node.place);
        None
    }

    fn one_of(&mut self, node: &Node, variants: &Variants<'s>, path: &str) -> Option<Json> {
        match &node.value {
            Value::Map(entries) if !variants.objects.is_empty() => {
                self.one_object(entries, variants, node.place, path)
            }
            Value::Plain(text) if variants.text => self.text(text, node.place, path),
            Value::Quoted(text) if variants.text => Some(Json::String(text.clone())),
            Value::Plain(_) | Value::Quoted(_) if !variants.words.is_empty() => {
                self.word(node, &variants.words, path)
            }
            Value::Plain(_) | Value::Quoted(_) | Value::List(_) | Value::Map(_) => {
                let wanted = if variants.objects.is_empty() { "string" } else { "object" };
                self.wrong_type(node, wanted, path)
            }
        }
    }

    /// Picks the form whose keys are there; a key of another form excludes it and is said so.
    fn one_object(
        &mut self,
        entries: &[Entry],
        variants: &Variants<'s>,
        place: Place,
        path: &str,
    ) -> Option<Json> {
        let hits = |schema: &&'s Json| {
            entries.iter().filter(|entry| view::property(schema, &entry.key).is_some()).count()
        };
        // The first of those with the most hits: `max_by_key` would take the last.
        let chosen = variants.objects.iter().rev().max_by_key(|schema| hits(schema))?;
        let mut mine = Vec::new();
        for entry in entries {
            let below = path::key(path, &entry.key);
            if view::property(chosen, &entry.key).is_some() {
                mine.push(entry.clone());
            } else if variants.knows(&entry.key) {
                let kept = view::keys(chosen).join("`, `");
                let message = format!("`{}` does not go with `{kept}`", shown(&entry.key));
                let problem = Problem::error(Code::Conflict, below, message);
                self.report(problem.with_fix("keep one of them"), entry.place);
            } else {
                self.unknown_key(&entry.key, &variants.keys(), entry.place, path);
            }
        }
        if mine.is_empty() {
            let message = "one of its keys must be there";
            let problem = Problem::error(Code::MissingKey, path, message);
            self.report(problem.with_fix(known_here(&variants.keys())), place);
            return None;
        }
        self.map(&mine, chosen, place, path)
    }

    fn text(&mut self, text: &str, place: Place, path: &str) -> Option<Json> {
        let found = match Plain::read(text) {
            Plain::Text => return Some(Json::String(text.to_owned())),
            Plain::Nothing => {
                let problem = Problem::error(Code::WrongType, path, "there is no value");
                self.report(problem.with_fix("write one, or leave the key out"), place);
                return None;
            }
            Plain::Truth(_) => "a truth value",
            Plain::Integer(_) | Plain::Real(_) => "a number",
        };
        let message = format!("wants a text, found {found}");
        let problem = Problem::error(Code::WrongType, path, message);
        self.report(problem.with_fix(format!("write \"{}\"", shown(text))), place);
        None
    }

    fn integer(&mut self, text: &str, schema: &Json, place: Place, path: &str) -> Option<Json> {
        let Plain::Integer(number) = Plain::read(text) else {
            let node = Node { value: Value::Plain(text.to_owned()), place };
            return self.wrong_type(&node, "integer", path);
        };
        let (min, max) = view::range(schema);
        let fits = i64::try_from(number).map(Number::from);
        let fits = fits.or_else(|_| u64::try_from(number).map(Number::from));
        match fits {
            Ok(number_json) if (min..=max).contains(&number) => Some(Json::Number(number_json)),
            Ok(_) | Err(_) => {
                let message = format!("{} is not within {min} to {max}", shown(text));
                self.report(Problem::error(Code::BadValue, path, message), place);
                None
            }
        }
    }

    fn truth(&mut self, text: &str, place: Place, path: &str) -> Option<Json> {
        if let Plain::Truth(truth) = Plain::read(text) {
            return Some(Json::Bool(truth));
        }
        let meant = match text.to_lowercase().as_str() {
            "yes" | "on" | "y" => Some("write `true`"),
            "no" | "off" | "n" => Some("write `false`"),
            _ => None,
        };
        let message = format!("wants true or false, found `{}`", shown(text));
        let problem = Problem::error(Code::WrongType, path, message);
        self.report(problem.with_fix(meant.unwrap_or_default()), place);
        None
    }

    fn wrong_type(&mut self, node: &Node, wanted: &str, path: &str) -> Option<Json> {
        let (found, text) = match &node.value {
            Value::Map(_) => ("a map", None),
            Value::List(_) => ("a list", None),
            Value::Quoted(text) => ("a text", Some(text)),
            Value::Plain(text) => (Plain::read(text).noun(), Some(text)),
        };
        let fix = match (wanted, text) {
            (_, Some(text)) if found == Plain::Nothing.noun() && text.len() <= 4 => {
                "write a value, or leave the key out".to_owned()
            }
            ("array", Some(text)) => format!("write [{}]", shown(text)),
            ("integer", Some(text)) if matches!(Plain::read(text), Plain::Integer(_)) => {
                "write it without quotes".to_owned()
            }
            ("boolean", Some(text)) if text == "true" || text == "false" => {
                "write it without quotes".to_owned()
            }
            _ => String::new(),
        };
        let message = format!("wants {}, found {found}", view::noun(wanted));
        let problem = Problem::error(Code::WrongType, path, message);
        self.report(problem.with_fix(fix), node.place);
        None
    }

    /// A value no schema restricts; only keys that are there twice can be wrong in it.
    fn anything(&mut self, node: &Node, path: &str) -> Json {
        match &node.value {
            Value::Quoted(text) => Json::String(text.clone()),
            Value::Plain(text) => Plain::read(text).into_json(text),
            Value::List(items) => {
                let values = items.iter().enumerate();
                values.map(|(index, item)| self.anything(item, &path::item(path, index))).collect()
            }
            Value::Map(entries) => {
                let mut values = Map::new();
                for entry in entries {
                    let below = path::key(path, &entry.key);
                    let value = self.anything(&entry.node, &below);
                    if values.insert(entry.key.clone(), value).is_some() {
                        let message = format!("key `{}` is there twice", shown(&entry.key));
                        let problem = Problem::error(Code::Duplicate, below, message);
                        self.report(problem.with_fix("remove one of them"), entry.place);
                    }
                }
                Json::Object(values)
            }
        }
    }
}

fn known_here(known: &[&str]) -> String {
    if known.is_empty() {
        return "no key is known here".to_owned();
    }
    format!("known here: {}", known.join(", "))
}

/// What an unquoted scalar says, by the YAML 1.2 core schema; numbers may have `_` between digits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plain {
    Nothing,
    Truth(bool),
    Integer(i128),
    Real(f64),
    Text,
}

impl Plain {
    fn read(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Nothing,
            "true" | "True" | "TRUE" => return Self::Truth(true),
            "false" | "False" | "FALSE" => return Self::Truth(false),
            ".nan" | ".NaN" | ".NAN" => return Self::Real(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" => return Self::Real(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Self::Real(f64::NEG_INFINITY),
            _ => {}
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Self::Text;
        }
        if unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'_') && !unsigned.ends_with('_') {
            return text.replace('_', "").parse().map_or(Self::Text, Self::Integer);
        }
        let real = unsigned
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
        if real { text.parse().map_or(Self::Text, Self::Real) } else { Self::Text }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Truth(_) => "a truth value",
            Self::Integer(_) => "a whole number",
            Self::Real(_) => "a number",
            Self::Text => "a text",
        }
    }

    fn into_json(self, text: &str) -> Json {
        match self {
            Self::Nothing => Json::Null,
            Self::Truth(truth) => Json::Bool(truth),
            Self::Integer(number) => i64::try_from(number)
                .map(Json::from)
                .or_else(|_| u64::try_from(number).map(Json::from))
                .unwrap_or_else(|_| Json::String(text.to_owned())),
            Self::Real(number) => {
                Number::from_f64(number).map_or_else(|| Json::String(text.to_owned()), Json::Number)
            }
            Self::Text => Json::String(text.to_owned()),
        }
    }
}

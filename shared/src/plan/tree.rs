//! YAML text as a tree of nodes that know their line and column.
//!
//! Bounded before anything is built: bytes, depth, nodes (aliases counted as often as they are
//! used). Scalars stay as written; what they mean is decided by the schema, not here.

use std::collections::{BTreeMap, BTreeSet};

use serde_saphyr::granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag, options,
};

use crate::problem::{Code, Problem};

/// Line and column, both from 1.
pub type Place = (u32, u32);

/// Deepest nesting a plan may have.
pub const DEPTH_MAX: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins.
    pub place: Place,
}

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Quoted, or a block of text: a text whatever it says.
    Quoted(String),
    /// Unquoted: a text, a number, a truth value or nothing.
    Plain(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order written; a key may be there twice.
    Map(Vec<Entry>),
}

/// One key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

/// Reads one document, or says where and why that failed.
pub fn parse(text: &str, nodes_max: usize) -> Result<Node, Problem> {
    let mut builder = Builder { nodes_left: nodes_max, ..Builder::default() };
    // The scanner looks ahead of the events, so the depth is bounded there as well.
    let options = options! { flow_nesting_limit: DEPTH_MAX, block_nesting_limit: DEPTH_MAX };
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| unreadable(&error))?;
        builder.take(event, place_of(&span))?;
    }
    builder
        .root
        .ok_or_else(|| syntax((1, 1), "the plan is empty").with_fix("see `examples/` for a plan"))
}

fn unreadable(error: &ScanError) -> Problem {
    let marker = error.marker();
    let place = (to_u32(marker.line()), to_u32(marker.col()).saturating_add(1));
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return too_deep(place);
    }
    syntax(place, format!("this is not YAML: {}", error.info()))
}

fn syntax(place: Place, message: impl Into<String>) -> Problem {
    Problem::error(Code::Syntax, "", message).at(Some(place))
}

fn place_of(span: &Span) -> Place {
    (to_u32(span.start.line()), to_u32(span.start.col()).saturating_add(1))
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A finished anchored node with what its use costs.
#[derive(Clone)]
struct Anchored {
    node: Node,
    nodes: usize,
    depth: usize,
}

struct Frame {
    place: Place,
    anchor: usize,
    nodes: usize,
    depth: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(String, Place)> },
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    nodes_left: usize,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(text.into_owned(), style, tag.as_deref(), place)?;
                self.place_node(
                    Anchored { node: Node { value, place }, nodes: 1, depth: 0 },
                    anchor,
                )
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(Inside::List(Vec::new()), anchor, tag.as_deref(), place)
            }
            Event::MappingStart(_, anchor, tag) => {
                let inside = Inside::Map { entries: Vec::new(), key: None };
                self.open(inside, anchor, tag.as_deref(), place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Alias(id) => {
                let mut anchored =
                    self.anchors.get(&id).cloned().ok_or_else(|| {
                        syntax(place, "this alias refers to the node it stands in")
                    })?;
                anchored.node.place = place;
                self.place_node(anchored, 0)
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(syntax(place, "a plan is one document").with_fix("split it at `---`"))
            }
            Event::UnresolvedAlias(_) => Err(syntax(place, "this alias refers to nothing")),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..)
            | Event::Comment(..)
            // The enum may grow; what is added to it so far is presentation, not data.
            | _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        inside: Inside,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Result<(), Problem> {
        if tag.is_some_and(|tag| !tag.is_yaml_core_schema()) {
            return Err(syntax(place, "tags have no meaning in a plan").with_fix("remove the tag"));
        }
        if self.stack.len() >= DEPTH_MAX {
            return Err(too_deep(place));
        }
        self.pay(1, place)?;
        self.stack.push(Frame { place, anchor, nodes: 1, depth: 0, inside });
        Ok(())
    }

    fn close(&mut self, place: Place) -> Result<(), Problem> {
        let Some(frame) = self.stack.pop() else {
            return Err(syntax(place, "this closes nothing"));
        };
        let value = match frame.inside {
            Inside::List(items) => Value::List(items),
            Inside::Map { entries, .. } => Value::Map(merged(entries)),
        };
        let node = Node { value, place: frame.place };
        let anchored = Anchored { node, nodes: frame.nodes, depth: frame.depth };
        self.attach(anchored, frame.anchor)
    }

    /// Takes a node that is new in the tree: a scalar, or the copy an alias stands for.
    fn place_node(&mut self, anchored: Anchored, anchor: usize) -> Result<(), Problem> {
        if anchored.depth + self.stack.len() > DEPTH_MAX {
            return Err(too_deep(anchored.node.place));
        }
        self.pay(anchored.nodes, anchored.node.place)?;
        self.attach(anchored, anchor)
    }

    fn pay(&mut self, nodes: usize, place: Place) -> Result<(), Problem> {
        self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or_else(|| {
            Problem::error(Code::Limit, "", "the plan has too many values")
                .with_fix("split it, or ask the operator for a larger plan limit")
                .at(Some(place))
        })?;
        Ok(())
    }

    fn attach(&mut self, anchored: Anchored, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, anchored.clone());
        }
        match self.stack.last_mut() {
            None => self.root = Some(anchored.node),
            Some(frame) => frame.add(anchored)?,
        }
        Ok(())
    }
}

impl Frame {
    fn add(&mut self, anchored: Anchored) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(anchored.nodes);
        self.depth = self.depth.max(anchored.depth + 1);
        let Node { value, place } = anchored.node;
        match &mut self.inside {
            Inside::List(items) => items.push(Node { value, place }),
            Inside::Map { entries, key } => match (key.take(), value) {
                (Some((key, at)), value) => {
                    entries.push(Entry { key, place: at, node: Node { value, place } });
                }
                (None, Value::Plain(text) | Value::Quoted(text)) => *key = Some((text, place)),
                (None, Value::List(_) | Value::Map(_)) => {
                    return Err(syntax(place, "a key must be a word"));
                }
            },
        }
        Ok(())
    }
}

fn too_deep(place: Place) -> Problem {
    let message = format!("the plan is nested more than {DEPTH_MAX} deep");
    Problem::error(Code::Limit, "", message).at(Some(place))
}

fn scalar(
    text: String,
    style: ScalarStyle,
    tag: Option<&Tag>,
    place: Place,
) -> Result<Value, Problem> {
    match tag {
        None if style == ScalarStyle::Plain => Ok(Value::Plain(text)),
        None => Ok(Value::Quoted(text)),
        Some(tag) if tag.is_yaml_core_schema_tag("str") => Ok(Value::Quoted(text)),
        Some(_) => Err(syntax(place, "tags have no meaning in a plan").with_fix("remove the tag")),
    }
}

/// Entries with `<<` replaced by what it names; a key of the map itself goes before a merged one.
///
/// A `<<` that names no map stays, so that it is reported as the unknown key it is.
fn merged(entries: Vec<Entry>) -> Vec<Entry> {
    if entries.iter().all(|entry| entry.key != "<<") {
        return entries;
    }
    let (merges, mut own): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.key == "<<");
    let mut known: BTreeSet<String> = own.iter().map(|entry| entry.key.clone()).collect();
    for Entry { key, place, node } in merges {
        let sources = match node.value {
            Value::List(items) => items,
            Value::Map(_) | Value::Plain(_) | Value::Quoted(_) => vec![node],
        };
        for source in sources {
            match source.value {
                Value::Map(taken) => {
                    own.extend(taken.into_iter().filter(|entry| known.insert(entry.key.clone())));
                }
                value @ (Value::List(_) | Value::Plain(_) | Value::Quoted(_)) => {
                    let node = Node { value, place: source.place };
                    own.push(Entry { key: key.clone(), place, node });
                }
            }
        }
    }
    own
}

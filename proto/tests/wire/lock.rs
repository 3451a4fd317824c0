//! `wire.lock`: the whole wire as text, so that a change of it is seen in review.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, ServiceDescriptorProto,
};

use crate::descriptors::files;

/// A line that goes away or changes its number breaks every peer that is older: reviewers look for
/// removed lines in the lock's diff.
#[test]
fn the_lock_says_what_the_descriptors_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire.lock");
    let now = rendered();
    if env::var_os("GANGER_UPDATE_WIRE_LOCK").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let locked = fs::read_to_string(&path).unwrap();
    let (locked, now): (BTreeSet<_>, BTreeSet<_>) =
        (locked.lines().collect(), now.lines().collect());
    let removed: Vec<_> = locked.difference(&now).collect();
    let added: Vec<_> = now.difference(&locked).collect();
    assert!(
        removed.is_empty() && added.is_empty(),
        "wire.lock is behind; GANGER_UPDATE_WIRE_LOCK=1 writes it anew\n\
         removed or changed (breaks released peers): {removed:#?}\nadded: {added:#?}"
    );
}

fn rendered() -> String {
    let mut lines = Vec::new();
    for file in files() {
        file.message_type.iter().for_each(|message| render_message(message, &mut lines));
        file.enum_type.iter().for_each(|words| render_enum(words, &mut lines));
        file.service.iter().for_each(|service| render_service(service, &mut lines));
    }
    lines.sort();
    lines.join("\n") + "\n"
}

fn render_message(message: &DescriptorProto, lines: &mut Vec<String>) {
    assert!(message.enum_type.is_empty(), "{} nests an enum", message.name());
    lines.push(format!("message ganger.v1.{}", message.name()));
    for field in &message.field {
        let label = label(message, field);
        lines.push(format!(
            "ganger.v1.{}.{} = {} {} {label}",
            message.name(),
            field.name(),
            field.number(),
            type_name(message, field),
        ));
    }
}

fn type_name(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    if let Some(entry) = map_entry(message, field) {
        let [key, value] = &entry.field[..] else { panic!("a map has a key and a value") };
        return format!("map<{}, {}>", type_name(entry, key), type_name(entry, value));
    }
    let kind = field.r#type();
    if matches!(kind, Type::Message | Type::Enum) {
        return field.type_name().trim_start_matches('.').to_owned();
    }
    kind.as_str_name().trim_start_matches("TYPE_").to_lowercase()
}

fn map_entry<'a>(
    message: &'a DescriptorProto,
    field: &FieldDescriptorProto,
) -> Option<&'a DescriptorProto> {
    message.nested_type.iter().find(|nested| {
        field.type_name().ends_with(&format!(".{}.{}", message.name(), nested.name()))
    })
}

fn label(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    if map_entry(message, field).is_some() {
        return "map".to_owned();
    }
    match (field.label(), field.oneof_index) {
        (Label::Repeated, _) => "repeated".to_owned(),
        (_, Some(_)) if field.proto3_optional() => "optional".to_owned(),
        (_, Some(at)) => {
            let oneof = &message.oneof_decl[usize::try_from(at).unwrap()];
            format!("oneof {}", oneof.name())
        }
        (_, None) => "singular".to_owned(),
    }
}

fn render_enum(words: &EnumDescriptorProto, lines: &mut Vec<String>) {
    for value in &words.value {
        lines.push(format!("ganger.v1.{}.{} = {}", words.name(), value.name(), value.number()));
    }
}

fn render_service(service: &ServiceDescriptorProto, lines: &mut Vec<String>) {
    let stream = |streams: bool| if streams { "stream " } else { "" };
    for rpc in &service.method {
        lines.push(format!(
            "rpc ganger.v1.{}/{} ({}{}) returns ({}{})",
            service.name(),
            rpc.name(),
            stream(rpc.client_streaming()),
            rpc.input_type().trim_start_matches('.'),
            stream(rpc.server_streaming()),
            rpc.output_type().trim_start_matches('.'),
        ));
    }
}

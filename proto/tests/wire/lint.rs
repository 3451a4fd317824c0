//! The style of the API, kept by machine: the rules of buf's STANDARD set that matter, and our own.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

use crate::descriptors::files;

/// Every service of the design, whole.
const SERVICES: &[(&str, &str)] = &[
    ("PlanService", "Check Submit Revise"),
    (
        "RunService",
        "Get List Watch Wait RunReady Evaluate Complete RecordDecision Pause Resume Stop RaiseBudget",
    ),
    ("UnitService", "GetResult Accept Reject Retry Skip Cancel Reopen Explain"),
    ("QuestionService", "List Answer"),
    ("MessageService", "Send"),
    ("FleetService", "List Cordon Drain Uncordon Assets"),
    ("ReviewService", "Submit"),
    ("DeliveryService", "Approve Apply"),
    ("ArtifactService", "Stat Upload Download"),
    ("SourceService", "Have Bundle"),
    ("JournalService", "Export Verify"),
    ("TokenService", "Issue List Revoke"),
    ("LinkService", "Attach"),
];

/// Calls that change nothing, or whose repeat is the same call because bytes are named by digest.
const READS: &[&str] = &[
    "PlanService/Check",
    "RunService/Get",
    "RunService/List",
    "RunService/Watch",
    "RunService/Wait",
    "RunService/Evaluate",
    "UnitService/GetResult",
    "UnitService/Explain",
    "QuestionService/List",
    "FleetService/List",
    "FleetService/Assets",
    "ArtifactService/Stat",
    "ArtifactService/Upload",
    "ArtifactService/Download",
    "SourceService/Have",
    "SourceService/Bundle",
    "JournalService/Export",
    "JournalService/Verify",
    "TokenService/List",
    "LinkService/Attach",
];

/// Calls that change something whose state no caller can have looked at before.
const STATELESS: &[&str] = &["PlanService/Submit", "TokenService/Issue", "TokenService/Revoke"];

#[test]
fn the_services_are_whole() {
    let mut found = BTreeMap::new();
    for service in files().into_iter().flat_map(|file| file.service) {
        let rpcs: Vec<_> = service.method.iter().map(|rpc| rpc.name().to_owned()).collect();
        found.insert(service.name().to_owned(), rpcs.join(" "));
    }
    let wanted: BTreeMap<_, _> =
        SERVICES.iter().map(|(name, rpcs)| ((*name).to_owned(), (*rpcs).to_owned())).collect();
    assert_eq!(found, wanted);
}

#[test]
fn every_rpc_has_messages_of_its_own_named_after_it() {
    let mut used = BTreeSet::new();
    for service in files().into_iter().flat_map(|file| file.service) {
        for rpc in &service.method {
            assert_ne!(rpc.name(), "Connect", "it collides with the generated client");
            let own = format!(".ganger.v1.{}{}", service.name(), rpc.name());
            if rpc.name() != "Attach" {
                assert_eq!(rpc.input_type(), format!("{own}Request"));
                assert_eq!(rpc.output_type(), format!("{own}Response"));
            }
            assert!(used.insert(rpc.input_type().to_owned()), "{own} shares its request");
            assert!(used.insert(rpc.output_type().to_owned()), "{own} shares its response");
        }
    }
}

#[test]
fn every_mutating_call_can_be_repeated_and_can_name_what_it_saw() {
    for (rpc, request, response) in calls() {
        let field = |name: &str| shape(&request, name);
        if READS.contains(&rpc.as_str()) {
            assert_eq!(field("idempotency_key"), None, "{rpc} reads");
            continue;
        }
        assert_eq!(field("idempotency_key"), Some((1, false)), "{rpc}");
        let expected = if STATELESS.contains(&rpc.as_str()) { None } else { Some((2, true)) };
        assert_eq!(field("expected_sequence"), expected, "{rpc}");
        for answer in ["sequence", "replayed"] {
            assert!(shape(&response, answer).is_some(), "{rpc} does not answer {answer}");
        }
    }
}

#[test]
fn no_request_says_who_its_actor_is() {
    for (rpc, request, _) in calls() {
        for name in ["actor", "by", "principal", "user", "author"] {
            assert_eq!(shape(&request, name), None, "{rpc}");
        }
    }
}

#[test]
fn every_list_has_pages_and_one_sequence() {
    for (rpc, request, response) in calls().into_iter().filter(|(rpc, ..)| rpc.ends_with("/List")) {
        for (number, name) in [(1, "page_size"), (2, "page_token"), (3, "filter"), (4, "order_by")]
        {
            assert_eq!(shape(&request, name), Some((number, false)), "{rpc} {name}");
        }
        for (number, name) in [(2, "next_page_token"), (3, "sequence")] {
            assert_eq!(shape(&response, name), Some((number, false)), "{rpc} {name}");
        }
    }
}

#[test]
fn zero_is_unspecified_and_values_carry_the_name_of_their_enum() {
    for words in files().into_iter().flat_map(|file| file.enum_type) {
        let prefix = upper_snake(words.name());
        assert_eq!(words.value[0].name(), format!("{prefix}_UNSPECIFIED"));
        assert_eq!(words.value[0].number(), 0);
        for value in &words.value {
            assert!(value.name().starts_with(&format!("{prefix}_")), "{}", value.name());
        }
    }
}

#[test]
fn fields_are_snake_case() {
    for message in files().into_iter().flat_map(|file| file.message_type) {
        for field in &message.field {
            assert!(
                field.name().bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')),
                "{}.{}",
                message.name(),
                field.name()
            );
        }
    }
}

#[test]
fn everything_has_a_comment() {
    for file in files() {
        let commented = commented(&file);
        let bare: Vec<_> =
            places(&file).into_iter().filter(|(path, _)| !commented.contains(path)).collect();
        assert!(bare.is_empty(), "{}: no comment on {bare:#?}", file.name());
    }
}

/// Every call as `Service/Rpc`, its request and its response.
fn calls() -> Vec<(String, DescriptorProto, DescriptorProto)> {
    let messages: BTreeMap<_, _> = files()
        .into_iter()
        .flat_map(|file| file.message_type)
        .map(|message| (format!(".ganger.v1.{}", message.name()), message))
        .collect();
    let mut calls = Vec::new();
    for service in files().into_iter().flat_map(|file| file.service) {
        for rpc in &service.method {
            calls.push((
                format!("{}/{}", service.name(), rpc.name()),
                messages[rpc.input_type()].clone(),
                messages[rpc.output_type()].clone(),
            ));
        }
    }
    calls
}

/// The number of a field, and whether its absence can be told.
fn shape(message: &DescriptorProto, name: &str) -> Option<(i32, bool)> {
    let is = |field: &&FieldDescriptorProto| field.name() == name;
    message.field.iter().find(is).map(|field| (field.number(), field.proto3_optional()))
}

fn upper_snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

fn commented(file: &FileDescriptorProto) -> BTreeSet<Vec<i32>> {
    let places = file.source_code_info.iter().flat_map(|info| &info.location);
    places
        .filter(|place| !place.leading_comments().trim().is_empty())
        .map(|place| place.path.clone())
        .collect()
}

/// The path of everything that wants a comment, as descriptors number it, and its name.
fn places(file: &FileDescriptorProto) -> Vec<(Vec<i32>, String)> {
    let mut places = Vec::new();
    let mut group = |kind: i32, at: usize, name: &str, parts: Vec<(i32, Vec<String>)>| {
        let at = i32::try_from(at).unwrap();
        places.push((vec![kind, at], name.to_owned()));
        for (part_kind, names) in parts {
            for (part, part_name) in (0..).zip(names) {
                places.push((vec![kind, at, part_kind, part], format!("{name}.{part_name}")));
            }
        }
    };
    for (at, message) in file.message_type.iter().enumerate() {
        let fields = message.field.iter().map(|field| field.name().to_owned()).collect();
        group(4, at, message.name(), vec![(2, fields)]);
    }
    for (at, words) in file.enum_type.iter().enumerate() {
        let values = words.value.iter().map(|value| value.name().to_owned()).collect();
        group(5, at, words.name(), vec![(2, values)]);
    }
    for (at, service) in file.service.iter().enumerate() {
        let rpcs = service.method.iter().map(|rpc| rpc.name().to_owned()).collect();
        group(6, at, service.name(), vec![(2, rpcs)]);
    }
    places
}

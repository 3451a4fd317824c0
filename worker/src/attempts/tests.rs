//! A defect in one attempt, and everybody else.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::sync::Arc;
use std::time::Duration;

use ganger_shared::ids::{Epoch, RunId, WorkerId};
use ganger_shared::link::Report;
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{Body, Source};
use ractor::call_t;

use super::*;
use crate::bulk::Bulk;
use crate::config::Config;
use crate::isolation::{Hold, Host};
use crate::link::dial::{Authority, endpoint};

fn site(config: Config, attached: watch::Receiver<bool>) -> Site {
    let channel = endpoint(&config.server).unwrap().connect_lazy();
    let bulk = Bulk::new(channel, Authority::new(&config.token_file), attached);
    let host =
        Host { hold: Hold::Descendants, isolated: false, overlay: false, refused: BTreeMap::new() };
    let worker = WorkerId::parse("w").unwrap();
    Site { config: Arc::new(config), worker, host: Arc::new(host), bulk }
}

/// An attempt that waits for its source for as long as there is no coordinator.
fn waits_for_its_source(unit: &str) -> Assignment {
    Assignment {
        run: RunId::from_uuid_bytes(&[1; 16]),
        work: format!("{unit}/main/1").parse().unwrap(),
        epoch: Epoch(1),
        traceparent: String::new(),
        source: Some(Source {
            repository: "repo".parse().unwrap(),
            commit: "a".repeat(40).parse().unwrap(),
        }),
        timeout_ms: DurationMs::from_mins(5),
        silence_ms: None,
        grace_ms: DurationMs(100),
        on_disconnect: OnDisconnect::Continue,
        env: vec![],
        body: Body::Command { run: "true".to_owned(), files: vec![] },
    }
}

async fn ending(outbox: &Outbox, lease: &Lease) -> Report {
    let mut owed = outbox.owed();
    let wanted = owed.wait_for(|owed| owed.finished.contains(lease));
    let owed = tokio::time::timeout(Duration::from_secs(30), wanted).await.unwrap().unwrap();
    let mut of_it = owed.unanswered.iter().filter(|waiting| waiting.report.lease == *lease);
    of_it.next_back().unwrap().report.clone()
}

/// A panic in one attempt fails that lease and frees its slot; nobody else notices.
#[tokio::test]
async fn an_attempt_that_panics_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let attached = watch::Sender::new(false);
    let mut config =
        Config::new("http://127.0.0.1:1", dir.path().join("token"), dir.path().to_owned());
    config.slots = 2;
    let outbox = Outbox::open(&dir.path().join("outbox"), 100).unwrap();
    let arguments = Arguments {
        site: site(config, attached.subscribe()),
        outbox: outbox.clone(),
        timer: Timer::start(),
        board: watch::Sender::default(),
    };
    let (attempts, _) = Attempts::spawn(None, Attempts, arguments).await.unwrap();
    let [first, second, third] = ["a", "b", "c"].map(waits_for_its_source);
    for assignment in [&first, &second, &third] {
        outbox.accept(assignment.clone()).await.unwrap();
        attempts.cast(AttemptsMessage::Begin(Box::new(assignment.clone()))).unwrap();
    }
    attempts.cast(AttemptsMessage::Defect(lease_of(&first))).unwrap();
    let Fact::Failed(ended) = ending(&outbox, &lease_of(&first)).await.fact else {
        panic!("it failed")
    };
    assert_eq!(ended.end.failure.class, FailureClass::Unknown);
    assert!(ended.end.failure.message.contains("a defect"), "{ended:?}");
    assert_eq!(outbox.owed().borrow().live, [lease_of(&second), lease_of(&third)]);
    // The third has the first one's slot: both that are left are asked to leave and say so.
    call_t!(attempts, AttemptsMessage::Leave, 30_000).unwrap();
    for assignment in [&second, &third] {
        let Fact::Failed(ended) = ending(&outbox, &lease_of(assignment)).await.fact else {
            panic!("it was ended")
        };
        assert_eq!(ended.end.failure.message, "the worker's process was ended");
    }
}

//! Tokens: who gets the first two, what is kept of them, and what ends them.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;
use crate::journal::{MemoryJournal, StreamName};

async fn open(journal: &MemoryJournal, dir: &TempDir) -> Tokens {
    let store = EventStore::Memory(journal.clone());
    Tokens::open(store, Clock::start(), dir.path()).await.unwrap()
}

fn read(dir: &TempDir, file: &str) -> String {
    std::fs::read_to_string(dir.path().join(file)).unwrap().trim_end().to_owned()
}

#[tokio::test]
async fn a_new_coordinator_writes_two_tokens_for_its_owner_only() {
    let (journal, dir) = (MemoryJournal::default(), TempDir::new().unwrap());
    // What lies there is not written into: others may read it.
    std::fs::write(dir.path().join(OPERATOR_FILE), "old").unwrap();
    let tokens = open(&journal, &dir).await;
    for (file, role) in [(OPERATOR_FILE, Role::Operate), (WORKER_FILE, Role::Worker)] {
        let mode = std::fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
        assert_eq!(tokens.grant(&read(&dir, file)).unwrap().role, role);
    }
    // The next start issues nothing.
    let before = (read(&dir, OPERATOR_FILE), read(&dir, WORKER_FILE));
    let tokens = open(&journal, &dir).await;
    assert_eq!((read(&dir, OPERATOR_FILE), read(&dir, WORKER_FILE)), before);
    assert!(tokens.grant(&before.0).is_some());
}

#[tokio::test]
async fn only_the_hash_is_journalled() {
    let (journal, dir) = (MemoryJournal::default(), TempDir::new().unwrap());
    let tokens = open(&journal, &dir).await;
    let by = Actor::Principal("anna".to_owned());
    let token = tokens.issue(&by, "bob".to_owned(), Role::Read, None).await.unwrap();
    let written = journal.read(&StreamName::system(), 1, usize::MAX);
    let hash = Digest::of(token.as_bytes()).to_string();
    assert!(written.iter().any(|event| event.body.contains(&hash)));
    for secret in [token, read(&dir, OPERATOR_FILE), read(&dir, WORKER_FILE)] {
        assert!(written.iter().all(|event| !event.body.contains(&secret)));
    }
}

/// Also when it was one of the first two: an end is an end.
#[tokio::test]
async fn a_revoked_token_stays_revoked() {
    let (journal, dir) = (MemoryJournal::default(), TempDir::new().unwrap());
    let tokens = open(&journal, &dir).await;
    let by = Actor::Principal("anna".to_owned());
    let first = [read(&dir, OPERATOR_FILE), read(&dir, WORKER_FILE)];
    for token in &first {
        assert!(tokens.revoke(&by, Digest::of(token.as_bytes())).await.unwrap());
        assert!(!tokens.revoke(&by, Digest::of(token.as_bytes())).await.unwrap());
        assert_eq!(tokens.grant(token), None);
    }
    let tokens = open(&journal, &dir).await;
    assert!(tokens.table().is_empty());
    assert_eq!([read(&dir, OPERATOR_FILE), read(&dir, WORKER_FILE)], first, "and no new ones");
}

/// A start that was cut off between the two issues the one that is missing.
#[tokio::test]
async fn a_start_cut_short_is_made_up_for() {
    let (journal, dir) = (MemoryJournal::default(), TempDir::new().unwrap());
    journal.fail_after(Some(1));
    let store = EventStore::Memory(journal.clone());
    assert!(Tokens::open(store, Clock::start(), dir.path()).await.is_err());
    journal.fail_after(None);
    let operator = read(&dir, OPERATOR_FILE);
    let tokens = open(&journal, &dir).await;
    assert_eq!(read(&dir, OPERATOR_FILE), operator);
    assert_eq!(tokens.grant(&operator).unwrap().role, Role::Operate);
    assert_eq!(tokens.grant(&read(&dir, WORKER_FILE)).unwrap().role, Role::Worker);
}

#[tokio::test]
async fn a_token_ends_when_it_was_said_to() {
    let (journal, dir) = (MemoryJournal::default(), TempDir::new().unwrap());
    let tokens = open(&journal, &dir).await;
    let (by, now) = (Actor::Coordinator, Clock::start().utc());
    let (past, future) = (Some(now), Some(now.plus(ganger_shared::time::DurationMs(3_600_000))));
    let ended = tokens.issue(&by, "a".to_owned(), Role::Read, past).await.unwrap();
    let good = tokens.issue(&by, "b".to_owned(), Role::Read, future).await.unwrap();
    assert_eq!(tokens.grant(&ended), None);
    assert_eq!(tokens.grant(&good).unwrap().name, "b");
    assert_eq!(tokens.grant("gt-made-up"), None);
}

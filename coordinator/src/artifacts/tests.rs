//! The store's promises: whole or absent, resumable, bounded.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn store() -> (TempDir, Artifacts) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { floor_bytes: 0, ..Options::default() };
    let store = Artifacts::open(&dir.path().join("artifacts"), options).unwrap();
    (dir, store)
}

fn wanted(store: &Artifacts, artifact: &ArtifactRef) -> Upload {
    match store.begin(artifact).unwrap() {
        Begun::Wanted(upload) => upload,
        Begun::Held => panic!("it is held already"),
    }
}

fn content(store: &Artifacts, sha256: &Digest) -> Vec<u8> {
    let reader = store.read(sha256).unwrap();
    let mut all = Vec::new();
    while (all.len() as u64) < reader.bytes() {
        all.extend(reader.chunk(all.len() as u64, 7).unwrap());
    }
    assert!(reader.chunk(reader.bytes(), 7).unwrap().is_empty());
    all
}

fn partials(store: &Artifacts) -> usize {
    fs::read_dir(store.dir.join(PARTIAL)).unwrap().count()
}

#[test]
fn bytes_put_are_read_back_in_chunks_and_held_once() {
    let (_dir, store) = store();
    let bytes = b"a diff too large for an event".to_vec();
    let artifact = store.put_bytes(&bytes).unwrap();
    assert_eq!(artifact, ArtifactRef::of(&bytes));
    assert_eq!(store.put_bytes(&bytes).unwrap(), artifact);
    assert_eq!(content(&store, &artifact.sha256), bytes);
    assert!(matches!(store.begin(&artifact).unwrap(), Begun::Held));
    assert!(store.is_intact(&artifact.sha256).unwrap());
    assert_eq!(partials(&store), 0);
    let empty = store.put_bytes(b"").unwrap();
    assert_eq!(content(&store, &empty.sha256), b"");
}

#[test]
fn an_upload_goes_on_where_it_was_interrupted() {
    let (dir, store) = store();
    let bytes = b"0123456789".to_vec();
    let artifact = ArtifactRef::of(&bytes);
    let mut upload = wanted(&store, &artifact);
    upload.write_chunk(0, b"0123").unwrap();
    drop((upload, store));
    let store = Artifacts::open(&dir.path().join("artifacts"), Options::default()).unwrap();
    let mut upload = wanted(&store, &artifact);
    assert_eq!(upload.received(), 4);
    assert!(!store.has(&artifact.sha256));
    // The sender did not hear of the last chunk and sends it again, with more.
    upload.write_chunk(2, b"23456").unwrap();
    upload.write_chunk(0, b"01").unwrap();
    let gap = upload.write_chunk(8, b"89");
    assert!(matches!(gap, Err(WriteError::Gap { offset: 8, received: 7, .. })), "{gap:?}");
    upload.write_chunk(7, b"789").unwrap();
    assert_eq!(upload.finish().unwrap(), artifact);
    assert_eq!(content(&store, &artifact.sha256), bytes);
    assert_eq!(partials(&store), 0);
}

#[test]
fn what_is_not_what_was_announced_never_becomes_an_artifact() {
    let (_dir, store) = store();
    let artifact = ArtifactRef::of(b"good");
    let mut upload = wanted(&store, &artifact);
    let long = upload.write_chunk(0, b"goods");
    assert!(matches!(long, Err(WriteError::TooLong { end: 5, bytes: 4, .. })), "{long:?}");
    upload.write_chunk(0, b"ba").unwrap();
    let early = upload.finish();
    assert!(matches!(early, Err(FinishError::Incomplete { received: 2, bytes: 4, .. })));
    let mut upload = wanted(&store, &artifact);
    upload.write_chunk(2, b"d!").unwrap();
    let wrong = upload.finish();
    let found = Digest::of(b"bad!");
    assert!(
        matches!(wrong, Err(FinishError::WrongDigest { found: actual, .. }) if actual == found)
    );
    assert!(!store.has(&artifact.sha256));
    assert_eq!(wanted(&store, &artifact).received(), 0, "the wrong bytes are thrown away");
}

#[test]
fn one_upload_of_an_artifact_at_a_time() {
    let (_dir, store) = store();
    let artifact = ArtifactRef::of(b"once");
    let upload = wanted(&store, &artifact);
    assert!(matches!(store.begin(&artifact), Err(BeginError::Busy { .. })));
    drop(upload);
    wanted(&store, &artifact);
}

#[test]
fn bounds_have_names() {
    let (dir, _) = store();
    let open = |artifact_bytes_max, floor_bytes| {
        let options = Options { artifact_bytes_max, floor_bytes };
        Artifacts::open(&dir.path().join("artifacts"), options).unwrap()
    };
    let large = ArtifactRef::of(b"large");
    let refused = open(4, 0).begin(&large);
    assert!(matches!(refused, Err(BeginError::TooLarge { bytes: 5, max: 4, .. })), "{refused:?}");
    let refused = open(4, 0).put_bytes(b"large");
    assert!(matches!(refused, Err(PutError::Refused(BeginError::TooLarge { .. }))), "{refused:?}");
    let refused = open(5, 1 << 60).begin(&large);
    assert!(matches!(refused, Err(BeginError::DiskFull { .. })), "{refused:?}");
}

#[test]
fn a_purged_artifact_is_gone_and_a_changed_one_is_found() {
    let (_dir, store) = store();
    let artifact = store.put_bytes(b"evidence").unwrap();
    fs::write(store.path(&artifact.sha256), b"evidence?").unwrap();
    assert!(!store.is_intact(&artifact.sha256).unwrap());
    assert!(store.purge(&artifact.sha256).unwrap());
    assert!(!store.purge(&artifact.sha256).unwrap());
    assert!(matches!(store.read(&artifact.sha256), Err(ReadError::Absent { .. })));
}

#[test]
fn what_a_crash_left_of_put_bytes_is_removed_and_uploads_are_kept() {
    let (dir, store) = store();
    wanted(&store, &ArtifactRef::of(b"kept")).write_chunk(0, b"ke").unwrap();
    fs::write(store.dir.join(PARTIAL).join("put-1"), b"half").unwrap();
    let store = Artifacts::open(&dir.path().join("artifacts"), Options::default()).unwrap();
    assert_eq!(partials(&store), 1);
    assert_eq!(wanted(&store, &ArtifactRef::of(b"kept")).received(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// However an upload is cut into chunks, repeated and interrupted, the artifact is the bytes.
    #[test]
    fn any_order_of_tries_ends_in_the_bytes(
        bytes in proptest::collection::vec(any::<u8>(), 1..500),
        tries in proptest::collection::vec((0usize..500, 1usize..200, any::<bool>()), 0..20),
    ) {
        let (_dir, store) = store();
        let artifact = ArtifactRef::of(&bytes);
        let mut upload = wanted(&store, &artifact);
        for (offset, len, interrupted) in tries {
            let offset = offset.min(bytes.len());
            let chunk = &bytes[offset..(offset + len).min(bytes.len())];
            let fits = offset as u64 <= upload.received();
            prop_assert_eq!(upload.write_chunk(offset as u64, chunk).is_ok(), fits);
            if interrupted {
                let received = upload.received();
                drop(upload);
                upload = wanted(&store, &artifact);
                prop_assert_eq!(upload.received(), received);
            }
        }
        let received = upload.received();
        upload.write_chunk(received, &bytes[usize::try_from(received).unwrap()..]).unwrap();
        prop_assert_eq!(&upload.finish().unwrap(), &artifact);
        prop_assert_eq!(content(&store, &artifact.sha256), bytes);
    }
}

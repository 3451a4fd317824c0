//! Large bodies over the wire: resumed, held once, bounded, and whole or not there.

use ganger_proto::v1;
use ganger_shared::digest::ArtifactRef;
use ganger_shared::limits::{CHUNK_BYTES, Limits};
use tonic::Code;

use crate::ground::{Ground, chunks, refused, upload, word};

/// Bytes that repeat nowhere near.
fn bytes(len: usize) -> Vec<u8> {
    (0_u64..).flat_map(u64::to_le_bytes).take(len).collect()
}

#[tokio::test]
async fn an_upload_that_stopped_goes_on_where_it_stopped() {
    let ground = Ground::start().await;
    let store = ground.worker().await.artifacts();
    let body = bytes(5 * CHUNK_BYTES + 17);
    let sha256 = ArtifactRef::of(&body).sha256.to_string();
    let short = tokio_stream::iter(chunks(&body, 0, 2 * CHUNK_BYTES));
    let part = store.clone().upload(short).await.unwrap().into_inner();
    assert!(!part.complete);
    let stat = v1::ArtifactServiceStatRequest { sha256: sha256.clone() };
    let here = store.clone().stat(stat.clone()).await.unwrap().into_inner();
    assert_eq!((here.complete, here.received), (false, part.received));
    let from = usize::try_from(here.received).unwrap();
    let rest = tokio_stream::iter(chunks(&body, from, 0));
    let whole = store.clone().upload(rest).await.unwrap().into_inner();
    assert_eq!((whole.complete, whole.received), (true, body.len() as u64));
    let here = store.clone().stat(stat).await.unwrap().into_inner();
    assert_eq!((here.complete, here.received), (true, body.len() as u64));

    let from = body.len() - 100;
    let ask = v1::ArtifactServiceDownloadRequest { sha256, offset: from as u64, length: 0 };
    let mut answer = store.clone().download(ask).await.unwrap().into_inner();
    let chunk = answer.message().await.unwrap().unwrap();
    assert_eq!((chunk.offset, chunk.bytes), (from as u64, body.len() as u64));
    assert_eq!(chunk.data, body[from..]);
    assert_eq!(answer.message().await.unwrap(), None);
}

#[tokio::test]
async fn what_is_held_is_not_sent_again() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let body = bytes(3 * CHUNK_BYTES);
    upload(&clients, &body).await;
    // Only the first chunk: the answer does not wait for the others.
    let first = tokio_stream::iter(chunks(&body, 0, 2 * CHUNK_BYTES));
    let again = clients.artifacts().upload(first).await.unwrap().into_inner();
    assert_eq!((again.complete, again.received), (true, body.len() as u64));
}

#[tokio::test]
async fn an_artifact_above_the_limit_is_refused_by_the_limits_name() {
    let limits = Limits { artifact_bytes: 1_000, ..Limits::default() };
    let ground = Ground::with(|config| config.limits = limits).await;
    let body = bytes(1_001);
    let stream = tokio_stream::iter(chunks(&body, 0, 0));
    let said = refused(ground.worker().await.artifacts().upload(stream).await);
    assert_eq!((said.grpc, said.code.as_str()), (Code::InvalidArgument, "artifact_bytes"));
    assert!(said.message.contains("1001 bytes, at most 1000"), "{}", said.message);
}

#[tokio::test]
async fn bytes_that_are_not_what_was_named_never_become_an_artifact() {
    let ground = Ground::start().await;
    let store = ground.worker().await.artifacts();
    let (body, other) = (bytes(100), vec![7; 100]);
    let mut wrong = chunks(&body, 0, 0);
    wrong[0].data = other.into();
    assert_eq!(word(store.clone().upload(tokio_stream::iter(wrong)).await), "wrong_digest");
    let mut hole = chunks(&body, 50, 0);
    hole[0].offset = 50;
    assert_eq!(word(store.clone().upload(tokio_stream::iter(hole)).await), "gap");
    let sha256 = ArtifactRef::of(&body).sha256.to_string();
    let ask = v1::ArtifactServiceDownloadRequest { sha256, ..Default::default() };
    let absent = refused(store.clone().download(ask).await);
    assert_eq!((absent.grpc, absent.code.as_str()), (Code::NotFound, "unknown_artifact"));
}

#[tokio::test]
async fn a_chunk_above_64_kib_is_refused() {
    let ground = Ground::start().await;
    let body = bytes(CHUNK_BYTES + 1);
    let artifact: v1::ArtifactRef = ArtifactRef::of(&body).into();
    let data = body.into();
    let one = v1::ArtifactServiceUploadRequest { artifact: Some(artifact), offset: 0, data };
    let said = refused(ground.worker().await.artifacts().upload(tokio_stream::iter([one])).await);
    assert_eq!(said.metadata["field"], "data");
}

#[tokio::test]
async fn an_empty_artifact_is_one_like_any_other() {
    let ground = Ground::start().await;
    let clients = ground.operator().await;
    let artifact: v1::ArtifactRef = ArtifactRef::of(b"").into();
    let sha256 = artifact.sha256.clone();
    let one = v1::ArtifactServiceUploadRequest { artifact: Some(artifact), ..Default::default() };
    let done = clients.artifacts().upload(tokio_stream::iter([one])).await.unwrap().into_inner();
    assert!(done.complete);
    let ask = v1::ArtifactServiceDownloadRequest { sha256, ..Default::default() };
    let mut answer = clients.artifacts().download(ask).await.unwrap().into_inner();
    assert_eq!(answer.message().await.unwrap().unwrap().bytes, 0);
    assert_eq!(answer.message().await.unwrap(), None);
}

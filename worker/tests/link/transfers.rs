//! Large things: resumed, not repeated, verified.

use std::sync::atomic::Ordering;

use ganger_shared::limits::CHUNK_BYTES;
use ganger_worker::bulk::{Bulk, BulkError};
use ganger_worker::link::dial::{Authority, endpoint};
use tokio::sync::watch;

use crate::ground::{Ground, block_on};

const CHUNKS: u64 = 20;
const CHUNK: u64 = CHUNK_BYTES as u64;

fn bulk(ground: &Ground) -> (Bulk, watch::Sender<bool>) {
    let config = ground.config();
    let attached = watch::Sender::new(true);
    let channel = endpoint(&config.server).unwrap().connect_lazy();
    (Bulk::new(channel, Authority::new(config.token_file), attached.subscribe()), attached)
}

fn body() -> Vec<u8> {
    (0..CHUNKS * CHUNK - 7).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

#[cfg_attr(any(), test)]
pub fn an_interrupted_upload_goes_on_where_it_ended() {
    block_on(async {
        let ground = Ground::new().await;
        let (bulk, _attached) = bulk(&ground);
        let file = ground.dir.path().join("file");
        std::fs::write(&file, body()).unwrap();
        let store = &ground.coordinator.artifacts;
        store.breaks_after.store(7 * CHUNK, Ordering::SeqCst);
        let artifact = bulk.upload(&file).await.unwrap();
        assert_eq!(store.bytes(&artifact), body());
        assert_eq!(store.moved.load(Ordering::SeqCst), artifact.bytes);
    });
}

#[cfg_attr(any(), test)]
pub fn what_is_there_is_not_sent_again() {
    block_on(async {
        let ground = Ground::new().await;
        let (bulk, _attached) = bulk(&ground);
        let file = ground.dir.path().join("file");
        std::fs::write(&file, body()).unwrap();
        let kept = ground.coordinator.artifacts.keep(&body());
        assert_eq!(bulk.upload(&file).await.unwrap(), kept);
        assert_eq!(ground.coordinator.artifacts.moved.load(Ordering::SeqCst), 0);
        std::fs::write(&file, b"").unwrap();
        let empty = bulk.upload(&file).await.unwrap();
        assert_eq!(ground.coordinator.artifacts.bytes(&empty), b"");
    });
}

#[cfg_attr(any(), test)]
pub fn a_download_goes_on_and_is_verified() {
    block_on(async {
        let ground = Ground::new().await;
        let (bulk, _attached) = bulk(&ground);
        let store = &ground.coordinator.artifacts;
        let artifact = store.keep(&body());
        let to = ground.dir.path().join("got");
        store.breaks_after.store(5 * CHUNK, Ordering::SeqCst);
        bulk.download(&artifact, &to).await.unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), body());
        // The chunk at which it broke off was counted and not sent.
        assert_eq!(store.moved.load(Ordering::SeqCst), artifact.bytes + CHUNK);
        store.damage(&artifact);
        let other = ground.dir.path().join("other");
        let refused = bulk.download(&artifact, &other).await;
        assert!(matches!(refused, Err(BulkError::Damaged { .. })), "{refused:?}");
        assert!(!other.exists());
    });
}

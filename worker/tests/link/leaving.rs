//! Goodbyes: a worker that leaves, and a coordinator that does.

use ganger_shared::failure::FailureClass;
use ganger_shared::link::{CoordinatorSays, Fact, WorkerSays};

use crate::ground::{Ground, block_on, command};

#[cfg_attr(any(), test)]
pub fn a_leaving_worker_reports_its_attempts_and_says_goodbye() {
    block_on(async {
        let mut ground = Ground::new().await;
        let mut worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let slow = "trap '' INT; while :; do sleep 1; done";
        connection.assign(&command("a", 1, slow)).await;
        while !matches!(connection.recorded().await.fact, Fact::Started(_)) {}
        worker.leave();
        let Fact::Failed(ended) = connection.ending().await.fact else {
            panic!("leaving ends attempts")
        };
        assert_eq!(ended.end.failure.class, FailureClass::WorkerRestarted);
        let last = connection.hear_word().await;
        assert!(matches!(last, Some(WorkerSays::Goodbye { .. })), "{last:?}");
        let draining = connection.beats.last().is_some_and(|beat| beat.draining);
        assert!(draining, "a leaving worker wants no work");
        drop(connection);
        worker.ended().await.unwrap();
    });
}

#[cfg_attr(any(), test)]
pub fn a_leaving_coordinator_is_dialled_again() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let reason = "restarting".to_owned();
        connection.say(CoordinatorSays::Goodbye { reason }).await;
        let (mut again, _) = ground.coordinator.attached().await;
        again.beat().await;
    });
}

//! Work from its assignment to its end, with real programs.

use std::time::{Duration, Instant};

use ganger_shared::link::{CoordinatorSays, Fact, StopReason};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::time::DurationMs;

use crate::coordinator::within;
use crate::ground::{Ground, Worker, block_on, command, lease};

/// R194: the whole way of a command, its output included, without a shared disk.
#[cfg_attr(any(), test)]
pub fn a_command_is_run_and_delivered() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        connection.assign(&command("a", 1, "echo the output")).await;
        assert_eq!(connection.recorded().await.fact, Fact::Accepted);
        assert!(
            matches!(connection.recorded().await.fact, Fact::Started(started) if started.pid > 0)
        );
        let Fact::Delivered(ended) = connection.recorded().await.fact else {
            panic!("it was to deliver")
        };
        let output = ground.coordinator.artifacts.bytes(&ended.output.unwrap());
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("the output"), "{text}");
        let mut beat = connection.beat().await;
        while !beat.live.is_empty() || beat.busy > 0 {
            beat = connection.beat().await;
        }
    });
}

/// P023: beats come from a task of their own, whatever an attempt does to the machine.
#[cfg_attr(any(), test)]
pub fn beats_flow_while_an_attempt_burns_the_processor() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let burn = "for n in 1 2 3 4; do (while :; do echo line; done) & done; wait";
        let assignment = command("a", 1, burn);
        connection.assign(&assignment).await;
        while !matches!(connection.recorded().await.fact, Fact::Started(_)) {}
        let (mut last, mut worst) = (Instant::now(), Duration::ZERO);
        for _ in 0..60 {
            let beat = connection.beat().await;
            assert_eq!((beat.live.len(), beat.busy), (1, 1));
            worst = worst.max(last.elapsed());
            last = Instant::now();
        }
        assert!(worst < Duration::from_secs(1), "a beat came {worst:?} after the one before");
        let seen = connection.beat().await.live.remove(0);
        assert_eq!((seen.phase.as_str(), seen.last_line.as_str()), ("running", "line"));
        assert!(seen.lines > 0);
        let (lease, reason) = (lease(&assignment), StopReason::Cancelled);
        connection.say(CoordinatorSays::Stop { lease, reason, now: true }).await;
        assert!(
            matches!(connection.ending().await.fact, Fact::Stopped(ended) if ended.end.confirmed)
        );
    });
}

/// P021: interrupt and TERM are ignored, KILL takes the whole tree, and the report says so.
#[cfg_attr(any(), test)]
pub fn who_ignores_every_rung_is_killed() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let deaf = "trap '' INT TERM; setsid sh -c \"trap '' INT TERM; while :; do sleep 1; done\" & \
                    while :; do sleep 1; done";
        let assignment = command("a", 1, deaf);
        connection.assign(&assignment).await;
        while !matches!(connection.recorded().await.fact, Fact::Started(_)) {}
        let begun = Instant::now();
        let (lease, reason) = (lease(&assignment), StopReason::Cancelled);
        connection.say(CoordinatorSays::Stop { lease, reason, now: false }).await;
        let Fact::Stopped(ended) = connection.ending().await.fact else { panic!("it was stopped") };
        assert!(ended.end.confirmed);
        assert!(begun.elapsed() >= Duration::from_millis(600), "both graces were given");
        let phases: Vec<String> = connection
            .beats
            .iter()
            .flat_map(|beat| beat.live.iter().map(|progress| progress.phase.clone()))
            .collect();
        assert!(phases.contains(&"stopping".to_owned()), "{phases:?}");
    });
}

#[cfg_attr(any(), test)]
pub fn a_worker_cut_off_for_a_lease_stops_what_must_stop() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let mut assignment = command("a", 1, "exec sleep 1000");
        assignment.on_disconnect = OnDisconnect::Stop;
        connection.assign(&assignment).await;
        while !matches!(connection.recorded().await.fact, Fact::Started(_)) {}
        drop(connection);
        // Connections are taken but never greeted until the lease is over.
        let (mut connection, hello) = loop {
            let mut connection = ground.coordinator.connection().await;
            let hello = connection.hello().await;
            if hello.finished == [lease(&assignment)] {
                connection.say(CoordinatorSays::Welcome(crate::coordinator::welcome())).await;
                break (connection, hello);
            }
        };
        assert_eq!(hello.live, vec![]);
        assert!(matches!(connection.ending().await.fact, Fact::Stopped(_)));
    });
}

/// P006, P118: the end of a stream is not the end of the work; the coordinator's restart neither.
#[cfg_attr(any(), test)]
pub fn a_worker_cut_off_goes_on_and_hands_in_later() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let assignment = command("a", 1, "echo begun; sleep 2; echo done");
        connection.assign(&assignment).await;
        while !matches!(connection.recorded().await.fact, Fact::Started(_)) {}
        drop(connection);
        ground = ground.coordinator_again().await;
        let (mut connection, hello) = ground.coordinator.attached().await;
        assert_eq!((hello.live, hello.finished), (vec![lease(&assignment)], vec![]));
        connection.say(CoordinatorSays::Keep(lease(&assignment))).await;
        let end = connection.ending().await;
        assert!(matches!(end.fact, Fact::Delivered(_)), "{end:?}");
        assert_eq!(end.number, 3);
    });
}

#[cfg_attr(any(), test)]
pub fn more_than_the_slots_waits() {
    block_on(async {
        let mut ground = Ground::new().await;
        let mut config = ground.config();
        config.slots = 1;
        config.bounds.prepare_ms = DurationMs::from_secs(60);
        let _worker = Worker::start(config);
        let (mut connection, _) = ground.coordinator.attached().await;
        let (first, second) = (command("a", 1, "exec sleep 1000"), command("b", 1, "exit 0"));
        connection.assign(&first).await;
        connection.assign(&second).await;
        for _ in 0..3 {
            connection.recorded().await;
        }
        let waits = |phase: &str| phase == "accepted";
        let beat = connection.beat().await;
        assert_eq!(beat.busy, 2);
        assert!(
            beat.live
                .iter()
                .any(|progress| progress.lease == lease(&second) && waits(&progress.phase))
        );
        let (of, reason) = (lease(&first), StopReason::Cancelled);
        connection.say(CoordinatorSays::Stop { lease: of, reason, now: true }).await;
        assert_eq!(connection.ending().await.lease, lease(&first));
        assert_eq!(within(connection.ending()).await.lease, lease(&second));
    });
}

/// P001, P041: a connection that breaks while an assignment is on its way to the disk leaves no lease
/// that nobody works on: it was never here, or it begins.
#[cfg_attr(any(), test)]
pub fn an_assignment_whose_connection_breaks_begins_or_was_never_here() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        for epoch in 1..=12 {
            let (mut connection, _) = ground.coordinator.attached().await;
            let assignment = command("a", epoch, "true");
            connection.assign(&assignment).await;
            drop(connection);
            let (mut connection, hello) = ground.coordinator.attached().await;
            if !hello.live.contains(&lease(&assignment)) && hello.finished.is_empty() {
                connection.assign(&assignment).await;
            }
            let end = connection.ending().await;
            assert_eq!(end.lease, lease(&assignment));
            assert!(matches!(end.fact, Fact::Delivered(_)), "{end:?}");
        }
    });
}

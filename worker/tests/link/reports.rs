//! Reports on their way: numbered, sent again, answered, and nothing twice.

use ganger_shared::link::{Answer, CoordinatorSays, Fact, StopReason};

use crate::ground::{Ground, block_on, command, lease};

/// R063: a connection that breaks before the answers loses no report and starts nothing again.
#[cfg_attr(any(), test)]
pub fn unanswered_reports_come_again_on_a_new_connection() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut first, _) = ground.coordinator.attached().await;
        let assignment = command("a", 1, "exit 0");
        first.assign(&assignment).await;
        let mut reports = Vec::new();
        while !matches!(reports.last(), Some(Fact::Delivered(_))) {
            let report = first.report().await;
            assert_eq!(report.number as usize, reports.len() + 1);
            assert_eq!(report.lease, lease(&assignment));
            reports.push(report.fact);
        }
        assert!(matches!(reports[..2], [Fact::Accepted, Fact::Started(_)]));
        drop(first);
        let (mut second, hello) = ground.coordinator.attached().await;
        assert_eq!((hello.live, hello.finished), (vec![], vec![lease(&assignment)]));
        for (number, fact) in (1..).zip(reports) {
            let again = second.recorded().await;
            assert_eq!((again.number, again.fact), (number, fact));
        }
        drop(second);
        let (mut third, hello) = ground.coordinator.attached().await;
        assert_eq!((hello.live, hello.finished), (vec![], vec![]));
        third.beat().await;
    });
}

#[cfg_attr(any(), test)]
pub fn retry_later_keeps_a_report_until_it_is_recorded() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let assignment = command("a", 1, "exec sleep 1000");
        connection.assign(&assignment).await;
        let first = connection.report().await;
        connection.answer(&first, Answer::RetryLater).await;
        let started = connection.recorded().await;
        assert_eq!(started.number, 2);
        assert_eq!(connection.recorded().await, first);
        let (lease, reason) = (lease(&assignment), StopReason::Cancelled);
        connection.say(CoordinatorSays::Stop { lease, reason, now: true }).await;
        assert!(matches!(connection.ending().await.fact, Fact::Stopped(_)));
    });
}

/// R063: the same assignment again, running or ended, and an older one, start nothing.
#[cfg_attr(any(), test)]
pub fn a_repeated_assignment_starts_nothing_twice() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let assignment = command("a", 2, "exit 0");
        connection.assign(&assignment).await;
        connection.assign(&assignment).await;
        connection.ending().await;
        connection.assign(&assignment).await;
        connection.assign(&command("a", 1, "exit 0")).await;
        let other = command("b", 1, "exit 0");
        connection.assign(&other).await;
        // Messages are heard in order: what comes next shows that nothing came of those before.
        let next = connection.report().await;
        assert_eq!((next.lease, next.number), (lease(&other), 1));
    });
}

#[cfg_attr(any(), test)]
pub fn a_stop_of_what_never_came_is_answered() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        let assignment = command("a", 4, "exit 0");
        let (lease, reason) = (lease(&assignment), StopReason::RunStopping);
        connection.say(CoordinatorSays::Stop { lease: lease.clone(), reason, now: false }).await;
        let report = connection.recorded().await;
        assert_eq!((report.lease, report.number), (lease, 1));
        assert!(matches!(report.fact, Fact::Stopped(ended) if ended.end.confirmed));
        connection.assign(&assignment).await;
        let other = command("b", 1, "exit 0");
        connection.assign(&other).await;
        assert_eq!(connection.report().await.lease.work, other.work);
    });
}

/// P032, P036: a lease the coordinator does not know any more is not worked on.
#[cfg_attr(any(), test)]
pub fn a_disowned_lease_is_stopped() {
    block_on(async {
        let mut ground = Ground::new().await;
        let _worker = ground.worker();
        let (mut connection, _) = ground.coordinator.attached().await;
        connection.assign(&command("a", 1, "exec sleep 1000")).await;
        let accepted = connection.report().await;
        connection.answer(&accepted, Answer::Stale).await;
        assert!(matches!(connection.ending().await.fact, Fact::Stopped(_)));
    });
}

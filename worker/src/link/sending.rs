//! Which unanswered reports one connection has still to send, in the order they were made.
//!
//! A new connection sends all of them again; a report that was answered `retry_later` is sent again
//! after a while. Not here: the stream.

use std::collections::BTreeSet;

use ganger_shared::link::{Answer, Lease, Report};

use crate::outbox::Owed;

/// How far one connection is.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// Everything made up to here was sent on this connection.
    sent: u64,
    /// Of those, what is to be sent again now.
    again: BTreeSet<u64>,
    /// Of those, what is to be sent again later.
    later: BTreeSet<u64>,
}

impl Sending {
    /// The next report to send, if there is one.
    pub(super) fn next(&mut self, owed: &Owed) -> Option<Report> {
        self.again.retain(|order| owed.unanswered.iter().any(|waiting| waiting.order == *order));
        let next = owed
            .unanswered
            .iter()
            .find(|waiting| waiting.order > self.sent || self.again.contains(&waiting.order))?;
        self.sent = self.sent.max(next.order);
        self.again.remove(&next.order);
        Some(next.report.clone())
    }

    /// Whether there is anything to send.
    pub(super) fn is_due(&self, owed: &Owed) -> bool {
        owed.unanswered
            .iter()
            .any(|waiting| waiting.order > self.sent || self.again.contains(&waiting.order))
    }

    /// Notes an answer: what may be answered otherwise later is sent again later.
    pub(super) fn answered(&mut self, owed: &Owed, lease: &Lease, number: u32, answer: Answer) {
        if answer.settles() {
            return;
        }
        let same = |report: &Report| report.lease == *lease && report.number == number;
        let waiting = owed.unanswered.iter().find(|waiting| same(&waiting.report));
        self.later.extend(waiting.map(|waiting| waiting.order));
    }

    /// Later is now.
    pub(super) fn retry(&mut self) {
        self.again.append(&mut self.later);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]
    use std::sync::Arc;

    use ganger_shared::ids::{Epoch, RunId};
    use ganger_shared::link::Fact;
    use ganger_worker_core::outbox::Unanswered;

    use super::*;

    fn owed(orders: &[u64]) -> Owed {
        let unanswered = orders.iter().map(|order| {
            let lease = Lease {
                run: RunId::from_uuid_bytes(&[1; 16]),
                work: "a/main/1".parse().unwrap(),
                epoch: Epoch(1),
            };
            let number = u32::try_from(*order).unwrap();
            let report = Report { lease, number, fact: Fact::Accepted };
            Arc::new(Unanswered { order: *order, report })
        });
        Owed { unanswered: unanswered.collect(), ..Owed::default() }
    }

    fn all(sending: &mut Sending, owed: &Owed) -> Vec<u32> {
        std::iter::from_fn(|| sending.next(owed)).map(|report| report.number).collect()
    }

    #[test]
    fn a_connection_sends_each_report_once_in_order_and_a_new_one_sends_all_again() {
        let mut first = Sending::default();
        assert_eq!(all(&mut first, &owed(&[2, 5])), [2, 5]);
        assert_eq!(all(&mut first, &owed(&[2, 5, 6])), [6]);
        assert!(!first.is_due(&owed(&[2, 5, 6])));
        assert_eq!(all(&mut Sending::default(), &owed(&[5, 6])), [5, 6]);
    }

    #[test]
    fn only_what_is_to_be_retried_is_sent_again_and_only_later() {
        let (mut sending, owed) = (Sending::default(), owed(&[1, 2, 3]));
        all(&mut sending, &owed);
        let lease = owed.unanswered[0].report.lease.clone();
        sending.answered(&owed, &lease, 2, Answer::RetryLater);
        sending.answered(&owed, &lease, 3, Answer::Recorded);
        assert_eq!(all(&mut sending, &owed), [0; 0]);
        sending.retry();
        assert!(sending.is_due(&owed));
        assert_eq!(all(&mut sending, &owed), [2]);
    }
}

//! Small values that the tests of this crate share.

use ganger_shared::delivery::Place;
use ganger_shared::ids::{Epoch, RunId};
use ganger_shared::link::Lease;
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{Assignment, Body, CheckTask};
use ganger_shared::time::DurationMs;

pub(crate) fn attempt_lease(unit: &str, epoch: u64) -> Lease {
    lease(&format!("{unit}/main/1"), epoch)
}

pub(crate) fn check_lease(unit: &str, epoch: u64) -> Lease {
    lease(&format!("{unit}:tests/1@attempt:{unit}/main/1"), epoch)
}

fn lease(work: &str, epoch: u64) -> Lease {
    Lease {
        run: RunId::from_uuid_bytes(&[7; 16]),
        work: work.parse().expect("a work id"),
        epoch: Epoch(epoch),
    }
}

pub(crate) fn assignment(lease: &Lease) -> Assignment {
    let check = lease.work.to_string().contains(':');
    Assignment {
        run: lease.run.clone(),
        work: lease.work.clone(),
        epoch: lease.epoch,
        traceparent: String::new(),
        source: None,
        timeout_ms: DurationMs::from_mins(30),
        silence_ms: (!check).then_some(DurationMs::from_secs(10)),
        grace_ms: DurationMs::from_secs(10),
        on_disconnect: OnDisconnect::Continue,
        env: vec![],
        body: if check {
            Body::Check(CheckTask {
                run: "true".to_owned(),
                expect_exit: 0,
                tree: "a".repeat(40).parse().expect("a tree id"),
                pinned: vec![],
                pinned_from: "b".repeat(40).parse().expect("a commit id"),
                place: Place::OtherWorker,
            })
        } else {
            Body::Command { run: "true".to_owned(), files: vec![] }
        },
    }
}

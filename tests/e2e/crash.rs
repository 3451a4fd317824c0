//! Kill −9, of any process at any moment: nothing is started twice, nothing is lost, all comes to rest.

mod chaos;
mod coordinator;
mod fences;
mod workers;

use ganger_harness::Cluster;

/// Ends the coordinator in order and proves its journal from the directory alone.
fn verify_journal(cluster: &mut Cluster) {
    cluster.coordinator().terminate();
    let data = cluster.data().display().to_string();
    let said = cluster.ganger(&["journal", "verify", "--data", &data]);
    assert_eq!(said.code, 0, "{said:#?}");
}

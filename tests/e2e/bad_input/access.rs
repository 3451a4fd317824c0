//! Tokens: a wrong or missing one, of a client or a worker; and roles.

use std::os::unix::fs::PermissionsExt as _;

use ganger_harness::{Cluster, Said};

use super::{nothing_is_half_done, says};
use crate::binary;
use crate::plans::{command, plan, write};

fn with_token(cluster: &Cluster, file: &str, arguments: &[&str]) -> Said {
    let mut client = cluster.client(arguments);
    client.env("GANGER_TOKEN_FILE", cluster.path(file));
    client.output().expect("the product's own binary starts").into()
}

/// Every endpoint needs a token; a wrong, a missing and a too weak one are told apart, each with the
/// file and the way out, and nothing is done.
#[test]
fn without_the_right_token_nothing_is_done() {
    let mut cluster = Cluster::new(binary());
    cluster.start_coordinator();
    for name in ["operator.token", "worker-join.token"] {
        let meta =
            std::fs::metadata(cluster.data().join(name)).expect("it is written first of all");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let file = write(&cluster, &plan(&[command("a", "true")])).display().to_string();
    cluster.write("wrong.token", "gt-0000000000000000000000000000000000000000000000000000\n");
    cluster.write("empty.token", "\n");
    for arguments in [vec!["submit", &file], vec!["get", "runs"], vec!["get", "workers"]] {
        let said = with_token(&cluster, "wrong.token", &arguments).expect(3);
        says(&said, &["token"]);
        let said = with_token(&cluster, "absent.token", &arguments).expect(3);
        says(&said, &["absent.token", "--token-file", "GANGER_TOKEN_FILE"]);
        let said = with_token(&cluster, "empty.token", &arguments).expect(3);
        says(&said, &["empty.token"]);
    }
    nothing_is_half_done(&cluster);
    // A worker's token is no client's.
    let join = cluster.data().join("worker-join.token");
    let mut client = cluster.client(&["submit", &file]);
    client.env("GANGER_TOKEN_FILE", &join);
    let said = Said::from(client.output().expect("the product's own binary starts")).expect(3);
    says(&said, &["role worker", "ganger token issue"]);
    nothing_is_half_done(&cluster);
}

/// A worker with a wrong token ends with an error that names the file; none is attached.
#[test]
fn a_worker_with_a_wrong_token_is_not_taken() {
    let mut cluster = Cluster::new(binary());
    cluster.start_coordinator();
    let wrong =
        cluster.write("wrong.token", "gt-0000000000000000000000000000000000000000000000000000\n");
    for token in [wrong, cluster.operator_token(), cluster.path("absent.token")] {
        let mut worker = cluster.command();
        worker
            .args(["worker", "--server", &cluster.server(), "--name", "intruder", "--data"])
            .arg(cluster.path("intruder"))
            .arg("--token-file")
            .arg(&token);
        let said = Said::from(worker.output().expect("the product's own binary starts"));
        if token != cluster.operator_token() {
            assert_ne!(said.code, 0, "{said:#?}");
            says(&said, &[&token.display().to_string()]);
        }
        assert_ne!(said.code, 0, "{said:#?}");
    }
    let workers = cluster.ganger(&["get", "workers", "-o", "json"]).expect(0).json();
    assert_eq!(workers["workers"], serde_json::json!([]));
}

/// A token for reading reads and does not submit; once revoked it does neither.
#[test]
fn a_token_does_what_its_role_allows_until_it_is_revoked() {
    let mut cluster = Cluster::new(binary());
    cluster.start_coordinator();
    let file = write(&cluster, &plan(&[command("a", "true")])).display().to_string();
    let out = cluster.path("reader.token").display().to_string();
    cluster.ganger(&["token", "issue", "reader", "--role", "read", "--out", &out]).expect(0);
    let token = std::fs::read_to_string(&out).expect("it is written there");
    let meta = std::fs::metadata(&out).expect("it is written there");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    with_token(&cluster, "reader.token", &["get", "runs"]).expect(0);
    let said = with_token(&cluster, "reader.token", &["submit", &file]).expect(3);
    says(&said, &["reader", "read", "submit"]);
    nothing_is_half_done(&cluster);
    let list = cluster.ganger(&["token", "list"]).expect(0);
    assert!(list.stdout.contains("reader") && !list.stdout.contains(token.trim()), "{list:#?}");
    cluster.ganger(&["token", "revoke", "reader"]).expect(0);
    with_token(&cluster, "reader.token", &["get", "runs"]).expect(3);
}

/// P010: without encryption no address but loopback is listened on, unless that is asked for by name;
/// then workers and clients of another address do their work.
#[test]
fn off_loopback_plaintext_is_asked_for_by_name() {
    let mut cluster = Cluster::new(binary());
    let mut refused = cluster.command();
    refused.args(["coordinator", "--listen", "0.0.0.0:0", "--data"]).arg(cluster.path("open"));
    let said = Said::from(refused.output().expect("the product's own binary starts")).expect(3);
    says(&said, &["0.0.0.0", "--plaintext"]);
    cluster.coordinator_arguments.push("--plaintext".to_owned());
    cluster.listen = "0.0.0.0".to_owned();
    cluster.start_coordinator();
    let address = cluster.server().replace("127.0.0.1", &other_address());
    cluster.start_worker_by(&address, "far", 1, &[]);
    cluster.wait_for_workers(1);
    let file = write(&cluster, &plan(&[command("a", "true")])).display().to_string();
    let said = cluster.ganger(&["run", &file, "--server", &address, "-o", "json"]).expect(0);
    assert_eq!(said.json()["run"]["state"], "completed");
}

/// A second worker on one directory is told the process of the first.
#[test]
fn a_second_worker_on_the_directory_is_refused() {
    let mut cluster = Cluster::with_workers(binary(), &[("east", 1)]);
    let first = cluster.worker("east").pid().to_string();
    let mut second = cluster.command();
    second
        .args(["worker", "--server", &cluster.server(), "--name", "twin", "--data"])
        .arg(cluster.path("worker-east"))
        .arg("--token-file")
        .arg(cluster.data().join("worker-join.token"));
    let said = Said::from(second.output().expect("the product's own binary starts"));
    assert_ne!(said.code, 0);
    says(&said, &[&first]);
    let workers = cluster.ganger(&["get", "workers", "-o", "json"]).expect(0).json();
    assert_eq!(workers["workers"].as_array().map(Vec::len), Some(1));
}

/// R164, P016: what runs in an attempt sees no variable of ours, no token, and no directory but its own.
#[test]
fn an_attempt_sees_neither_tokens_nor_our_settings() {
    let mut cluster = Cluster::new(binary());
    cluster.environment.insert("GANGER_LOG".into(), "info".into());
    cluster.start_coordinator();
    cluster.start_worker("east", 1, &[]);
    cluster.wait_for_workers(1);
    let (operator, join) = (cluster.operator_token(), cluster.data().join("worker-join.token"));
    let (operator, join) = (operator.display(), join.display());
    let look = format!(
        "env | grep GANGER_; cat {operator} {join} && echo readable; ls {}; exit 0",
        cluster.directory().display()
    );
    let id = crate::plans::submit(&cluster, &plan(&[command("look", &look)]));
    let run = cluster.wait_run(&id, "it completes", crate::plans::is("completed"));
    let isolated = &run["units"][0]["attempts"][0]["delivery"]["isolated"];
    let said = cluster.ganger(&["logs", &id, "look"]).expect(0).stdout;
    assert!(!said.contains("GANGER_LOG"), "{said}");
    if *isolated == true {
        assert!(!said.contains("readable"), "{said}");
        assert!(!said.lines().any(|line| line == "coordinator" || line == "state"), "{said}");
    }
    let operator = std::fs::read_to_string(cluster.operator_token()).expect("it is ours");
    assert!(!said.contains(operator.trim()), "{said}");
}

/// An address of this host that is not 127.0.0.1; nothing is sent to find it.
fn other_address() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    let route = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    route.map_or_else(|_| "127.0.0.2".to_owned(), |address| address.ip().to_string())
}

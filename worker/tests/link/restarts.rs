//! A worker that is killed, and the one that comes after it.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use ganger_shared::failure::FailureClass;
use ganger_shared::link::Fact;

use crate::ground::{Ground, block_on, command, config, lease};

/// Makes this binary a worker: its coordinator and its directory follow.
pub const WORKER_ARGUMENT: &str = "__worker";

/// The worker that is killed.
pub fn worker(arguments: &[String]) -> ExitCode {
    let config = config(&arguments[0], Path::new(&arguments[1]));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match runtime.block_on(ganger_worker::run(config, std::future::pending())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn start(ground: &Ground) -> Child {
    Command::new("/proc/self/exe")
        .args([WORKER_ARGUMENT, &ground.coordinator.address])
        .arg(ground.dir.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// P001, P002: killed in the middle, a worker comes back, finds nothing alive of its attempts, and
/// says that the restart ended them; nothing of the first process is said twice or lost.
#[cfg_attr(any(), test)]
pub fn a_killed_worker_reports_its_attempts_as_ended_by_the_restart() {
    block_on(async {
        let mut ground = Ground::new().await;
        let mut process = start(&ground);
        let (mut connection, first) = ground.coordinator.attached().await;
        let assignment = command("a", 1, "exec sleep 1000");
        connection.assign(&assignment).await;
        let accepted = connection.report().await;
        let Fact::Started(started) = connection.recorded().await.fact else {
            panic!("it was to start")
        };
        process.kill().unwrap();
        process.wait().unwrap();
        drop(connection);
        let mut process = start(&ground);
        let (mut connection, hello) = ground.coordinator.attached().await;
        assert_eq!(hello.facts.worker, first.facts.worker);
        assert_ne!(hello.facts.instance, first.facts.instance);
        assert_eq!((hello.live, hello.finished), (vec![], vec![lease(&assignment)]));
        let alive = Path::new(&format!("/proc/{}", started.pid)).exists();
        assert!(!alive, "the program of the killed worker lives");
        // The answer to `started` may or may not have reached the disk before the kill.
        assert_eq!(connection.recorded().await, accepted);
        let end = connection.ending().await;
        assert_eq!(end.number, 3);
        let Fact::Failed(ended) = end.fact else { panic!("the restart ended it") };
        assert_eq!(ended.end.failure.class, FailureClass::WorkerRestarted);
        process.kill().unwrap();
        process.wait().unwrap();
    });
}

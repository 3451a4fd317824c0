//! A worker's site on a real host, a user's repository, and one way through all the rooms.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ganger_git::{Git, Limits, Mirror, Source as UserRepository};
use ganger_shared::delivery::{CheckResult, Delivery};
use ganger_shared::failure::Failure;
use ganger_shared::ids::{CommitId, Epoch, RepositoryId, RunId, TreeId, WorkerId};
use ganger_shared::plan::OnDisconnect;
use ganger_shared::spec::{AgentTask, Assignment, Body, CheckTask, Source};
use ganger_shared::time::DurationMs;
use ganger_worker::attempts::port::{
    Ending, Evidence, ExecEnd, ExecEvent, Finish, Handed, Room, Running, Site,
};
use ganger_worker::bulk::Bulk;
use ganger_worker::config::Config;
use ganger_worker::isolation::{self, Host};
use ganger_worker::link::dial::{Authority, endpoint};
use ganger_worker::{evidence, executor, workspace};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

use crate::depot::Served;

/// The longest any state is waited for.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// Fresh epochs, so that no two leases of one test have one room.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

pub const REPOSITORY: &str = "repo-1";

/// Everything a worker has, and the coordinator's depot beside it.
pub struct Ground {
    pub dir: TempDir,
    pub site: Site,
    pub depot: Served,
    pub git: Git,
    /// The coordinator's mirror.
    pub mirror: Mirror,
    pub base: CommitId,
    _attached: watch::Sender<bool>,
}

/// How one assignment went.
pub struct Went {
    pub room: Room,
    pub events: Vec<ExecEvent>,
    pub end: ExecEnd,
    pub evidence: Evidence,
}

impl Went {
    pub fn delivery(&self) -> &Delivery {
        match &self.evidence.handed {
            Handed::Delivery(delivery) => delivery,
            other @ (Handed::Measured(_) | Handed::Failed { .. } | Handed::Nothing) => {
                panic!("no delivery: {other:?}, events {:?}", self.events)
            }
        }
    }

    pub fn failed(&self) -> (&Failure, Option<&Delivery>) {
        match &self.evidence.handed {
            Handed::Failed { failure, left } => (failure, left.as_deref()),
            other @ (Handed::Measured(_) | Handed::Delivery(_) | Handed::Nothing) => {
                panic!("no failure: {other:?}")
            }
        }
    }

    pub fn measured(&self) -> &CheckResult {
        match &self.evidence.handed {
            Handed::Measured(result) => result,
            other @ (Handed::Delivery(_) | Handed::Failed { .. } | Handed::Nothing) => {
                panic!("nothing measured: {other:?}")
            }
        }
    }
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE * 3, work).await.unwrap() })
}

impl Ground {
    pub async fn new() -> Self {
        Self::on(None).await
    }

    /// On a host that allows less than it does.
    pub async fn on(host: Option<Host>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::find(Limits::default()).await.unwrap();
        let user = dir.path().join("user");
        user_repository(&user);
        let mirror = Mirror::open_or_create(&git, &dir.path().join("coordinator")).await.unwrap();
        let repository = UserRepository::discover(&git, &user).await.unwrap();
        let base = repository.resolve("main").await.unwrap();
        let bundle = dir.path().join("base.bundle");
        repository.bundle(&bundle, &base, &[]).await.unwrap();
        mirror.fetch_bundle(&bundle, &base).await.unwrap();
        let mirrors = BTreeMap::from([(REPOSITORY.to_owned(), mirror.clone())]);
        let depot = Served::start(&dir.path().join("depot"), mirrors).await;

        let token_file = dir.path().join("token");
        fs::write(&token_file, "worker-token-of-the-test\n").unwrap();
        let data = dir.path().join("worker");
        let config = Config::new(&depot.address, token_file.clone(), data.clone());
        let host = match host {
            Some(host) => host,
            None => isolation::probe(&config.shim, &dir.path().join("probe")).await,
        };
        let (sender, attached) = watch::channel(true);
        let channel = endpoint(&depot.address).unwrap().connect_lazy();
        let site = Site {
            config: Arc::new(config),
            worker: WorkerId::parse("w-1").unwrap(),
            host: Arc::new(host),
            bulk: Bulk::new(channel, Authority::new(token_file), attached),
        };
        Self { dir, site, depot, git, mirror, base, _attached: sender }
    }

    pub fn source(&self) -> Source {
        Source { repository: RepositoryId::parse(REPOSITORY).unwrap(), commit: self.base.clone() }
    }

    pub fn assignment(&self, work: &str, body: Body) -> Assignment {
        Assignment {
            run: RunId::from_uuid_bytes(&[7; 16]),
            work: work.parse().unwrap(),
            epoch: Epoch(EPOCHS.fetch_add(1, Ordering::Relaxed)),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
            source: Some(self.source()),
            timeout_ms: DurationMs::from_mins(1),
            silence_ms: None,
            grace_ms: DurationMs::from_secs(1),
            on_disconnect: OnDisconnect::Continue,
            env: vec![],
            body,
        }
    }

    pub fn command(&self, run: &str, files: &[&str]) -> Assignment {
        let files = files.iter().map(|glob| (*glob).to_owned()).collect();
        self.assignment("build/main/1", Body::Command { run: run.to_owned(), files })
    }

    pub fn agent(&self, script: &str, files: &[&str]) -> Assignment {
        self.agent_try(1, script, files)
    }

    pub fn agent_try(&self, attempt: u32, script: &str, files: &[&str]) -> Assignment {
        let body = Body::Agent(AgentTask {
            agent: "scripted".to_owned(),
            tier: None,
            goal: "the goal".to_owned(),
            objective: "the objective".to_owned(),
            invariants: vec!["keep it".to_owned()],
            language: None,
            files: files.iter().map(|glob| (*glob).to_owned()).collect(),
            script: Some(self.depot.keep(script.as_bytes())),
        });
        self.assignment(&format!("implement/main/{attempt}"), body)
    }

    pub async fn check(&self, run: &str, commit: &CommitId, pinned: &[&str]) -> Assignment {
        let tree = self.mirror.tree_of(commit).await.unwrap();
        self.check_of(run, commit, &tree, pinned)
    }

    pub fn check_of(
        &self,
        run: &str,
        commit: &CommitId,
        tree: &TreeId,
        pinned: &[&str],
    ) -> Assignment {
        let body = Body::Check(CheckTask {
            run: run.to_owned(),
            expect_exit: 0,
            tree: tree.clone(),
            pinned: pinned.iter().map(|glob| (*glob).to_owned()).collect(),
            pinned_from: self.base.clone(),
            place: ganger_shared::delivery::Place::OtherTree,
        });
        let mut assignment = self.assignment("implement:tests/1@attempt:implement/main/1", body);
        assignment.source = Some(Source { commit: commit.clone(), ..self.source() });
        assignment
    }

    /// From the lease to the evidence, as an attempt does it.
    pub async fn go(&self, assignment: &Assignment) -> Went {
        let room = workspace::prepare(&self.site, assignment).await.unwrap();
        self.work(assignment, room).await
    }

    pub async fn work(&self, assignment: &Assignment, room: Room) -> Went {
        let (running, events) = self.start(assignment, &room).await;
        let (events, end) = to_the_end(events).await;
        drop(running);
        let evidence = self.collect(assignment, &room, &end).await;
        Went { room, events, end, evidence }
    }

    pub async fn start(
        &self,
        assignment: &Assignment,
        room: &Room,
    ) -> (Running, mpsc::Receiver<ExecEvent>) {
        let (send, events) = mpsc::channel(64);
        let running = executor::start(&self.site, assignment, room, send).await.unwrap();
        (running, events)
    }

    pub async fn collect(&self, assignment: &Assignment, room: &Room, end: &ExecEnd) -> Evidence {
        let ending = match &end.failure {
            Some(failure) => Ending::Failed(failure.clone()),
            None => Ending::Finished,
        };
        let finish = Finish { ending, end: Some(Box::new(end.clone())) };
        evidence::collect(&self.site, assignment, room, &finish).await
    }

    /// Takes a delivery into the coordinator's mirror and gives its commit.
    pub async fn take_in(&self, delivery: &Delivery) -> CommitId {
        let tree = delivery.tree.as_ref().unwrap();
        let bundle = self.dir.path().join(format!("in-{}", uuid::Uuid::now_v7().simple()));
        fs::write(&bundle, self.depot.bytes(tree.bundle.as_ref().unwrap())).unwrap();
        self.mirror.fetch_bundle(&bundle, &tree.commit).await.unwrap();
        assert_eq!(self.mirror.tree_of(&tree.commit).await.unwrap(), tree.tree);
        assert_eq!(
            self.mirror.parents_of(&tree.commit).await.unwrap(),
            std::slice::from_ref(&tree.base)
        );
        tree.commit.clone()
    }
}

/// All events, the last of them apart.
pub async fn to_the_end(mut events: mpsc::Receiver<ExecEvent>) -> (Vec<ExecEvent>, ExecEnd) {
    let mut all = Vec::new();
    loop {
        match events.recv().await.expect("the last event is always the end") {
            ExecEvent::Ended(end) => return (all, *end),
            other @ (ExecEvent::Started { .. }
            | ExecEvent::Activity { .. }
            | ExecEvent::ToolStart { .. }
            | ExecEvent::ToolEnd { .. }
            | ExecEvent::Permission { .. }
            | ExecEvent::Usage(_)
            | ExecEvent::Context { .. }
            | ExecEvent::Retry { .. }
            | ExecEvent::RateLimit { .. }
            | ExecEvent::Text { .. }
            | ExecEvent::Artifact { .. }) => all.push(other),
        }
    }
}

fn user_repository(user: &Path) {
    fs::create_dir(user).unwrap();
    git(user, &["init", "-q", "-b", "main"]);
    write(&user.join("README.md"), "one\ntwo\n");
    write(&user.join("src/lib.rs"), "fn lib() {}\n");
    write(&user.join("verify.sh"), "test -f src/wanted.rs\n");
    write(&user.join(".gitignore"), "target/\n");
    git(user, &["add", "-A"]);
    git(user, &["commit", "-q", "-m", "base"]);
}

/// Plain git, as a user runs it.
pub fn git(dir: &Path, args: &[&str]) {
    let ran = Command::new("git")
        .args(["-c", "user.name=user", "-c", "user.email=user@localhost"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every file below a directory.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files.extend(self::files(&entry.path())),
            _other => files.push(entry.path()),
        }
    }
    files
}

/// Waits until a condition holds, not for a time.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        look_again_later().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "polls for a state of foreign processes")]
async fn look_again_later() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

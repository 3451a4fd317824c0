//! The actors of one coordinator on a journal in memory, and workers that are played by hand.
//!
//! Only for this crate's tests. Not here: the API and its streams, which `tests/api` proves.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by failing")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ganger_coordinator_core::run::{Call, Reply, Verb};
use ganger_git::Git;
use ganger_shared::actor::Actor as By;
use ganger_shared::delivery::Delivery;
use ganger_shared::digest::{ArtifactRef, Digest};
use ganger_shared::event::{Envelope, Repository, RunEvent, Submitted, SystemEvent};
use ganger_shared::fleet::WorkerFacts;
use ganger_shared::ids::{CommitId, IdempotencyKey, InstanceId, RepositoryId, RunId, WorkerId};
use ganger_shared::limits::Limits;
use ganger_shared::link::{
    Answer, Beat, CoordinatorSays, Ended, Fact, Hello, Lease, PROTOCOL, PROTOCOL_MIN, Report,
    WorkerSays,
};
use ganger_shared::plan;
use ganger_shared::rejection::Rejection;
use ganger_shared::time::{DurationMs, Timestamp};
use ganger_shared::view::RunView;
use ganger_telemetry::Projector;
use ractor::{Actor, ActorRef};
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::artifacts::{self, Artifacts};
use crate::clock::Clock;
use crate::fleet::{self, FleetMessage};
use crate::house::{FOLDS, House};
use crate::journal::{EventStore, MemoryJournal, StreamName};
use crate::root::{self, Root, RootMessage};
use crate::run::{Asked, Outcome, ReplyTo, RunMessage};
use crate::runs::RunsMessage;
use crate::session::{INBOUND, Outbound, SessionMessage, Told};
use crate::system;
use crate::trees::Mirrors;

/// Looks at something before a test gives up.
const LOOKS: usize = 100_000;
/// How far time goes at once.
const STEP_MS: u64 = 500;
/// Turns everybody has between two steps of time.
const TURNS: usize = 64;

/// A plan of one unit without a repository.
pub const ONE: &str = "units: [{ id: a, kind: command, run: make }]";
/// A plan of two.
pub const TWO: &str =
    "units: [{ id: a, kind: command, run: make }, { id: b, kind: command, run: make }]";

/// The actors, the journal below them and what they said when they had to end.
pub struct Stage {
    pub journal: MemoryJournal,
    pub house: House,
    pub mirrors: Mirrors,
    pub artifacts: Artifacts,
    pub fatal: mpsc::Receiver<String>,
    root: ActorRef<RootMessage>,
    dir: TempDir,
}

impl Stage {
    pub async fn new() -> Self {
        let stage = Self::set(MemoryJournal::default(), TempDir::new().unwrap()).await;
        stage.open();
        // Not before: git is a process, and no time passes for those that wait for one.
        tokio::time::pause();
        stage
    }

    /// The actors, who were not told yet to fold what is in the journal.
    pub async fn set(journal: MemoryJournal, dir: TempDir) -> Self {
        let options = artifacts::Options { floor_bytes: 0, ..artifacts::Options::default() };
        let artifacts = Artifacts::open(&dir.path().join("artifacts"), options).unwrap();
        let git = Git::find(ganger_git::Limits::default()).await.unwrap();
        let mirrors = Mirrors::new(git, dir.path().join("mirrors"), artifacts.clone());
        std::fs::create_dir_all(dir.path().join("mirrors")).unwrap();
        let (clock, limits) = (Clock::start(), Limits::default());
        let (children, started) = oneshot::channel();
        let (tell, fatal) = mpsc::channel(8);
        let arguments = root::Arguments {
            fleet: fleet::Arguments { clock, limits: limits.clone() },
            mirrors: mirrors.clone(),
            fatal: tell,
            children,
        };
        let (root, _) = Actor::spawn(None, Root, arguments).await.unwrap();
        let root::Children { fleet, runs, trees } = started.await.unwrap();
        let store = EventStore::Memory(journal.clone());
        let folds = Arc::new(Semaphore::new(FOLDS));
        let projector = Projector::off();
        let house = House { store, clock, limits, folds, projector, fleet, runs, trees };
        Self { journal, house, mirrors, artifacts, fatal, root, dir }
    }

    pub fn open(&self) {
        self.house.fleet.cast(FleetMessage::Begin(Box::new(self.house.clone()))).unwrap();
        self.house.runs.cast(RunsMessage::Open(Box::new(self.house.clone()))).unwrap();
    }

    /// Ends without a word, and begins anew on what is written.
    pub async fn crash(self) -> Self {
        let stage = self.crash_closed().await;
        stage.open();
        stage
    }

    /// As `crash`; the new one is not told yet to fold.
    pub async fn crash_closed(self) -> Self {
        tokio::time::resume();
        let stage = self.crash_live().await;
        tokio::time::pause();
        stage
    }

    /// As `crash_closed`, where time was never paused.
    pub async fn crash_live(self) -> Self {
        self.root.kill_and_wait(None).await.unwrap();
        Self::set(self.journal, self.dir).await
    }

    /// Lets this much time pass, as a host does that does not stand still.
    pub async fn pass(&self, ms: u64) {
        for _ in 0..ms / STEP_MS {
            tokio::time::advance(Duration::from_millis(STEP_MS)).await;
            // Everybody has their say; nothing here needs more turns than this.
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        }
    }

    pub async fn ask_runs<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> RunsMessage) -> T {
        let (port, answer) = oneshot::channel();
        self.house.runs.cast(message(port)).unwrap();
        answer.await.unwrap()
    }

    pub async fn ask_fleet<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> FleetMessage,
    ) -> T {
        let (port, answer) = oneshot::channel();
        self.house.fleet.cast(message(port)).unwrap();
        answer.await.unwrap()
    }

    pub async fn find(&self, run: &RunId) -> Result<ActorRef<RunMessage>, Rejection> {
        let name = run.to_string();
        self.ask_runs(|port| RunsMessage::Find { name, port }).await
    }

    /// The run as its actor has it; nothing while it has none, or none with events.
    pub async fn view(&self, run: &RunId) -> Option<RunView> {
        let (port, view) = oneshot::channel();
        self.find(run).await.ok()?.cast(RunMessage::View(port)).ok()?;
        view.await.ok().flatten()
    }

    /// Where the run stands and its units, as `active: a ready, b running`.
    pub async fn stands(&self, run: &RunId) -> String {
        let Some(view) = self.view(run).await else { return "nowhere".to_owned() };
        let units = view.units.iter().map(|unit| format!("{} {}", unit.id, unit.state));
        format!("{}: {}", view.row.state, units.collect::<Vec<_>>().join(", "))
    }

    pub async fn until_stands(&self, run: &RunId, wanted: &str) {
        let mut last = String::new();
        for _ in 0..LOOKS {
            last = self.stands(run).await;
            if last == wanted {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{run} stands at {last}, not at {wanted}");
    }

    /// Submits a plan under a key as a run of this number.
    pub async fn submit(&self, key: &str, number: u8, lines: &str) -> (RunId, Reply) {
        let outcome = self.submitting(key, number, lines).await.unwrap();
        (outcome.run, outcome.reply)
    }

    pub fn submitting(&self, key: &str, number: u8, lines: &str) -> oneshot::Receiver<Outcome> {
        let (port, answer) = oneshot::channel();
        let run = RunId::from_uuid_bytes(&[number; 16]);
        let verb = submit(key, &run, lines, None);
        let asked = Asked { by: anna(), verb, reply: ReplyTo::Caller(port) };
        self.house.runs.cast(RunsMessage::Submit { run, asked: Box::new(asked) }).unwrap();
        answer
    }

    /// A run of this plan.
    pub async fn run(&self, number: u8, lines: &str) -> RunId {
        let (run, reply) = self.submit(&format!("k{number}"), number, lines).await;
        assert!(matches!(reply, Reply::Done { replayed: false, .. }), "{reply:?}");
        run
    }

    /// A run over a repository whose mirror begins at this commit.
    pub async fn run_over(&self, number: u8, lines: &str, base: &CommitId) -> RunId {
        let run = RunId::from_uuid_bytes(&[number; 16]);
        let (port, answer) = oneshot::channel();
        let verb = submit(&format!("k{number}"), &run, lines, Some(base));
        let asked = Box::new(Asked { by: anna(), verb, reply: ReplyTo::Caller(port) });
        self.house.runs.cast(RunsMessage::Submit { run: run.clone(), asked }).unwrap();
        let reply = answer.await.unwrap().reply;
        assert!(matches!(reply, Reply::Done { replayed: false, .. }), "{reply:?}");
        run
    }

    /// Waits for the world, git above all, which takes its own time.
    pub async fn until(&self, what: &str, mut seen: impl FnMut(&Self) -> bool) {
        let patience = Duration::from_secs(30);
        let look = async {
            while !seen(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(patience, look).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    pub async fn command(&self, run: &RunId, verb: Verb) -> Reply {
        let (port, answer) = oneshot::channel();
        let asked = Asked { by: anna(), verb, reply: ReplyTo::Caller(port) };
        let actor = self.find(run).await.unwrap();
        actor.cast(RunMessage::Ask(Box::new(asked))).unwrap();
        answer.await.unwrap().reply
    }

    /// What is written of a run, by the names of the events.
    pub fn written(&self, run: &RunId) -> Vec<String> {
        let stored = self.journal.read(&stream(run), 1, usize::MAX);
        let events = stored.iter().map(|event| serde_json::from_str(&event.body).unwrap());
        events.map(|read: Envelope<RunEvent>| name(&read.event)).collect()
    }

    /// How often an event of this name is written of a run.
    pub fn times(&self, run: &RunId, event: &str) -> usize {
        self.written(run).iter().filter(|name| *name == event).count()
    }

    /// Writes an event past the run's actor.
    pub fn write(&self, run: &RunId, event: RunEvent) {
        let at = self.house.clock.utc();
        let body = serde_json::to_string(&Envelope { at, by: By::Coordinator, event }).unwrap();
        let seq = self.journal.streams(stream(run).as_str())[0].1;
        self.journal.append(&stream(run), seq, &[body]).unwrap();
    }

    pub fn system(&self) -> Vec<SystemEvent> {
        let events = system::read(&self.house.store, 1, usize::MAX).unwrap();
        events.into_iter().map(|(_, envelope)| envelope.event).collect()
    }

    pub async fn attach(&self, worker: &str, start: u32) -> Peer {
        self.attach_with(worker, start, (Vec::new(), Vec::new())).await.unwrap()
    }

    /// Attaches a worker with two slots that runs and has finished these.
    pub async fn attach_with(
        &self,
        worker: &str,
        start: u32,
        (live, finished): (Vec<Lease>, Vec<Lease>),
    ) -> Result<Peer, String> {
        let ended = CancellationToken::new();
        let (outbound, told) = Outbound::new(ended.clone());
        let hello = Hello {
            protocol_min: PROTOCOL_MIN,
            protocol_max: PROTOCOL,
            facts: facts(worker, start),
            live,
            finished,
            seen: None,
            sent_at: Timestamp::from_unix_ms(0),
        };
        let hello = Box::new(hello);
        let session = self.ask_fleet(|port| FleetMessage::Attach { hello, outbound, port }).await?;
        let places = Arc::new(Semaphore::new(INBOUND));
        Ok(Peer { session, told, ended, places })
    }
}

/// A worker, played by hand.
pub struct Peer {
    pub session: ActorRef<SessionMessage>,
    pub told: mpsc::Receiver<Told>,
    pub ended: CancellationToken,
    pub places: Arc<Semaphore>,
}

impl Peer {
    /// The next thing it is told that this makes something of.
    pub async fn until<T>(&mut self, mut pick: impl FnMut(CoordinatorSays) -> Option<T>) -> T {
        loop {
            let told = self.told.recv().await.expect("the session goes on");
            if let Some(picked) = pick(told.says) {
                return picked;
            }
        }
    }

    pub async fn assigned(&mut self) -> Lease {
        self.until(|says| {
            let CoordinatorSays::Assign(given) = says else { return None };
            Some(Lease { run: given.run, work: given.work, epoch: given.epoch })
        })
        .await
    }

    pub async fn answered(&mut self) -> Answer {
        self.until(|says| {
            if let CoordinatorSays::Answered { answer, .. } = says { Some(answer) } else { None }
        })
        .await
    }

    pub fn says(&self, says: WorkerSays) {
        let place = Arc::clone(&self.places).try_acquire_owned().unwrap();
        self.session.cast(SessionMessage::Heard(Box::new(says), place)).unwrap();
    }

    pub fn beats(&self) {
        let sent_at = Timestamp::from_unix_ms(0);
        self.says(WorkerSays::Beat(Beat { live: Vec::new(), busy: 0, sent_at, draining: false }));
    }

    pub fn reports(&self, lease: &Lease, number: u32, fact: Fact) {
        let lease = lease.clone();
        self.says(WorkerSays::Report(Box::new(Report { lease, number, fact })));
    }

    /// Reports, and waits for the answer.
    pub async fn report(&mut self, lease: &Lease, number: u32, fact: Fact) -> Answer {
        self.reports(lease, number, fact);
        self.answered().await
    }
}

pub fn anna() -> By {
    By::Principal("anna".to_owned())
}

pub fn call(key: &str) -> Call {
    let key = IdempotencyKey::parse(key).unwrap();
    Call { body: Digest::of(key.as_str().as_bytes()), key, expected: None }
}

pub fn pause(key: &str) -> Verb {
    Verb::Pause { call: call(key), reason: "lunch".to_owned() }
}

/// A delivery that changed nothing.
pub fn done() -> Fact {
    let (end, active_ms) = (Delivery::new("done"), DurationMs(10));
    Fact::Delivered(Box::new(Ended { end, active_ms, output: None, output_truncated: false }))
}

pub fn stream(run: &RunId) -> StreamName {
    StreamName::run(run.as_str()).unwrap()
}

pub fn facts(worker: &str, start: u32) -> WorkerFacts {
    WorkerFacts {
        worker: WorkerId::parse(worker).unwrap(),
        instance: InstanceId::parse(&format!("{worker}-i{start}")).unwrap(),
        name: worker.to_owned(),
        labels: BTreeMap::new(),
        slots: 2,
        agents: Vec::new(),
        build: "test".to_owned(),
    }
}

fn name(event: &RunEvent) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

/// The command that submits these lines of a plan, over a repository if there is a base.
pub fn submit(key: &str, run: &RunId, lines: &str, base: Option<&CommitId>) -> Verb {
    let source = base.map_or("", |_| "repository: { url: . }\n");
    let text = format!("version: 1\nname: p\nmode: autonomous\n{source}{lines}\n");
    let (plan, _) = plan::read(&text, &Limits::default()).unwrap();
    let submitted = Submitted {
        run: run.clone(),
        project: plan.project(),
        name: plan.name.to_string(),
        labels: plan.labels.clone(),
        goal: String::new(),
        contract: plan.contract.clone(),
        contract_hash: Digest::of(b"contract"),
        plan: ArtifactRef::of(text.as_bytes()),
        attachments: BTreeMap::new(),
        repository: base.map(|base| Repository {
            id: RepositoryId::parse("repo").unwrap(),
            shown: ".".to_owned(),
            base: base.clone(),
            base_name: "main".to_owned(),
        }),
        mode: plan.mode(),
        dispatch: plan.dispatch(),
        priority: plan.priority(),
        budgets: plan.budgets.clone(),
        delivery: plan.delivery_mode(),
        grace_ms: DurationMs(1_000),
        prepare_ms: DurationMs(10_000),
    };
    let (mut call, units) = (call(key), plan.resolved_units().units);
    call.body = Digest::of(text.as_bytes());
    Verb::Submit { call, submitted: Box::new(submitted), tasks: plan.tasks, units }
}

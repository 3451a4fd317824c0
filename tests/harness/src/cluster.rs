//! A coordinator and its workers as real processes, each with a directory of its own.
//!
//! Not here: what a test demands of them, and anything that looks inside them: tests speak to them
//! as users do, by the `ganger` command.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take to come about before a test gives up.
pub const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(20);

/// Times a test can wait for: a beat of 100 ms and a lease of 1 s.
pub const QUICK: [&str; 6] = ["--beat", "100ms", "--lease", "1s", "--grace", "500ms"];

/// One process of ours; killed when it is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn spawn(command: &mut Command, log: PathBuf) -> Self {
        let out = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a test's own directory can be written");
        let err = out.try_clone().expect("a file that is open can be opened again");
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().expect("the product's own binary starts");
        Self { child, log }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        self.wait()
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end\n{}", self.log());
            pause();
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, signal).expect("a live child can be signalled");
    }

    /// The most memory it ever had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("a live process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib =
            line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        kib.expect("the kernel counts memory in KiB") << 10
    }

    /// What it printed so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What one `ganger` command came to.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Said {
    /// Its stdout as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:#?}"))
    }

    /// Itself, if the exit code is this.
    #[expect(clippy::return_self_not_must_use, reason = "the exit code may be all a test wants")]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A coordinator, its workers, and the clients of one test.
pub struct Cluster {
    binary: PathBuf,
    directory: TempDir,
    port: u16,
    /// The address the coordinator listens on; clients always use loopback.
    pub listen: String,
    /// Further arguments of the coordinator.
    pub coordinator_arguments: Vec<String>,
    /// Environment of every process, besides what is always set.
    pub environment: BTreeMap<String, String>,
    coordinator: Option<Process>,
    workers: BTreeMap<String, Process>,
}

impl Cluster {
    /// A cluster of this binary with quick times; nothing runs yet.
    pub fn new(binary: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            directory: TempDir::with_prefix("ganger-").expect("a temporary directory can be made"),
            port: free_port(),
            listen: "127.0.0.1".to_owned(),
            coordinator_arguments: QUICK.iter().map(|&word| word.to_owned()).collect(),
            environment: BTreeMap::new(),
            coordinator: None,
            workers: BTreeMap::new(),
        }
    }

    /// A cluster with a coordinator and these workers, all attached.
    pub fn with_workers(binary: &Path, workers: &[(&str, u32)]) -> Self {
        let mut cluster = Self::new(binary);
        cluster.start_coordinator();
        for (name, slots) in workers {
            cluster.start_worker(name, *slots, &[]);
        }
        cluster.wait_for_workers(workers.len());
        cluster
    }

    /// The directory of the whole test.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The coordinator's own directory.
    pub fn data(&self) -> PathBuf {
        self.path("coordinator")
    }

    /// The address clients use.
    pub fn server(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A command of the binary with nothing of the tester's own environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear();
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("NO_COLOR", "1")
            .envs(&self.environment)
            .current_dir(self.directory.path());
        command
    }

    /// Starts the coordinator (again) on the same address and directory, and waits until it serves.
    pub fn start_coordinator(&mut self) {
        let mut command = self.command();
        command
            .args(["coordinator", "--listen", &format!("{}:{}", self.listen, self.port)])
            .arg("--data")
            .arg(self.data())
            .args(&self.coordinator_arguments);
        let log = self.path("coordinator.log");
        self.coordinator = Some(Process::spawn(&mut command, log));
        let tokens = [self.operator_token(), self.data().join("worker-join.token")];
        let port = self.port;
        until("the coordinator serves", || {
            tokens.iter().all(|token| token.is_file())
                && TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    /// The coordinator's process.
    pub fn coordinator(&mut self) -> &mut Process {
        self.coordinator.as_mut().expect("the test started the coordinator")
    }

    /// Where the operator's token is.
    pub fn operator_token(&self) -> PathBuf {
        self.data().join("operator.token")
    }

    /// Starts a worker (again) on its own directory.
    pub fn start_worker(&mut self, name: &str, slots: u32, more: &[&str]) {
        let server = self.server();
        self.start_worker_by(&server, name, slots, more);
    }

    /// The same, by another way to the coordinator.
    pub fn start_worker_by(&mut self, server: &str, name: &str, slots: u32, more: &[&str]) {
        let mut command = self.command();
        command
            .args(["worker", "--server", server, "--name", name])
            .args(["--slots", &slots.to_string(), "--data"])
            .arg(self.path(&format!("worker-{name}")))
            .arg("--token-file")
            .arg(self.data().join("worker-join.token"))
            .args(more);
        let log = self.path(&format!("worker-{name}.log"));
        self.workers.insert(name.to_owned(), Process::spawn(&mut command, log));
    }

    /// A worker's process.
    pub fn worker(&mut self, name: &str) -> &mut Process {
        self.workers.get_mut(name).expect("the test started this worker")
    }

    /// Waits until so many workers are live.
    pub fn wait_for_workers(&self, count: usize) {
        until("the workers are attached", || {
            let said = self.ganger(&["get", "workers", "-o", "json"]);
            let json: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
            let live = json["workers"].as_array().map_or(0, |workers| {
                workers.iter().filter(|worker| worker["state"] == "live").count()
            });
            live >= count
        });
    }

    /// A client's command: the arguments, and the way to this coordinator.
    pub fn client(&self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command
            .args(arguments)
            .env("GANGER_SERVER", self.server())
            .env("GANGER_TOKEN_FILE", self.operator_token())
            .stdin(Stdio::null());
        command
    }

    /// Runs a client's command to its end.
    pub fn ganger(&self, arguments: &[&str]) -> Said {
        self.client(arguments).output().expect("the product's own binary starts").into()
    }

    /// Starts a client's command that goes on beside the test.
    pub fn start_client(&self, name: &str, arguments: &[&str]) -> Process {
        Process::spawn(&mut self.client(arguments), self.path(&format!("client-{name}.log")))
    }

    /// Starts a command that has only its own state directory to go by.
    pub fn start_alone(&self, name: &str, arguments: &[&str]) -> Process {
        let log = self.path(&format!("alone-{name}.log"));
        Process::spawn(self.command().args(arguments), log)
    }

    /// Runs such a command to its end.
    pub fn alone(&self, arguments: &[&str]) -> Said {
        let output = self.command().args(arguments).stdin(Stdio::null()).output();
        output.expect("the product's own binary starts").into()
    }

    /// Submits a plan and returns the run's id.
    pub fn submit(&self, plan: &Path) -> String {
        let said = self.ganger(&["submit", &plan.display().to_string(), "-o", "json"]).expect(0);
        said.json()["run_id"].as_str().expect("submit names the run").to_owned()
    }

    /// The run as `get run` shows it.
    pub fn run(&self, id: &str) -> Value {
        self.ganger(&["get", "run", id, "-o", "json"]).expect(0).json()["run"].clone()
    }

    /// Waits until the run satisfies a demand, and returns it.
    pub fn wait_run(&self, id: &str, what: &str, demand: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let run = self.run(id);
            if demand(&run) {
                return run;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not come about:\n{run:#}");
            pause();
        }
    }

    /// Writes a file of the test, with the directories it needs.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a test's own directory can be written");
        }
        std::fs::write(&path, text).expect("a test's own directory can be written");
        path
    }
}

/// What a failed test leaves for whoever looks why.
impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.directory.disable_cleanup(true);
            eprintln!("logs and data are left in {}", self.directory.path().display());
        }
    }
}

/// One unit of a run as `get run` shows it.
pub fn unit<'a>(run: &'a Value, id: &str) -> &'a Value {
    run["units"]
        .as_array()
        .and_then(|units| units.iter().find(|unit| unit["id"] == id))
        .unwrap_or_else(|| panic!("no unit {id} in {run:#}"))
}

/// Waits for a state.
pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < PATIENCE, "{what}: did not come about in {PATIENCE:?}");
        pause();
    }
}

/// A port nobody listens on now.
///
/// It lies below those the kernel gives to outgoing connections: one of these would take it while a
/// killed coordinator is away, the worker's own dialling first of all.
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    let random = RandomState::new().build_hasher().finish();
    let start = u16::try_from(random % u64::from(COUNT)).expect("it is below a count of ports");
    let ports = (0..COUNT).map(|step| FIRST + (start + step) % COUNT);
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("loopback has a free port")
}

#[expect(clippy::disallowed_methods, reason = "the poll of a wait for a state")]
fn pause() {
    std::thread::sleep(POLL);
}

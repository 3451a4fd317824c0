//! One worker as a child process, kept alive: started anew when it dies, ended when we end.
//!
//! The only place of this crate where a process is started or ended.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::output::note;

/// How long a worker may take to leave; what it holds by then is lost and runs elsewhere later.
const LEAVE: Duration = Duration::from_secs(20);
/// The waits before a dead worker is started anew.
const AGAIN_MIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(10);
/// A worker that lived so long had started well.
const SETTLED: Duration = Duration::from_secs(30);
/// Starts in a row that fail before it is given up.
const FAILURES_MAX: u32 = 20;

/// What is wished of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// That it works.
    Stay,
    /// That it ends its attempts, says so, and says goodbye.
    Leave,
    /// That it is gone: what it had at work is lost and runs again elsewhere or later.
    Die,
}

/// Where a worker's lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// To our standard error.
    Here,
    /// To a file in its directory.
    ToFile,
}

/// What one worker is started with.
#[derive(Debug, Clone)]
pub struct Worker {
    /// This program.
    pub program: PathBuf,
    /// The coordinator's address.
    pub server: String,
    /// The token it joins with.
    pub token_file: PathBuf,
    /// Its directory.
    pub data: PathBuf,
    /// Its name.
    pub name: String,
    /// Its slots.
    pub slots: u32,
    /// Where its lines go.
    pub say: Say,
    /// The configuration file it reads, where one was named.
    pub config: Option<PathBuf>,
}

/// This program, also after its file was replaced.
pub fn this_program() -> io::Result<PathBuf> {
    let itself = Path::new("/proc/self/exe");
    if itself.exists() { Ok(itself.to_owned()) } else { std::env::current_exe() }
}

/// Starts the worker, again whenever it dies, until something else is wished.
pub async fn keep(worker: Worker, mut wish: watch::Receiver<Wish>) {
    let (mut again, mut failures) = (AGAIN_MIN, 0);
    while *wish.borrow_and_update() == Wish::Stay {
        let since = Instant::now();
        let why = match worker.start() {
            Ok(child) => match until_it_ends(child, &mut wish).await {
                Ended::Left => return,
                Ended::Died(status) => status.to_string(),
            },
            Err(error) => error.to_string(),
        };
        if since.elapsed() >= SETTLED {
            (again, failures) = (AGAIN_MIN, 0);
        }
        failures += 1;
        let (name, log) = (&worker.name, worker.told());
        if failures >= FAILURES_MAX {
            note(&format!("worker {name} ended {failures} times in a row ({why}): given up{log}"));
            return;
        }
        note(&format!("worker {name} ended ({why}); starting it again{log}"));
        tokio::select! {
            _ = other_than_stay(&mut wish) => return,
            () = pause(again) => {}
        }
        again = (again * 2).min(AGAIN_MAX);
    }
}

enum Ended {
    Left,
    Died(ExitStatus),
}

/// The wish, once it is another one; nobody there to wish is one, too.
async fn other_than_stay(wish: &mut watch::Receiver<Wish>) -> Wish {
    wish.wait_for(|wish| *wish != Wish::Stay).await.map_or(Wish::Die, |wish| *wish)
}

async fn until_it_ends(mut child: Child, wish: &mut watch::Receiver<Wish>) -> Ended {
    // Taken out first: waiting would close it, and its end is the end of the worker.
    let mut stdin = child.stdin.take();
    let wish = tokio::select! {
        status = child.wait() => match status {
            Ok(status) => return Ended::Died(status),
            Err(_) => Wish::Die,
        },
        wish = other_than_stay(wish) => wish,
    };
    let mut asked = false;
    if let (Wish::Leave, Some(stdin)) = (wish, &mut stdin) {
        asked = stdin.write_all(b"leave\n").await.is_ok();
    }
    if !asked {
        drop(stdin.take());
    }
    if tokio::time::timeout(LEAVE, child.wait()).await.is_err() {
        // By the handle of our own child, which cannot be another process.
        let _already_gone = child.kill().await;
    }
    Ended::Left
}

impl Worker {
    fn start(&self) -> io::Result<Child> {
        std::fs::create_dir_all(&self.data)?;
        let lines = match self.say {
            Say::Here => Stdio::inherit(),
            Say::ToFile => File::create(self.log())?.into(),
        };
        let mut command = Command::new(&self.program);
        command
            .arg0("ganger")
            .args(["worker", "--with-parent", "--server", &self.server, "--name", &self.name])
            .args(["--slots", &self.slots.to_string()])
            .arg("--token-file")
            .arg(&self.token_file)
            .arg("--data")
            .arg(&self.data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(lines)
            // A Ctrl-C of the terminal is ours to hear; the worker hears of it from us.
            .process_group(0);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        for name in foreign_settings() {
            command.env_remove(name);
        }
        command.spawn()
    }

    fn log(&self) -> PathBuf {
        self.data.join("worker.log")
    }

    fn told(&self) -> String {
        match self.say {
            Say::Here => String::new(),
            Say::ToFile => format!("; its lines are in {}", self.log().display()),
        }
    }
}

/// What our own environment says of other things than this worker.
fn foreign_settings() -> impl Iterator<Item = String> {
    let kept = |name: &str| name.starts_with("GANGER_LOG") || name == "GANGER_CONFIG";
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(move |name| name.starts_with("GANGER_") && !kept(name))
}

async fn pause(length: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the wait before a dead worker is started again"
    )]
    tokio::time::sleep(length).await;
}

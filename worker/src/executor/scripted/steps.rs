//! Carries out the steps of a script, one function per kind of step.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, Instant};

use ganger_shared::failure::{Failure, FailureClass};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};

use super::program::{Agent, print, say};
use super::script::{Crash, Failing, Noise, Run, RunDetails, Step, Text, Used};
use super::wire::Say;
use crate::process::inside::Child;

/// How often work shows itself.
const WORK_SHOWS: Duration = Duration::from_millis(50);
/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Printed at once.
const CHUNK: usize = 64 << 10;

/// How a list of steps came to its end.
pub(super) enum Done {
    /// Every step was done.
    All,
    /// It ended well before that.
    Finished(String),
    /// It failed.
    Failed(Failure),
    /// Somebody interrupted it.
    Interrupted,
    /// It ends without a word.
    Crashed(u8),
}

/// Blocks what a polite caller would send; only SIGKILL is left. Before any other thread starts.
pub(super) fn ignore_requests() {
    let mut requests = SigSet::empty();
    requests.add(Signal::SIGINT);
    requests.add(Signal::SIGTERM);
    // It fails only for a wrong argument.
    let _ = requests.thread_swap_mask(SigmaskHow::SIG_BLOCK);
}

/// Does the steps until one of them is the last.
pub(super) fn run(agent: &mut Agent, steps: &[Step]) -> io::Result<Done> {
    for each in steps {
        if agent.wait(Duration::ZERO)? {
            return Ok(Done::Interrupted);
        }
        match step(agent, each)? {
            Done::All => {}
            end @ (Done::Finished(_) | Done::Failed(_) | Done::Interrupted | Done::Crashed(_)) => {
                return Ok(end);
            }
        }
    }
    Ok(Done::All)
}

fn step(agent: &mut Agent, step: &Step) -> io::Result<Done> {
    match step {
        Step::Say(text) => say(&Say::Text { text: text.clone() }).map(|()| Done::All),
        Step::Work(length) => work(agent, Duration::from_millis(length.0.0)),
        Step::Write(text) => file(agent, "write", &text.path, || write(text)),
        Step::Append(text) => file(agent, "append", &text.path, || append(text)),
        Step::Delete(path) => file(agent, "delete", path, || delete(path)),
        Step::Move(paths) => file(agent, "move", &paths.from, || rename(&paths.from, &paths.to)),
        Step::Run(Run::Plain(command)) => shell(agent, command, false),
        Step::Run(Run::Detailed(RunDetails { command, may_fail })) => {
            shell(agent, command, *may_fail)
        }
        Step::Usage(used) => usage(agent, *used),
        Step::Context(percent) => say(&Say::Context { percent: *percent }).map(|()| Done::All),
        Step::Retry(retrying) => {
            say(&Say::Retry { class: retrying.class, wait_ms: retrying.wait.0 })?;
            quiet(agent, Duration::from_millis(retrying.wait.0.0))
        }
        Step::RateLimit(wait) => say(&Say::RateLimit { wait_ms: Some(wait.0) }).map(|()| Done::All),
        Step::Artifact(path) => say(&Say::Artifact { path: path.clone() }).map(|()| Done::All),
        Step::Silent(length) => quiet(agent, Duration::from_millis(length.0.0)),
        Step::Hang(_) => hang(agent),
        Step::Permission(asked) => {
            let (tool, allowed) = (asked.tool.clone(), asked.allowed);
            say(&Say::Permission { tool, allowed }).map(|()| Done::All)
        }
        Step::DeclareNoChange(reason) => {
            agent.no_change = Some(reason.clone());
            Ok(Done::All)
        }
        Step::Finish(summary) => Ok(Done::Finished(summary.clone())),
        Step::Fail(Failing { class, message }) => {
            Ok(Done::Failed(Failure::new(*class, message.clone())))
        }
        Step::Crash(crash) => Ok(fall(crash)),
        Step::HugeLine(size) => huge_line(size.0),
        Step::Noise(noise) => print_noise(noise),
        Step::Connect(address) => Ok(connect(agent, address)),
        Step::Attempt(branches) => {
            let number = agent.heading.attempt;
            let branch = branches.range(..=number).next_back().map(|(_, steps)| steps);
            branch.map_or(Ok(Done::All), |steps| run(agent, steps))
        }
        Step::Unit(branches) => {
            let branch = branches.get(&agent.heading.unit);
            branch.map_or(Ok(Done::All), |steps| run(agent, steps))
        }
        Step::Lane(branches) => {
            let branch = branches.get(&agent.heading.lane);
            branch.map_or(Ok(Done::All), |steps| run(agent, steps))
        }
    }
}

fn work(agent: &mut Agent, length: Duration) -> io::Result<Done> {
    let until = Instant::now() + length;
    loop {
        say(&Say::Activity)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Done::All);
        }
        if agent.wait(left.min(WORK_SHOWS))? {
            return Ok(Done::Interrupted);
        }
    }
}

fn quiet(agent: &mut Agent, length: Duration) -> io::Result<Done> {
    Ok(if agent.wait(length)? { Done::Interrupted } else { Done::All })
}

fn hang(agent: &mut Agent) -> io::Result<Done> {
    loop {
        // An interruption is heard and not minded.
        let _unmoved = agent.wait(Duration::from_hours(1))?;
    }
}

/// A tool that works on a file.
fn file(
    agent: &mut Agent,
    name: &str,
    path: &Path,
    work: impl FnOnce() -> io::Result<()>,
) -> io::Result<Done> {
    let id = begin_tool(agent, name)?;
    let result = work();
    say(&Say::ToolEnd { id, ok: result.is_ok() })?;
    Ok(match result {
        Ok(()) => Done::All,
        Err(error) => failed(format!("failed to {name} {}: {error}", path.display())),
    })
}

fn failed(message: String) -> Done {
    Done::Failed(Failure::new(FailureClass::TaskFailed, message))
}

fn begin_tool(agent: &mut Agent, name: &str) -> io::Result<String> {
    agent.tools += 1;
    let id = format!("tool-{}", agent.tools);
    say(&Say::ToolStart { id: id.clone(), name: name.to_owned() })?;
    Ok(id)
}

fn make_way(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent),
        Some(_) | None => Ok(()),
    }
}

fn write(text: &Text) -> io::Result<()> {
    make_way(&text.path)?;
    fs::write(&text.path, &text.text)
}

fn append(text: &Text) -> io::Result<()> {
    make_way(&text.path)?;
    let mut file = File::options().append(true).create(true).open(&text.path)?;
    file.write_all(text.text.as_bytes())
}

fn delete(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    make_way(to)?;
    fs::rename(from, to)
}

/// A real child process; what it prints goes to our standard error, which is no protocol.
fn shell(agent: &mut Agent, command: &str, may_fail: bool) -> io::Result<Done> {
    let id = begin_tool(agent, "run")?;
    let mut child = match Child::shell(command) {
        Ok(child) => child,
        Err(error) => return Ok(failed(format!("failed to start `{command}`: {error}"))),
    };
    let (ok, how) = loop {
        if let Some(end) = child.look()? {
            break end;
        }
        if agent.wait(LOOK)? {
            child.kill();
            return Ok(Done::Interrupted);
        }
    };
    say(&Say::ToolEnd { id, ok })?;
    Ok(if ok || may_fail { Done::All } else { failed(format!("`{command}` ended with {how}")) })
}

fn usage(agent: &mut Agent, used: Used) -> io::Result<Done> {
    let Used { tokens_in, tokens_out, tokens_cached, usd_micros } = used;
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
    };
    add(&mut agent.usage.tokens_in, tokens_in);
    add(&mut agent.usage.tokens_out, tokens_out);
    add(&mut agent.usage.tokens_cached, tokens_cached);
    add(&mut agent.usage.usd_micros, usd_micros);
    say(&Say::Usage { usage: agent.usage }).map(|()| Done::All)
}

fn fall(crash: &Crash) -> Done {
    match crash {
        Crash::Code(code) => Done::Crashed(*code),
        Crash::Signal(name) => match name.parse::<Signal>() {
            Ok(signal) => {
                let _ = raise(signal);
                // A signal that ends nobody: at least the word is not said.
                Done::Crashed(1)
            }
            Err(_) => failed(format!("`{name}` is no signal; write SIGKILL, SIGSEGV …")),
        },
    }
}

fn huge_line(size: u64) -> io::Result<Done> {
    pieces(size, |len| print(&b".".repeat(len)))?;
    print(b"\n").map(|()| Done::All)
}

fn pieces(size: u64, mut print: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        print(len)?;
        left -= len as u64;
    }
    Ok(())
}

fn print_noise(noise: &Noise) -> io::Result<Done> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    pieces(noise.bytes.0, |len| {
        let bytes: Vec<u8> = (0..len).map(|_| next_byte(&mut state, noise.invalid_utf8)).collect();
        print(&bytes)
    })?;
    print(b"\n").map(|()| Done::All)
}

/// xorshift: the same noise every time.
fn next_byte(state: &mut u64, any: bool) -> u8 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let byte = state.to_le_bytes()[0];
    if any || byte == b'\n' { byte } else { b' ' + byte % 95 }
}

fn connect(agent: &Agent, address: &str) -> Done {
    let heading = &agent.heading;
    let word = format!("{} {} {}\n", heading.unit, heading.attempt, heading.epoch);
    let met = address.to_socket_addrs().and_then(|mut all| {
        let first: Option<SocketAddr> = all.next();
        first.ok_or_else(|| io::Error::other("no address"))
    });
    let told = met.and_then(|address| {
        TcpStream::connect_timeout(&address, CONNECT)?.write_all(word.as_bytes())
    });
    match told {
        Ok(()) => Done::All,
        Err(error) => failed(format!("failed to connect to {address}: {error}")),
    }
}

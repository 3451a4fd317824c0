//! `ganger journal`: proves and exports the journal, of a directory or of a coordinator.
//!
//! With `--data` the directory is read and no coordinator is asked, whatever the environment names.

use std::io;
use std::path::{Path, PathBuf};

use ganger_coordinator::journal::{self, IndexState, StreamName, VerifyReport};
use ganger_proto::v1;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{output, session};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Read everything again and prove every hash; names the first bad event.
    Verify(Args),
    /// Print the stored events, one line of JSON each, as they were written.
    Export(Args),
}

/// Which journal, and what of it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read this directory of a coordinator; needs none that runs, and goes before --server.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Only this stream: run/ID, fleet or system.
    #[arg(long, value_name = "STREAM")]
    pub stream: Option<String>,
}

/// Carries one out.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Error> {
    match command {
        Command::Verify(Args { data: Some(data), stream: None }) => {
            verify_directory(&data, context)
        }
        Command::Verify(Args { data: Some(_), stream: Some(_) }) => {
            Err(Error::Usage("a directory is verified whole: leave --stream out".to_owned()))
        }
        Command::Verify(Args { data: None, stream }) => verify_server(stream, context).await,
        Command::Export(Args { data: Some(data), stream }) => {
            export_directory(&data, stream.as_deref())
        }
        Command::Export(Args { data: None, stream }) => export_server(stream, context).await,
    }
}

/// A coordinator's directory has the journal in it; the journal's own will do as well.
fn journal_in(data: &Path) -> PathBuf {
    let within = data.join("journal");
    if within.is_dir() { within } else { data.to_owned() }
}

fn verify_directory(data: &Path, context: &Context) -> Result<Exit, Error> {
    let report = journal::verify(&journal_in(data))?;
    let index = index_word(&report.index);
    let bad = report.first_bad.as_ref().map(|bad| {
        serde_json::json!({
            "stream": bad.stream,
            "sequence": bad.seq,
            "log_seq": bad.log_seq,
            "file": bad.file,
            "offset": bad.offset,
            "reason": bad.kind.to_string(),
        })
    });
    let answer = serde_json::json!({
        "ok": report.first_bad.is_none(),
        "events": report.events,
        "streams": report.streams,
        "log_seq": report.log_seq,
        "first_bad": bad,
        "torn": report.torn.is_some(),
        "index": index,
    });
    context.out.one(&answer, |_| told(&report, &index))?;
    Ok(if report.first_bad.is_some() { Exit::Failed } else { Exit::Ok })
}

fn told(report: &VerifyReport, index: &str) -> String {
    let mut text = match &report.first_bad {
        None => format!(
            "{} events in {} streams are as they were written, up to log_seq {}",
            report.events, report.streams, report.log_seq
        ),
        Some(bad) => format!("{bad}\n{} events before it are as they were written", report.events),
    };
    if report.torn.is_some() {
        text.push_str("\nthe last write was not finished; the next start cuts it off");
    }
    format!("{text}\nindex: {index}")
}

fn index_word(index: &IndexState) -> String {
    match index {
        IndexState::Compared { log_seq } => format!("holds the log up to {log_seq}"),
        IndexState::Held { pid } => format!("held by process {pid}, not compared"),
        IndexState::Absent => "absent; the next start builds it".to_owned(),
        IndexState::Unusable { why } => format!("unusable, the next start builds it anew: {why}"),
    }
}

async fn verify_server(stream: Option<String>, context: &Context) -> Result<Exit, Error> {
    let request = v1::JournalServiceVerifyRequest { stream: stream.unwrap_or_default() };
    let answer = session::with(context, async |server| {
        Ok(server.clients().journal().verify(request).await?.into_inner())
    })
    .await?;
    let bad = answer.damage.as_ref().map(|bad| {
        serde_json::json!({
            "stream": bad.stream,
            "sequence": bad.sequence,
            "log_seq": bad.log_seq,
            "reason": bad.reason,
        })
    });
    let log_seq = answer.anchor.as_ref().map(|anchor| anchor.log_seq);
    let shown = serde_json::json!({
        "ok": answer.damage.is_none(),
        "events": answer.events,
        "log_seq": log_seq,
        "first_bad": bad,
    });
    context.out.one(&shown, |_| match &answer.damage {
        None => format!("{} events are as they were written", answer.events),
        Some(bad) => format!(
            "{} at log_seq {}, {} event {}",
            bad.reason, bad.log_seq, bad.stream, bad.sequence
        ),
    })?;
    Ok(if answer.damage.is_some() { Exit::Failed } else { Exit::Ok })
}

fn export_directory(data: &Path, stream: Option<&str>) -> Result<Exit, Error> {
    let only = stream
        .map(|name| {
            name.parse::<StreamName>().map_err(|error| Error::Usage(format!("--stream: {error}")))
        })
        .transpose()?;
    let mut out = io::BufWriter::new(Answer);
    match journal::export(&journal_in(data), only.as_ref(), &mut out) {
        Ok(_) => Ok(Exit::Ok),
        Err(journal::ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(Error::ClosedPipe)
        }
        Err(error) => Err(error.into()),
    }
}

/// Standard output for who writes bytes.
struct Answer;

impl io::Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match output::bytes(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(Error::Output(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn export_server(stream: Option<String>, context: &Context) -> Result<Exit, Error> {
    let request =
        v1::JournalServiceExportRequest { stream: stream.unwrap_or_default(), after_sequence: 0 };
    session::with(context, async |server| {
        let mut events = server.clients().journal().export(request).await?.into_inner();
        while let Some(mut event) = events.message().await? {
            event.event.push(b'\n');
            output::bytes(&event.event)?;
        }
        Ok(Exit::Ok)
    })
    .await
}

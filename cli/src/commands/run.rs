//! `ganger run PLAN`: submits a plan and follows its run to the end.
//!
//! With nothing to speak to, a coordinator is started in this process and two workers below it; they
//! end with the command.

use std::path::PathBuf;

use ganger_proto::{read, v1};
use ganger_shared::view::{RunRow, RunView};
use ganger_telemetry::Telemetry;
use tokio_util::sync::CancellationToken;

use super::up::{SLOTS, WORKERS};
use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::follow::screen::Reader;
use crate::follow::{self, Followed, Screen};
use crate::hand_over::Branch;
use crate::output::{Format, Named, complain, note};
use crate::server::Server;
use crate::session::Session;
use crate::submission::{self, Submitted};
use crate::up::{Embedded, Say, WORKERS_MAX, Wish, Workers};
use crate::{commands, report, signals, submission as sending, telemetry};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan file.
    pub plan: PathBuf,
    /// Name of this submit: a repeat with the same key follows the run it made before.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Workers to start where none runs [default: 2].
    #[arg(
        long,
        value_name = "N",
        env = "GANGER_WORKERS",
        hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKERS_MAX))
    )]
    pub workers: Option<u32>,
    /// Attempts each of them runs at once [default: 2].
    #[arg(
        long,
        value_name = "N",
        env = "GANGER_SLOTS",
        hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=512)
    )]
    pub slots: Option<u32>,
    /// Show every event, bookkeeping too.
    #[arg(long)]
    pub all: bool,
}

/// Submits and follows.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    sending::text::find(&args.plan).map_err(submission::SubmissionError::from)?;
    let found = Session::find(&context.settings).await?;
    let telemetry = telemetry::client(found.is_some())?;
    let result = with_session(args, context, found, &telemetry).await;
    telemetry::end(telemetry).await;
    result
}

async fn with_session(
    args: Args,
    context: &Context,
    found: Option<Session>,
    telemetry: &Telemetry,
) -> Result<Exit, Error> {
    let leave = signals::ending()?;
    let mut session = match found {
        Some(session) => session,
        None => Session::start(&context.settings, Some(telemetry)).await?,
    };
    let own = session.embedded.as_ref().map(|embedded| own(embedded, &args, context));
    let work = submit_and_follow(&mut session.server, &args, context, (&leave, own));
    let result = match &mut session.embedded {
        None => work.await,
        Some(embedded) => tokio::select! {
            result = work => result,
            error = embedded.broke() => Err(error.into()),
        },
    };
    let result = result.map_err(|error| error.at(session.server.address()));
    // What is at work when we are called away is not to fail by it: it is lost, and runs again.
    let wish = match &result {
        Ok(Exit::Interrupted) | Err(_) => Wish::Die,
        Ok(_) => Wish::Leave,
    };
    let closed = session.close(wish).await;
    let exit = result?;
    closed?;
    Ok(exit)
}

/// Workers of our own, to be started once there is a run for them.
struct Own {
    workers: Workers,
    count: u32,
    slots: u32,
}

fn own(embedded: &Embedded, args: &Args, context: &Context) -> Own {
    let file = &context.settings.file.up;
    Own {
        workers: embedded.workers.clone(),
        count: args.workers.or(file.workers).unwrap_or(WORKERS),
        slots: args.slots.or(file.slots).unwrap_or(SLOTS),
    }
}

async fn submit_and_follow(
    server: &mut Server,
    args: &Args,
    context: &Context,
    (leave, own): (&CancellationToken, Option<Own>),
) -> Result<Exit, Error> {
    let key = Mutation { expect: None, key: args.key.clone() }.key();
    let submitting = submission::submit(server, &context.settings.state, &args.plan, &key);
    let submitted = tokio::select! {
        submitted = submitting => submitted?,
        () = leave.cancelled() => return Ok(Exit::Interrupted),
    };
    let mut reader = Reader::Needed;
    if let Some(Own { workers, count, slots }) = &own {
        workers.start(&context.settings, (*count, *slots), Say::ToFile)?;
        reader = Reader::Unneeded;
    }
    let mut screen = Screen::new(context.out, reader, args.all);
    let (alone, run) = (own.is_some(), submitted.run.clone());
    greet(&mut screen, server, &submitted, own.map(|own| own.count))?;
    follow_to_the_end(server, &run, 0, (context, &mut screen, leave), alone).await
}

fn greet(
    screen: &mut Screen,
    server: &Server,
    submitted: &Submitted,
    own: Option<u32>,
) -> Result<(), Error> {
    let again = if submitted.replayed { ", submitted before" } else { "" };
    let place = match own {
        Some(workers) => format!("in this process with {workers} workers"),
        None => format!("at {}", server.address()),
    };
    screen.say(&format!("run {}{again}, {place}", submitted.run))?;
    if let Some(path) = &submitted.seeded {
        screen.say(&format!("repository {}", path.display()))?;
    }
    for warning in &submitted.warnings {
        note(&format!("  {warning}"));
    }
    Ok(())
}

/// Follows a run until it rests, brings its branch here, reports. Shared with `watch`.
pub async fn follow_to_the_end(
    server: &mut Server,
    run: &str,
    after: u64,
    (context, screen, leave): (&Context, &mut Screen, &CancellationToken),
    own: bool,
) -> Result<Exit, Error> {
    match follow::follow(server, run, after, screen, leave).await? {
        Followed::Detached => {
            note(&detached(run, own));
            Ok(Exit::Interrupted)
        }
        Followed::Rest(view) => {
            let mut exit = Exit::of_run(&view.row.state, view.row.reason.as_deref());
            if !hand_over(server, &view, screen).await? {
                exit = Exit::Failed;
            }
            end(server, &view, context, screen).await?;
            if own {
                wait_for_others(server, &view.row, leave).await;
            }
            Ok(exit)
        }
    }
}

fn detached(run: &str, own: bool) -> String {
    if own {
        format!(
            "left run {run}: it stands still until `ganger up`; then `ganger watch {run}` follows it"
        )
    } else {
        format!("left run {run}, which goes on; `ganger watch {run}` follows it again")
    }
}

/// Brings a completed run's branch into its repository, if both are here. False if that failed.
async fn hand_over(server: &Server, view: &RunView, screen: &mut Screen) -> Result<bool, Error> {
    let Some(branch) = Branch::of(view) else { return Ok(true) };
    match branch.fetch(server.clients()).await {
        Ok(there) => {
            let already = if there.unchanged { " already" } else { "" };
            screen.say(&format!(
                "branch {} is{already} in {}",
                there.branch,
                there.repository.display()
            ))?;
            Ok(true)
        }
        Err(error) => {
            complain(&error);
            note(&format!("the run keeps it: `ganger deliver {}` brings it here", view.row.id));
            Ok(false)
        }
    }
}

/// The report, or the one object that is the answer.
async fn end(
    server: &Server,
    view: &RunView,
    context: &Context,
    screen: &mut Screen,
) -> Result<(), Error> {
    let names = commands::workers::names(server.clients()).await;
    match context.out.format {
        Format::Json | Format::Jsonl => {
            let shown = context.out.object(&Named("run", view));
            screen.heard(shown)
        }
        Format::Table => {
            let text = report::run(view, &names, context.out.style);
            screen.say(&format!("\n{}", text.trim_end()))
        }
    }
}

/// Other clients may have found our coordinator: it stays for the runs they submitted since. Those an
/// earlier command left are not waited for; they go on whenever a coordinator runs here.
async fn wait_for_others(server: &mut Server, own: &RunRow, leave: &CancellationToken) {
    let mut told = false;
    loop {
        let request = v1::RunServiceListRequest {
            filter: Some(v1::RunFilter {
                states: vec!["active".to_owned(), "stopping".to_owned()],
                ..v1::RunFilter::default()
            }),
            ..v1::RunServiceListRequest::default()
        };
        let Ok(answer) = server.clients().runs().list(request).await else { return };
        let Ok(rows) = read::each::<_, RunRow>("runs", answer.into_inner().runs) else { return };
        let later = |row: &RunRow| row.id != own.id && row.submitted_at >= own.submitted_at;
        let Some(other) = rows.into_iter().find(later) else { return };
        if !std::mem::replace(&mut told, true) {
            note("other runs are at work on this coordinator; Ctrl-C leaves them for later");
        }
        let minute = std::time::Duration::from_mins(1);
        let request = follow::wait_request(other.id.as_str(), 0, minute, v1::WakeOn::Rest);
        let mut runs = server.clients().runs();
        tokio::select! {
            answer = runs.wait(request) => if answer.is_err() { return },
            () = leave.cancelled() => return,
        }
    }
}

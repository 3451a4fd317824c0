//! `ganger get`: shows runs, units, attempts and workers.

use std::collections::BTreeMap;

use ganger_proto::{read, v1};
use ganger_shared::ids::UnitId;
use ganger_shared::limits;
use ganger_shared::nearest::did_you_mean;
use ganger_shared::view::{AttemptView, RunRow, RunView, UnitView, WorkerView};

use super::worker::label;
use super::workers;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::style::Style;
use crate::output::table::{Cell, table};
use crate::output::{Format, Named, words};
use crate::server::Server;
use crate::{report, session};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Runs, the newest first.
    Runs(RunsArgs),
    /// One run, whole.
    Run {
        /// The run: its id or a unique beginning of it.
        run: String,
    },
    /// The units of a run.
    Units {
        /// The run.
        run: String,
    },
    /// The attempts of a run, or of one unit of it.
    Attempts {
        /// The run.
        run: String,
        /// The unit.
        unit: Option<String>,
    },
    /// Workers.
    Workers,
}

/// Which runs.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {
    /// Only runs in this state; may be given often.
    #[arg(long = "state", value_name = "STATE")]
    pub states: Vec<String>,
    /// Only runs with this label; may be given often.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Only runs of this project.
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<String>,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
}

/// Carries one out.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Error> {
    session::with(context, async |server| match command {
        Command::Runs(args) => runs(server, args, context).await,
        Command::Run { run } => one(server, &run, context).await,
        Command::Units { run } => units(server, &run, context).await,
        Command::Attempts { run, unit } => attempts(server, &run, unit.as_deref(), context).await,
        Command::Workers => all_workers(server, context).await,
    })
    .await?;
    Ok(Exit::Ok)
}

/// The run, whole.
pub async fn view(server: &Server, run: &str) -> Result<RunView, Error> {
    let request = v1::RunServiceGetRequest { run: run.to_owned() };
    let answer = server.clients().runs().get(request).await?.into_inner();
    Ok(read::required("run", answer.run)?)
}

/// A hint at the name that was perhaps meant, to be put after a sentence.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let hint = did_you_mean(name, known);
    if hint.is_empty() { hint } else { format!("; {hint}") }
}

/// The unit of a run.
pub fn find_unit<'a>(run: &'a RunView, name: &str) -> Result<&'a UnitView, Error> {
    let found = run.units.iter().find(|unit| unit.id.as_str() == name);
    found.ok_or_else(|| {
        let near = nearest(name, run.units.iter().map(|unit| unit.id.as_str()));
        Error::Nothing(format!("run {} has no unit `{name}`{near}", run.row.id))
    })
}

async fn runs(server: &Server, args: RunsArgs, context: &Context) -> Result<(), Error> {
    let filter = v1::RunFilter {
        states: args.states,
        labels: args.labels.into_iter().collect(),
        project: args.project.unwrap_or_default(),
    };
    let mut rows: Vec<RunRow> = Vec::new();
    let mut page_token = String::new();
    while rows.len() < args.limit {
        let room = (args.limit - rows.len()).min(limits::PAGE);
        let request = v1::RunServiceListRequest {
            page_size: u32::try_from(room).expect("a page has at most 500 rows"),
            page_token,
            filter: Some(filter.clone()),
            order_by: String::new(),
        };
        let page = server.clients().runs().list(request).await?.into_inner();
        rows.extend(read::each::<_, RunRow>("runs", page.runs)?);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    context.out.list("runs", &rows, |style| run_table(&rows, style))
}

fn run_table(rows: &[RunRow], style: Style) -> String {
    let cells = rows.iter().map(|row| {
        let done = row.counts.get("accepted").copied().unwrap_or(0);
        let all: u32 = row.counts.values().sum();
        let state = row.reason.as_ref().filter(|_| row.state == "held");
        vec![
            Cell::text(&row.id),
            Cell::text(&row.name),
            Cell::state(&row.state),
            Cell::maybe(state),
            Cell::text(format!("{done}/{all}")),
            Cell::text(row.submitted_at),
            Cell::maybe(row.ended_at.map(|ended| words::length(ended.since(row.submitted_at)))),
        ]
    });
    let head = ["run", "name", "state", "reason", "units", "submitted", "took"];
    table(&head, &cells.collect::<Vec<_>>(), style)
}

async fn one(server: &Server, run: &str, context: &Context) -> Result<(), Error> {
    let view = view(server, run).await?;
    let names = names_for(server, context).await;
    context.out.one(&Named("run", &view), |style| report::run(&view, &names, style))
}

/// Names are for people: programs get the ids.
async fn names_for(server: &Server, context: &Context) -> report::Names {
    match context.out.format {
        Format::Table => workers::names(server.clients()).await,
        Format::Json | Format::Jsonl => BTreeMap::new(),
    }
}

async fn units(server: &Server, run: &str, context: &Context) -> Result<(), Error> {
    let view = view(server, run).await?;
    let names = names_for(server, context).await;
    context.out.list("units", &view.units, |style| report::units(&view.units, &names, style))
}

async fn attempts(
    server: &Server,
    run: &str,
    unit: Option<&str>,
    context: &Context,
) -> Result<(), Error> {
    let view = view(server, run).await?;
    let of: Option<UnitId> =
        unit.map(|unit| find_unit(&view, unit)).transpose()?.map(|unit| unit.id.clone());
    let wanted = |unit: &&UnitView| of.as_ref().is_none_or(|of| *of == unit.id);
    let rows: Vec<&AttemptView> =
        view.units.iter().filter(wanted).flat_map(|unit| &unit.attempts).collect();
    let names = names_for(server, context).await;
    context
        .out
        .list("attempts", &rows, |style| report::attempts(rows.iter().copied(), &names, style))
}

async fn all_workers(server: &Server, context: &Context) -> Result<(), Error> {
    let rows = workers::list(server.clients()).await?;
    context.out.list("workers", &rows, |style| worker_table(&rows, style))
}

fn worker_table(rows: &[WorkerView], style: Style) -> String {
    let cells = rows.iter().map(|worker| {
        let labels = worker.labels.iter().map(|(key, value)| format!("{key}={value}"));
        vec![
            Cell::text(&worker.name),
            Cell::state(&worker.state),
            Cell::text(format!("{}/{}", worker.busy, worker.slots)),
            Cell::text(worker.agents.join(",")),
            Cell::text(labels.collect::<Vec<_>>().join(",")),
            Cell::text(&worker.id),
        ]
    });
    let head = ["name", "state", "busy", "agents", "labels", "id"];
    table(&head, &cells.collect::<Vec<_>>(), style)
}

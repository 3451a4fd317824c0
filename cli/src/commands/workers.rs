//! `ganger workers`: takes workers out of use and back; and the list of them, for who shows names.

use ganger_proto::client::Clients;
use ganger_proto::{read, v1};
use ganger_shared::plan::Length;
use ganger_shared::view::WorkerView;

use super::done;
use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::Names;
use crate::session;

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Give a worker no new work.
    Cordon(Args),
    /// Give a worker no new work for good, and let what runs there end.
    Drain {
        /// Which.
        #[command(flatten)]
        args: Args,
        /// How long what runs there may still take [default: as long as it takes].
        #[arg(long, value_name = "TIME", value_parser = Length::parse)]
        timeout: Option<Length>,
    },
    /// Give a worker work again.
    Uncordon(Args),
}

/// Which worker, and why.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id or its name.
    pub worker: String,
    /// Why.
    #[arg(
        short = 'm',
        long = "reason",
        value_name = "REASON",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Carries one out.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Error> {
    match command {
        Command::Cordon(args) => cordon(args, context).await,
        Command::Drain { args, timeout } => drain(args, timeout, context).await,
        Command::Uncordon(args) => uncordon(args, context).await,
    }
}

async fn cordon(args: Args, context: &Context) -> Result<Exit, Error> {
    let what = format!("worker {} gets no new work", args.worker);
    let request = v1::FleetServiceCordonRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        worker: args.worker,
        reason: args.reason,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().fleet().cordon(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

async fn drain(args: Args, timeout: Option<Length>, context: &Context) -> Result<Exit, Error> {
    let what = format!("worker {} takes no new work", args.worker);
    let request = v1::FleetServiceDrainRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        worker: args.worker,
        reason: args.reason,
        timeout_ms: timeout.map_or(0, |length| length.0.0),
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().fleet().drain(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

async fn uncordon(args: Args, context: &Context) -> Result<Exit, Error> {
    let what = format!("worker {} gets work again", args.worker);
    let request = v1::FleetServiceUncordonRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        worker: args.worker,
        reason: args.reason,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().fleet().uncordon(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

/// Every worker.
pub async fn list(clients: &Clients) -> Result<Vec<WorkerView>, Error> {
    let (mut rows, mut page_token) = (Vec::new(), String::new());
    loop {
        let request =
            v1::FleetServiceListRequest { page_token, ..v1::FleetServiceListRequest::default() };
        let page = clients.fleet().list(request).await?.into_inner();
        rows.extend(read::each::<_, WorkerView>("workers", page.workers)?);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(rows);
        }
    }
}

/// The workers' names; none where they cannot be had, because a report is not worth failing for.
pub async fn names(clients: &Clients) -> Names {
    let workers = list(clients).await.unwrap_or_default();
    workers.into_iter().map(|worker| (worker.id, worker.name)).collect()
}

//! `ganger stop RUN`: stops a run: everything ends and the run is aborted.

use ganger_proto::v1;

use super::done;
use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::session;

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// Why.
    #[arg(short = 'm', long = "reason", value_name = "REASON", default_value = "by `ganger stop`")]
    pub reason: String,
    /// Without grace.
    #[arg(long)]
    pub now: bool,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Asks the coordinator.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let what = format!("run {} is stopping", args.run);
    let request = v1::RunServiceStopRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        run: args.run,
        reason: args.reason,
        now: args.now,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().runs().stop(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

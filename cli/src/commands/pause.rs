//! `ganger pause RUN`: starts nothing new of a run; what runs, runs on.

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
    #[arg(
        short = 'm',
        long = "reason",
        value_name = "REASON",
        default_value = "by `ganger pause`"
    )]
    pub reason: String,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Asks the coordinator.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let what = format!("run {} is paused", args.run);
    let request = v1::RunServicePauseRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        run: args.run,
        reason: args.reason,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().runs().pause(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

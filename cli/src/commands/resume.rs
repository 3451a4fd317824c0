//! `ganger resume RUN`: goes on after a pause, or after a repair of a quarantined run.

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
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    /// The run is quarantined and was repaired: fold it again.
    #[arg(long)]
    pub after_repair: bool,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Asks the coordinator.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let what = format!("run {} goes on", args.run);
    let request = v1::RunServiceResumeRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        run: args.run,
        reason: args.reason,
        after_repair: args.after_repair,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().runs().resume(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}

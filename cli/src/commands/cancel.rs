//! `ganger cancel RUN UNIT`: cancels a unit and what depends on it.

use ganger_proto::v1;

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
    /// The unit.
    pub unit: String,
    /// Why; the coordinator refuses to cancel without a reason.
    #[arg(
        short = 'm',
        long = "reason",
        value_name = "REASON",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    /// Without grace.
    #[arg(long)]
    pub now: bool,
    /// As for every call that changes something.
    #[command(flatten)]
    pub mutation: Mutation,
}

/// Cancels.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let request = v1::UnitServiceCancelRequest {
        idempotency_key: args.mutation.key(),
        expected_sequence: args.mutation.expect,
        run: args.run,
        unit: args.unit,
        reason: args.reason,
        now: args.now,
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().units().cancel(request).await?.into_inner())
    })
    .await?;
    let text = match answer.units.as_slice() {
        [] => "nothing was left to cancel".to_owned(),
        units => format!("cancelled: {}", units.join(" ")),
    };
    let shown = serde_json::json!({
        "sequence": answer.sequence,
        "replayed": answer.replayed,
        "units": answer.units,
    });
    context.out.one(&shown, |_| text)?;
    Ok(Exit::Ok)
}

//! `ganger diff RUN UNIT`: prints what a unit changed, as a patch.

use super::{get, logs};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, note};
use crate::{session, transfer};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// The unit, whose newest attempt is meant, or the attempt: UNIT/LANE/N.
    pub of: String,
}

/// Prints.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    session::with(context, async |server| {
        let view = get::view(server, &args.run).await?;
        let attempt = logs::find(&view, &args.of)?;
        let delivery = attempt.delivery.as_ref().ok_or_else(|| {
            let state = &attempt.state;
            Error::Nothing(format!("{} is {state}: it has handed in nothing", attempt.id))
        })?;
        match delivery.tree.as_ref().and_then(|tree| tree.patch.as_ref()) {
            Some(patch) => {
                let print = async |data: &[u8]| output::bytes(data);
                transfer::fetch(server.clients(), patch, print).await?;
            }
            None => note(&format!("{} changed nothing", attempt.id)),
        }
        Ok(Exit::Ok)
    })
    .await
}

//! `ganger watch RUN`: follows a run's events until it comes to rest.

use super::run::follow_to_the_end;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::follow::Screen;
use crate::follow::screen::Reader;
use crate::{session, signals};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run.
    pub run: String,
    /// Begin after this sequence [default: the beginning].
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub after: u64,
    /// Show every event, bookkeeping too.
    #[arg(long)]
    pub all: bool,
}

/// Follows.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    let leave = signals::ending()?;
    session::with(context, async |server| {
        let mut screen = Screen::new(context.out, Reader::Needed, args.all);
        let shown = (context, &mut screen, &leave);
        follow_to_the_end(server, &args.run, args.after, shown, false).await
    })
    .await
}

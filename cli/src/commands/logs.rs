//! `ganger logs RUN UNIT|ATTEMPT`: prints what an attempt or a check of it printed.

use ganger_shared::digest::ArtifactRef;
use ganger_shared::view::{AttemptView, RunView};

use super::get;
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
    /// What this check printed instead.
    #[arg(long, value_name = "NAME")]
    pub check: Option<String>,
}

/// Prints.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    session::with(context, async |server| {
        let view = get::view(server, &args.run).await?;
        let attempt = find(&view, &args.of)?;
        let Some(body) = body(attempt, args.check.as_deref())? else {
            let state = &attempt.state;
            note(&format!("nothing of what {} printed is kept yet; it is {state}", attempt.id));
            return Ok(Exit::Ok);
        };
        transfer::fetch(server.clients(), &body, async |data| output::bytes(data)).await?;
        Ok(Exit::Ok)
    })
    .await
}

/// The attempt that is meant.
pub fn find<'a>(run: &'a RunView, of: &str) -> Result<&'a AttemptView, Error> {
    let name = of.split('/').next().unwrap_or_default();
    let unit = get::find_unit(run, name)?;
    let found = if of == name {
        unit.attempts.last()
    } else {
        unit.attempts.iter().find(|attempt| attempt.id.to_string() == of)
    };
    found.ok_or_else(|| {
        let none = if of == name { "no attempt yet" } else { "no such attempt" };
        Error::Nothing(format!("`{of}` of run {}: {none}", run.row.id))
    })
}

fn body(attempt: &AttemptView, check: Option<&str>) -> Result<Option<ArtifactRef>, Error> {
    let Some(name) = check else { return Ok(attempt.output.clone()) };
    let names = || attempt.checks.iter().map(|check| check.id.check.as_str());
    if !names().any(|known| known == name) {
        let near = get::nearest(name, names());
        return Err(Error::Nothing(format!("{} has no check `{name}`{near}", attempt.id)));
    }
    let measured = attempt.checks.iter().rev().filter(|check| check.id.check.as_str() == name);
    let mut logs =
        measured.filter_map(|check| check.result.as_ref()?.evidence.as_ref()?.log.clone());
    Ok(logs.next())
}

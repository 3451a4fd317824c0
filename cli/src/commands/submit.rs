//! `ganger submit PLAN`: makes a run of a plan and answers with its id.

use std::path::PathBuf;

use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::note;
use crate::session::Session;
use crate::up::Wish;
use crate::{submission, telemetry};

/// The words of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan file.
    pub plan: PathBuf,
    /// Name of this submit: a repeat with the same key makes no second run.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Submits.
pub async fn run(args: Args, context: &Context) -> Result<Exit, Error> {
    submission::text::find(&args.plan).map_err(submission::SubmissionError::from)?;
    let found = Session::find(&context.settings).await?;
    let telemetry = telemetry::client(found.is_some())?;
    let result = submit(args, context, found, &telemetry).await;
    telemetry::end(telemetry).await;
    result
}

async fn submit(
    args: Args,
    context: &Context,
    found: Option<Session>,
    telemetry: &ganger_telemetry::Telemetry,
) -> Result<Exit, Error> {
    let key = Mutation { expect: None, key: args.key }.key();
    let mut session = match found {
        Some(session) => session,
        None => Session::start(&context.settings, Some(telemetry)).await?,
    };
    let alone = session.embedded.is_some();
    let submitting =
        submission::submit(&mut session.server, &context.settings.state, &args.plan, &key);
    let submitted = submitting.await;
    let submitted = submitted.map_err(|error| error.at(session.server.address()));
    let closed = session.close(Wish::Leave).await;
    let submitted = submitted?;
    closed?;
    for warning in &submitted.warnings {
        note(&format!("  {warning}"));
    }
    if alone {
        note("no coordinator runs: the run waits until `ganger up`");
    }
    context.out.one(&serde_json::json!({ "run_id": submitted.run }), |_| submitted.run.clone())?;
    Ok(Exit::Ok)
}
